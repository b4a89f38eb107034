// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
package import SystemPackage

/// The applications that are installed on this device: those that the user registered, and those whose desktop entries
/// have `X-Baton-` keys.
///
/// Every call blocks on the disk, and sees the latest changes: it reads at most four times ``applicationBound``
/// registered manifests and ``DesktopEntryFolders/fileBound`` desktop entries.
package struct ApplicationRegistry: Sendable {
    /// The most applications that are registered, and the most that are known in all: 256.
    package static let applicationBound = 256

    /// The folder of registered manifests, `IDENTIFIER.json` each.
    package let folder: FilePath
    private let desktopEntries: DesktopEntryFolders

    /// - Parameters:
    ///   - configurationFolder: Baton's own.
    ///   - desktopEntries: the folders of desktop entries.
    package init(configurationFolder: FilePath, desktopEntries: DesktopEntryFolders) {
        folder = configurationFolder.appending("applications")
        self.desktopEntries = desktopEntries
    }

    /// The applications that are installed now, by name. A registered application replaces a desktop entry with the
    /// same identifier. Of two desktop entries the one in the earlier folder counts.
    package func installed() -> InstalledApplications {
        var result = InstalledApplications(applications: [], problems: [])
        var seen: Set<String> = []
        func add(_ path: FilePath, _ read: () throws(ApplicationManifestError) -> ApplicationManifest?) {
            do throws(ApplicationManifestError) {
                guard let manifest = try read(), !seen.contains(manifest.identifier) else { return }
                guard result.applications.count < Self.applicationBound else {
                    throw .init("there are \(Self.applicationBound) applications already, which is the most")
                }
                seen.insert(manifest.identifier)
                result.applications.append(manifest)
            } catch {
                result.problems.append(InstalledApplications.Problem(path: path, reason: error.description))
            }
        }
        for name in ((try? registeredNames()) ?? []).sorted() {
            let path = folder.appending(name)
            add(path) { () throws(ApplicationManifestError) in try Self.manifest(path) }
        }
        for file in desktopEntries.files() {
            add(file.path) { () throws(ApplicationManifestError) in
                try DesktopApplication.read(file.path, id: file.id, in: desktopEntries)
            }
        }
        result.applications.sort { ($0.name, $0.identifier) < ($1.name, $1.identifier) }
        return result
    }

    /// - Returns: `nil` if there is no file.
    private static func manifest(_ path: FilePath) throws(ApplicationManifestError) -> ApplicationManifest? {
        let bytes: [UInt8]
        do throws(Errno) {
            bytes = try DurableFile.read(path, limit: ManifestBounds.fileSize, isOwnersOnly: true)
        } catch {
            switch error {
            case .noSuchFileOrDirectory, .invalidArgument: return nil
            case .permissionDenied, .notPermitted:
                throw .init("others could write to it, or it cannot be read: chown it to you and chmod it 600")
            case _: throw .unreadable(error)
            }
        }
        let manifest = try RegisteredManifest.decode(bytes)
        guard path.lastComponent?.string == fileName(of: manifest.identifier) else {
            throw .init("it is the manifest of \(manifest.identifier), and belongs into a file of that name")
        }
        return manifest
    }
}
