// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
package import SystemPackage

/// How the files of the configuration folder are read that decide what other devices may do here.
package enum ConfigurationFile {
    /// The most bytes that are read: 64 KiB.
    package static let sizeBound = 64 << 10

    /// What `~/` stands for in this process's environment; `nil` where HOME is not set or relative.
    package static var userHome: FilePath? {
        guard let home = getenv("HOME") else { return nil }
        let path = FilePath(platformString: home)
        return path.isAbsolute ? path : nil
    }

    /// Which state of a file this is: an edit within one tick of the file system's clock that keeps the size is not
    /// seen.
    enum Version: Sendable, Hashable {
        /// When content and entry last changed is compared as it is.
        case file(inode: Inode, size: Int64, times: [UInt8])
        /// Why there is none, and the symbolic link that leads nowhere, where that is why.
        case missing(Errno, deadEnd: FilePath?)

        /// The one of now; blocks.
        init(of path: FilePath) {
            do throws(Errno) {
                let status = try path.stat()
                let times = withUnsafeBytes(of: (status.st_mtim, status.st_ctim)) { Array($0) }
                self = .file(inode: status.inode, size: status.size, times: times)
            } catch {
                self = .missing(error, deadEnd: deadEnd(on: path))
            }
        }
    }

    /// The symbolic link on the way to a path, or at its end, that leads nowhere; `nil` where there is just no file.
    private static func deadEnd(on path: FilePath) -> FilePath? {
        var place = path
        repeat {
            guard let entry = try? place.stat(followTargetSymlink: false) else { continue }
            return entry.type == .symbolicLink && (try? place.stat()) == nil ? place : nil
        } while place.removeLastComponent()
        return nil
    }

    /// What is in the file; blocks.
    ///
    /// - Returns: `nil` where there is none.
    /// - Throws: what is wrong with it. It has to be a file of this user (or root) that nobody else can write to.
    static func contents(of path: FilePath) throws(ConfigurationError) -> [UInt8]? {
        do {
            // Not blocking, so that a pipe does not hang; it is no file and is refused.
            let descriptor = try FileDescriptor.open(path, .readOnly, options: [.nonBlocking, .closeOnExec])
            let file = OwnedDescriptor(takingOwnershipOf: descriptor)
            let status = try file.fileDescriptor.stat()
            guard status.type == .regular else { throw ConfigurationError("it is no file") }
            guard status.userID.rawValue == geteuid() || status.userID.rawValue == 0,
                status.permissions.rawValue & 0o022 == 0
            else { throw ConfigurationError("others could write to it: make it yours alone, with chown and chmod 600") }
            var bytes = [UInt8](repeating: 0, count: sizeBound + 1)
            var count = 0
            while count < bytes.count {
                let got = try bytes.withUnsafeMutableBytes {
                    try file.fileDescriptor.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[count...]))
                }
                if got == 0 { break }
                count += got
            }
            guard count <= sizeBound else { throw ConfigurationError("it is over \(sizeBound) bytes") }
            return Array(bytes.prefix(count))
        } catch Errno.noSuchFileOrDirectory {
            // What it refuses does not vanish with a drive that is not there.
            if let link = deadEnd(on: path) {
                let subject = link == path ? "it" : "\(link), on the way to it,"
                throw ConfigurationError("\(subject) is a symbolic link that leads nowhere")
            }
            return nil
        } catch {
            throw error as? ConfigurationError ?? ConfigurationError("it cannot be read (\(error))")
        }
    }
}
