// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

/// Another device hears about the copy that lies at its document's place in a shared folder.
@Suite("Copies that nobody has named")
struct SharedCopyTests {
    private let delta: FolderDelta
    private var scratch: ScratchFolder { delta.writers.scratch }
    private static let least = Int(OlderCopy.leastSharedSize)

    init() throws {
        delta = try FolderDelta()
    }

    /// Bytes of the files whose digests would be told of this copy, the smallest first.
    private func told(of copy: FilePath, for document: FilePath) async throws -> [Int] {
        let tree = try DocumentScan.scan(document).tree
        let writer = try await DocumentWriter.create(
            tree, from: DocumentFixture.origin, in: try DestinationFolder(delta.writers.folder),
            ledger: try PartFileLedger(stateFolder: scratch.filePath.appending("parts")), sharedCopy: copy)
        var sizes: [Int: Int] = [:]
        while let batch = try await writer.nextSignatures() {
            for start in stride(from: 0, to: batch.bytes.count, by: PieceSignature.byteCount) {
                let signature = batch.bytes[start..<start + PieceSignature.byteCount]
                sizes[batch.basis, default: 0] += signature.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            }
        }
        await writer.end()
        return sizes.values.sorted()
    }

    private func content(_ count: Int) -> [UInt8] { DocumentFixture.content(count, seed: 31) }

    @Test("Of a file, from 1 MiB on")
    func file() async throws {
        #expect(OlderCopy.leastSharedSize == 1 << 20)
        let document = try scratch.makeFile("notes", content(3 << 20))
        _ = try scratch.makeFolder("shared")
        for (size, isTold) in [(9, false), (Self.least - 1, false), (Self.least, true)] {
            let copy = scratch.filePath.appending("shared/notes\(size)")
            try DocumentFixture.write(content(size), to: copy)
            #expect(try await told(of: copy, for: document) == (isTold ? [size] : []), "\(size)")
        }
    }

    @Test("Of a folder, the files in it from 1 MiB on")
    func folder() async throws {
        let sizes = [9, Self.least - 1, Self.least, Self.least + 5]
        let document = try delta.makeSource([("inner/name", [1])] + sizes.map { ("n\($0)", content(3 << 20)) })
        let copy = try scratch.makeFolder("shared")
        try SystemCalls.call { mkdir(copy.appending("inner").string, 0o755) }
        try DocumentFixture.write(content(9), to: copy.appending("inner/name"))
        for size in sizes { try DocumentFixture.write(content(size), to: copy.appending("n\(size)")) }
        #expect(try await told(of: copy, for: document) == [Self.least, Self.least + 5])
        // A receiver that names this folder itself means all of its files.
        let writer = try await DocumentWriter.create(
            try DocumentScan.scan(document).tree, from: DocumentFixture.origin,
            in: try DestinationFolder(delta.writers.folder),
            ledger: try PartFileLedger(stateFolder: scratch.filePath.appending("parts")), against: [copy])
        var bases = Set<Int>()
        while let batch = try await writer.nextSignatures() { bases.insert(batch.basis) }
        #expect(bases.count == sizes.count + 1)
        await writer.end()
    }

    @Test("A folder is no state of a file")
    func folderForFile() async throws {
        let document = try scratch.makeFile("notes", content(3 << 20))
        let copy = try scratch.makeFolder("shared")
        try DocumentFixture.write(content(2 << 20), to: copy.appending("notes"))
        #expect(try await told(of: copy, for: document).isEmpty)
    }

    @Test("A file is no state of a folder")
    func fileForFolder() async throws {
        let document = try delta.makeSource([("a", content(3 << 20))])
        let copy = try scratch.makeFile("shared", content(2 << 20))
        #expect(try await told(of: copy, for: document).isEmpty)
    }

    @Test("What is not there, or cannot be read, is done without")
    func missing() async throws {
        let document = try scratch.makeFile("notes", content(3 << 20))
        for path in [scratch.filePath.appending("nothing"), "/dev/null"] {
            #expect(try await told(of: path, for: document).isEmpty)
        }
    }
}
