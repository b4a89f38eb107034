// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import FoundationEssentials
import Glibc
import SystemPackage

/// Reads the files of the configuration folder, which decide what other devices may do here.
package enum ConfigurationFile {
    /// The most bytes that are read: 64 KiB.
    package static let sizeBound = 64 << 10

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

    /// Reads the lines that say something: neither empty nor a comment, which begins with `#`. White space around them
    /// goes, also the CR of files that were written elsewhere.
    ///
    /// - Parameter read: takes in the line of a number, from 1. An error that it throws gets the number.
    /// - Returns: the first mistake. The lines after it are read all the same.
    static func mistake(
        in content: [UInt8], read: (Int, String) throws(ConfigurationError) -> Void
    ) -> ConfigurationError? {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D }
        var mistake: ConfigurationError?
        for (index, bytes) in content.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            do throws(ConfigurationError) {
                let start = bytes.drop(while: isSpace)
                guard let first = start.first, first != UInt8(ascii: "#") else { continue }
                let line = start.prefix(through: start.lastIndex { !isSpace($0) } ?? start.startIndex)
                guard let text = String(validating: line, as: UTF8.self) else {
                    throw ConfigurationError("it is not UTF-8")
                }
                guard !line.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else {
                    throw ConfigurationError("there is a control character")
                }
                try read(index + 1, text)
            } catch {
                mistake = mistake ?? ConfigurationError(error.problem, line: index + 1)
            }
        }
        return mistake
    }

    // MARK: Commands that change it

    /// The time that a command waits for another one to change the file: 5 s. A change takes a few milliseconds.
    private static let patience = Duration.seconds(5)

    /// Replaces the content of the file while no other command changes it. Blocks.
    ///
    /// - Parameter change: returns the new content; nil if it stays.
    static func edit(
        _ path: FilePath, _ change: ([UInt8]) throws(ConfigurationError) -> [UInt8]?
    ) throws(ConfigurationError) {
        let lock = try lock(path.removingLastComponent())
        defer { withExtendedLifetime(lock) {} }
        guard let content = try change(try contents(of: path) ?? []) else { return }
        guard content.count <= sizeBound else { throw ConfigurationError("it would be over \(sizeBound) bytes") }
        // Some users keep their configuration elsewhere. A link to the file stays one.
        let target = URL(filePath: path.string).resolvingSymlinksInPath()
        do {
            try DurableFile.replace(FilePath(target.path), with: content)
        } catch {
            throw ConfigurationError("it cannot be written (\(error))")
        }
    }

    /// Locks a folder (`flock(2)`) until the result goes. A missing folder is made.
    private static func lock(_ folder: FilePath) throws(ConfigurationError) -> OwnedDescriptor {
        do {
            try DurableFile.makeFolder(folder)
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
