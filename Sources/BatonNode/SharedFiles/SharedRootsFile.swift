// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonEventLoop
package import BatonTransport
import FoundationEssentials
import Glibc
package import SystemPackage

/// The file that the user, or `baton roots`, writes the shared folders into: `shared-roots` in the configuration
/// folder.
package enum SharedRootsFile {
    /// Where a home has it.
    package static func path(in home: Home) -> FilePath {
        FilePath(home.configurationFolder).appending("shared-roots")
    }

    /// Reads the file; blocks.
    ///
    /// - Parameter userHome: what `~/` stands for.
    /// - Returns: none where there is no file.
    /// - Throws: what is wrong with it. It has to be a file of this user (or root) that nobody else can write to.
    package static func read(_ path: FilePath, userHome: FilePath?) throws(ConfigurationError) -> SharedRoots {
        guard let content = try ConfigurationFile.contents(of: path) else { return SharedRoots() }
        return try SharedRoots(parsing: content, home: userHome)
    }

    /// Adds a root at the end; what the user wrote stays as it is.
    ///
    /// - Parameter folder: absolute.
    /// - Throws: what is wrong with the file, with the name or the folder, or what kept it from being written.
    package static func add(
        _ name: String, _ folder: FilePath, to path: FilePath, userHome: FilePath?
    ) throws(ConfigurationError) {
        // What is wrong with the file is said before a folder is made for it.
        _ = try ConfigurationFile.contents(of: path)
        let lock = try lock(path)
        defer { withExtendedLifetime(lock) {} }
        var content = try ConfigurationFile.contents(of: path) ?? []
        if let last = content.last, last != 0x0A { content.append(0x0A) }
        content += Array("\(name)=\(folder.string)\n".utf8)
        // What a name or a folder may not have, the file may not have either: a line break makes a second root.
        let roots = try SharedRoots(parsing: content, home: userHome)
        guard roots[name]?.folder == folder.tidied, !name.contains("\n"), !folder.string.contains("\n")
        else {
            throw ConfigurationError("the folder \"\(folder)\" cannot be written down: its name has odd characters")
        }
        try write(content, to: path)
    }

    /// Removes a root; everything else stays as it is.
    ///
    /// - Returns: whether there was one of this name.
    package static func remove(
        _ name: String, from path: FilePath, userHome: FilePath?
    ) throws(ConfigurationError) -> Bool {
        // No folder is made to remove nothing from.
        guard try ConfigurationFile.contents(of: path) != nil else { return false }
        let lock = try lock(path)
        defer { withExtendedLifetime(lock) {} }
        guard let content = try ConfigurationFile.contents(of: path) else { return false }
        guard let root = try SharedRoots(parsing: content, home: userHome)[name] else { return false }
        var lines = content.split(separator: 0x0A, omittingEmptySubsequences: false)
        lines.remove(at: root.line - 1)
        try write(Array(lines.joined(separator: [0x0A])), to: path)
        return true
    }

    private static func write(_ content: [UInt8], to path: FilePath) throws(ConfigurationError) {
        guard content.count <= ConfigurationFile.sizeBound else {
            throw ConfigurationError("it would be over \(ConfigurationFile.sizeBound) bytes")
        }
        // A link to the file, as of those who keep their configuration elsewhere, stays one.
        let target = URL(filePath: path.string).resolvingSymlinksInPath()
        do {
            try SmallFile.replace(FilePath(target.path), with: content)
        } catch {
            throw ConfigurationError("it cannot be written (\(error))")
        }
    }

    /// For how long another command that changes the file is waited for; it needs a few milliseconds.
    private static var patience: Duration { .seconds(5) }

    /// Keeps other commands from changing the file until the result goes: `flock(2)` on its folder, which is made where
    /// there is none.
    private static func lock(_ path: FilePath) throws(ConfigurationError) -> OwnedDescriptor {
        let folder = path.removingLastComponent()
        do {
            try FileManager.default.createDirectory(
                atPath: folder.string, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            let lock = OwnedDescriptor(
                takingOwnershipOf: try FileDescriptor.open(folder, .readOnly, options: [.directory, .closeOnExec]))
            let deadline = ContinuousClock.now + patience
            while flock(lock.fileDescriptor.rawValue, LOCK_EX | LOCK_NB) != 0 {
                let error = Errno(rawValue: errno)
                guard error == .wouldBlock || error == .interrupted else { throw error }
                guard ContinuousClock.now < deadline else {
                    throw ConfigurationError(
                        "another program has locked its folder for \(patience.components.seconds) s")
                }
                poll(nil, 0, 5)
            }
            return lock
        } catch {
            throw error as? ConfigurationError ?? ConfigurationError("its folder cannot be used (\(error))")
        }
    }
}
