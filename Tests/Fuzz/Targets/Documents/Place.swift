// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

@testable import BatonDocuments

/// A folder to receive into, a ledger beside it, and the thread that writes: one for all inputs of a process.
///
/// It lies in TMPDIR, which Scripts/fuzz makes and removes.
struct Place: Sendable {
    let folder: FilePath
    let ledger: PartFileLedger
    let loop: EventLoop
    private let state: FilePath

    nonisolated(unsafe) private static var made: Place?  // reason: the engine runs one input at a time, on one thread

    static func shared() throws -> Place {
        if let made { return made }
        let place = try Place()
        made = place
        return place
    }

    private init() throws {
        let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(base)/baton-fuzz-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Errno(rawValue: errno) }
        let root = FilePath(platformString: template)
        folder = root.appending("inbox")
        state = root.appending("state")
        guard folder.withPlatformString({ mkdir($0, 0o755) }) == 0 else { throw Errno(rawValue: errno) }
        ledger = try PartFileLedger(stateFolder: state)
        loop = EventLoop(name: "fuzz")
    }

    /// Puts an empty file under the name; false where the file system refuses it.
    func occupy(_ label: DocumentLabel) -> Bool {
        guard
            let file = try? FileDescriptor.open(
                path(label.bytes), .writeOnly, options: .create, permissions: .ownerReadWrite)
        else { return false }
        return (try? file.close()) != nil
    }

    /// The names in the folder, in no order.
    var names: [[UInt8]] { Self.names(in: folder) }

    var ledgerIsEmpty: Bool { Self.names(in: state).isEmpty }

    func content(of label: DocumentLabel) -> [UInt8] {
        (try? SystemCalls.contents(of: path(label.bytes), limit: 8 << 20)) ?? []
    }

    func clear() {
        for name in names { _ = path(name).withPlatformString { unlink($0) } }
        for name in Self.names(in: state) {
            _ = state.appending(String(decoding: name, as: UTF8.self)).withPlatformString { unlink($0) }
        }
    }

    private func path(_ name: [UInt8]) -> FilePath {
        let terminated = name.map { CChar(bitPattern: $0) } + [0]
        guard let component = FilePath.Component(platformString: terminated) else { return folder }
        return folder.appending(component)
    }

    private static func names(in folder: FilePath) -> [[UInt8]] {
        guard let stream = folder.withPlatformString({ opendir($0) }) else { return [] }
        defer { closedir(stream) }
        var names: [[UInt8]] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                [UInt8](bytesOf: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self))
            }
            if name != [46], name != [46, 46] { names.append(name) }
        }
        return names
    }
}
