// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
package import SystemPackage

/// The applications that are installed on this device: those that the user registered, and those whose desktop entries
/// have `X-Baton-` keys.
///
/// Every call blocks on the disk. A value belongs to one task at a time, such as an actor on a thread for files. Each
/// call sees the latest changes on disk: it looks at every file (`stat`) and reads only those that changed. These are
/// at most four times ``applicationBound`` registered ones and ``DesktopEntryFolders/fileBound`` desktop entries.
package struct ApplicationRegistry: Sendable {
    /// The most applications that are registered, and the most that are known in all: 256.
    package static let applicationBound = 256

    /// The folder of registered manifests, `IDENTIFIER.json` each.
    package let folder: FilePath
    private let desktopEntries: DesktopEntryFolders
    private var registered: [FilePath: Cached<ApplicationManifest>] = [:]
    private var desktop: [FilePath: Cached<DesktopApplication?>] = [:]

    /// - Parameters:
    ///   - configurationFolder: Baton's own.
    ///   - desktopEntries: the folders of desktop entries.
    package init(configurationFolder: FilePath, desktopEntries: DesktopEntryFolders) {
        folder = configurationFolder.appending("applications")
        self.desktopEntries = desktopEntries
    }

    /// The applications that are installed now, by name. A registered application replaces a desktop entry with the
    /// same identifier. Of two desktop entries the one in the earlier folder counts.
    package mutating func installed() -> InstalledApplications {
        var result = InstalledApplications(applications: [], problems: [])
        var seen: Set<String> = []
        func add(_ manifest: ApplicationManifest, at path: FilePath) {
            guard !seen.contains(manifest.identifier) else { return }
            guard result.applications.count < Self.applicationBound else {
                result.problems.append(
                    InstalledApplications.Problem(
                        path: path, reason: "there are \(Self.applicationBound) applications already, which is the most"
                    ))
                return
            }
            seen.insert(manifest.identifier)
            result.applications.append(manifest)
        }
        for (path, content) in readRegistered() + readDesktopEntries() {
            switch content {
            case .success(let manifest): add(manifest, at: path)
            case .failure(let error):
                result.problems.append(InstalledApplications.Problem(path: path, reason: error.description))
            }
        }
        result.applications.sort { ($0.name, $0.identifier) < ($1.name, $1.identifier) }
        return result
    }

    // MARK: - What is on disk

    private typealias Reading = (FilePath, Result<ApplicationManifest, ApplicationManifestError>)

    private mutating func readRegistered() -> [Reading] {
        let paths = ((try? registeredNames()) ?? []).sorted().map { folder.appending($0) }
        return Self.read(paths.map { ($0, $0) }, &registered) { (path) throws(ApplicationManifestError) in
            try Self.manifest(path)
        }
    }

    private mutating func readDesktopEntries() -> [Reading] {
        let entries = desktopEntries
        let files = entries.files().map { ($0.path, $0) }
        let read = Self.read(files, &desktop) { (file) throws(ApplicationManifestError) in
            try DesktopApplication.read(file.path, id: file.id, locale: entries.locale)
        }
        return read.compactMap { path, content in
            switch content {
            case .success(let application):
                // An application is installed only if its program exists.
                application.flatMap { entries.isPresent($0.tryExec) ? (path, .success($0.manifest)) : nil }
            case .failure(let error): (path, .failure(error))
            }
        }
    }

    /// The contents of files, read where the cache has none that is current.
    private static func read<File, Content: Sendable>(
        _ files: [(FilePath, File)], _ cache: inout [FilePath: Cached<Content>],
        _ read: (File) throws(ApplicationManifestError) -> Content
    ) -> [(FilePath, Result<Content, ApplicationManifestError>)] {
        var fresh: [FilePath: Cached<Content>] = [:]
        defer { cache = fresh }
        return files.compactMap { path, file in
            let known = cache[path].flatMap { $0.isCurrent(path) ? $0 : nil }
            fresh[path] = known ?? Cached(path) { (_) throws(ApplicationManifestError) in try read(file) }
            return fresh[path].map { (path, $0.content) }
        }
    }

    private static func manifest(_ path: FilePath) throws(ApplicationManifestError) -> ApplicationManifest {
        let bytes: [UInt8]
        do throws(Errno) {
            bytes = try DurableFile.read(path, limit: ManifestBounds.fileSize, isOwnersOnly: true)
        } catch {
            if error == .permissionDenied || error == .notPermitted {
                throw .init("others could write to it, or it cannot be read: chown it to you and chmod it 600")
            }
            throw .unreadable(error)
        }
        let manifest = try RegisteredManifest.decode(bytes)
        guard path.lastComponent?.string == fileName(of: manifest.identifier) else {
            throw .init("it is the manifest of \(manifest.identifier), and belongs into a file of that name")
        }
        return manifest
    }
}

/// The content of a file, valid while the file stays the same.
private struct Cached<Content: Sendable>: Sendable {
    let version: DurableFile.Version
    let content: Result<Content, ApplicationManifestError>

    /// Reads a file.
    ///
    /// - Returns: `nil` if there is none.
    init?(_ path: FilePath, _ read: (FilePath) throws(ApplicationManifestError) -> Content) {
        // Before the content: a file that changes meanwhile is read again.
        guard let version = try? DurableFile.Version(of: path) else { return nil }
        self.version = version
        do throws(ApplicationManifestError) {
            content = .success(try read(path))
        } catch {
            content = .failure(error)
        }
    }

    func isCurrent(_ path: FilePath) -> Bool { version == (try? DurableFile.Version(of: path)) }
}
