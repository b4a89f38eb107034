// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import Logging
import SystemPackage

@testable import BatonDocuments
@testable import BatonNode

/// A folder that is shared as `Docs`, with files and links in it, and who translates URLs of it: one for all inputs of
/// a process.
///
/// It lies in TMPDIR, which Scripts/fuzz makes and removes.
struct SharedFolder: Sendable {
    /// Without links.
    let folder: FilePath
    let files: SharedFiles

    static let shared = Result { try SharedFolder() }

    private init() throws {
        let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(base)/baton-fuzz-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Errno(rawValue: errno) }
        let home = try FileLookup.resolved(FilePath(platformString: template))
        folder = home.appending("docs")
        for name in [folder, folder.appending("d")] {
            guard name.withPlatformString({ mkdir($0, 0o755) }) == 0 else { throw Errno(rawValue: errno) }
        }
        for file in [folder.appending("a"), folder.appending("d/b?"), home.appending("outside")] {
            try FileDescriptor.open(file, .writeOnly, options: .create, permissions: .ownerReadWrite).close()
        }
        for (link, target) in [("in", "d/b?"), ("out", "../outside"), ("up", ".."), ("loop", "loop"), ("root", "/")] {
            let result = folder.appending(link).withPlatformString { symlink(target, $0) }
            guard result == 0 else { throw Errno(rawValue: errno) }
        }
        let list = home.appending("shared-roots")
        let descriptor = try FileDescriptor.open(
            list, .writeOnly, options: .create, permissions: .ownerReadWrite)
        let line = "Docs=\(folder)\n"
        _ = try descriptor.closeAfter { try descriptor.writeAll(line.utf8) }
        files = SharedFiles(
            path: list, on: try BlockingExecutor(name: "baton-fuzz"),
            logger: Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() })
    }
}
