// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
package import SystemPackage

/// Reads the files of the configuration folder, which decide what other devices may do here.
package enum ConfigurationFile {
    /// The most bytes that are read: 64 KiB.
    package static let sizeBound = 64 << 10

    /// The folder that `~/` stands for in this process's environment; `nil` if HOME is not set or relative.
    package static var userHome: FilePath? {
        guard let home = getenv("HOME") else { return nil }
        let path = FilePath(platformString: home)
        return path.isAbsolute ? path : nil
    }

    /// A state of the file.
    enum Version: Sendable, Hashable {
        case present(DurableFile.Version)
        /// Why there is none, and the symbolic link that leads nowhere, if that is why.
        case missing(Errno, deadEnd: FilePath?)

        /// The state now. Blocks.
        init(of path: FilePath) {
            do throws(Errno) {
                self = .present(try DurableFile.Version(of: path))
            } catch {
                self = .missing(error, deadEnd: deadEnd(on: path))
            }
        }

        /// Whether the kernel has the same state in memory. Never waits for a disk.
        func isKept(at path: FilePath) -> Bool {
            do throws(Errno) {
                return self == .present(try DurableFile.Version(inMemoryOf: path))
            } catch {
                return self == .missing(error, deadEnd: nil)
            }
        }
    }

    /// The symbolic link on the way to a path, or at its end, that leads nowhere; `nil` if there is none.
    private static func deadEnd(on path: FilePath) -> FilePath? {
        var place = path
        repeat {
            guard let entry = try? place.stat(followTargetSymlink: false) else { continue }
            return entry.type == .symbolicLink && (try? place.stat()) == nil ? place : nil
        } while place.removeLastComponent()
        return nil
    }

    /// Reads the file. Blocks.
    ///
    /// - Returns: `nil` if there is none.
    /// - Throws: what is wrong with it. It must belong to this user (or root), and nobody else may write to it.
    static func contents(of path: FilePath) throws(ConfigurationError) -> [UInt8]? {
        do throws(Errno) {
            return try DurableFile.read(path, limit: sizeBound, isOwnersOnly: true)
        } catch {
            switch error {
            case .noSuchFileOrDirectory:
                // A drive that is away must not take the refusals of its file with it.
                guard let link = deadEnd(on: path) else { return nil }
                let subject = link == path ? "it" : "\(link), on the way to it,"
                throw ConfigurationError("\(subject) is a symbolic link that leads nowhere")
            case .invalidArgument: throw ConfigurationError("it is no file")
            case .notPermitted:
                throw ConfigurationError("others could write to it: make it yours alone, with chown and chmod 600")
            case .fileTooLarge: throw ConfigurationError("it is over \(sizeBound) bytes")
            case _: throw ConfigurationError("it cannot be read (\(error))")
            }
        }
    }
}
