// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
package import FoundationEssentials
import Glibc
package import SystemPackage

/// A new folder of mode 0700 for one test.
///
/// A test that keeps it in a local variable says `defer { folder.remove() }`, because its path does not keep the object
/// alive. A stored folder is removed with the object. When the process ends, everything goes that is left: the folders
/// of objects that are still referenced, and what a task wrote during or after the removal.
package final class ScratchFolder: Sendable {
    /// The parent of all scratch folders: `TMPDIR`, by default `/tmp`.
    package static let base = FilePath(FileManager.default.temporaryDirectory.path)

    /// Every folder that this process has made. A removed one stays in the list, because a task may make it again.
    private static let made: Lock<[String]> = {
        atexit { for path in ScratchFolder.made.withLock({ $0 }) { ScratchFolder.removeTree(at: path) } }
        return Lock([])
    }()

    /// The path. It leaves room for the name of a Unix-domain socket, whose path has 107 bytes at most.
    package let path: String

    /// The same as a `FilePath`.
    package var filePath: FilePath { FilePath(path) }

    /// The same as a URL, without a slash at its end.
    package var url: URL { URL(filePath: path) }

    /// Makes the folder.
    ///
    /// - Parameter label: a short word for its name.
    package init(_ label: String = "test") throws {
        var template = Array("\(Self.base)/baton-\(label)-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Errno(rawValue: errno) }
        let made = FilePath(platformString: template).string
        path = made
        Self.made.withLock { $0.append(made) }
    }

    deinit { remove() }

    /// Removes the folder with its content. Idempotent.
    package func remove() { Self.removeTree(at: path) }

    private static func removeTree(at path: String) {
        // A task of the test may write into it meanwhile.
        for _ in 0..<100 where FileManager.default.fileExists(atPath: path) {
            try? FileManager.default.removeItem(atPath: path)
        }
    }

    /// Writes a file, and makes the folders on the way to it.
    @discardableResult
    package func write(_ text: String, to name: String, mode: Int = 0o600) throws -> FilePath {
        try write(Array(text.utf8), to: name, mode: mode)
    }

    /// The same with any bytes.
    @discardableResult
    package func write(_ bytes: [UInt8], to name: String, mode: Int = 0o600) throws -> FilePath {
        let file = filePath.appending(name)
        try FileManager.default.createDirectory(
            atPath: file.removingLastComponent().string, withIntermediateDirectories: true)
        try Data(bytes).write(to: URL(filePath: file.string))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.string)
        return file
    }
}
