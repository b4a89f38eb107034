// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonEventLoop
import FoundationEssentials
import Glibc
import SystemPackage

/// How commands change the files of the configuration folder.
extension ConfigurationFile {
    /// The time that a command waits for another one to change the file: 5 s. A change takes a few milliseconds.
    private static var patience: Duration { .seconds(5) }

    /// Keeps other commands from changing the file until the result goes: `flock(2)` on its folder, which is made if it
    /// is missing. Blocks.
    static func lock(_ path: FilePath) throws(ConfigurationError) -> OwnedDescriptor {
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

    /// Replaces the content of the file. Blocks.
    static func write(_ content: [UInt8], to path: FilePath) throws(ConfigurationError) {
        guard content.count <= sizeBound else {
            throw ConfigurationError("it would be over \(sizeBound) bytes")
        }
        // Some users keep their configuration elsewhere. A link to the file stays one.
        let target = URL(filePath: path.string).resolvingSymlinksInPath()
        do {
            try DurableFile.replace(FilePath(target.path), with: content)
        } catch {
            throw ConfigurationError("it cannot be written (\(error))")
        }
    }
}
