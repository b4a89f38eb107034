// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import CLinux
import Foundation
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Files with holes")
struct SparseTests {
    /// Bytes that a file takes on the disk.
    private static func allocated(_ path: FilePath) throws -> Int { try SystemCalls.status(at: path).st_blocks * 512 }

    @Test("Holes stay holes, within chunks as well", arguments: [0, 1 << 20, 10 << 20 + 123])
    func holes(_ end: Int) async throws {
        let fixture = try WriterFixture()
        let source = try fixture.scratch.makeFile("holes", [])
        try SystemCalls.call { truncate(source.string, 40 << 20 + end) }
        // At the start, within a chunk, across two, and a chunk that is full.
        for (offset, count) in [(0, 100), (5 << 20 + 300_000, 5000), (8 << 20 - 4096, 8192), (12 << 20, 1 << 20)] {
            try DocumentFixture.write(
                DocumentFixture.content(count, seed: UInt64(offset)), to: source, at: UInt64(offset))
        }
        try DocumentFixture.backdate(source)
        let scanned = try DocumentScan.scan(source)
        #expect(scanned.tree[0].file?.isSparse == true)
        let arrived = try await DocumentTransferTests.transfer(
            scanned, to: fixture.folder, ledger: fixture.ledger, pool: BufferPool())
        #expect(try DocumentFixture.read(arrived) == DocumentFixture.read(source))
        // A block that holds some data counts as data throughout.
        #expect(try Self.allocated(arrived) <= 1 << 20 + 5 * (8 << 10) + 8192)
        fixture.expectOnly(["holes"])
    }

    @Test("A hole of one block stays one, also in a small file")
    func block() async throws {
        let fixture = try WriterFixture()
        let source = try fixture.scratch.makeFile("small", [])
        try SystemCalls.call { truncate(source.string, 100_000) }
        for range in [0..<20_480, 24_576..<65_536, 73_728..<100_000] {
            let content = DocumentFixture.content(range.count, seed: UInt64(range.lowerBound))
            try DocumentFixture.write(content, to: source, at: UInt64(range.lowerBound))
        }
        try DocumentFixture.backdate(source)
        let scanned = try DocumentScan.scan(source)
        #expect(scanned.tree[0].file?.isSparse == true)
        let arrived = try await DocumentTransferTests.transfer(
            scanned, to: fixture.folder, ledger: fixture.ledger, pool: BufferPool())
        #expect(try DocumentFixture.read(arrived) == DocumentFixture.read(source))
        #expect(try Self.allocated(arrived) == Self.allocated(source))
    }

    @Test("64 GiB of a hole take no disk, no time and under 64 MiB of memory", .timeLimit(.minutes(5)))
    func large() async throws {
        let fixture = try WriterFixture()
        let source = try fixture.scratch.makeFile("large", [])
        let size = 64 << 30
        guard truncate(source.string, size) == 0 else {
            // The file system's own limit: nothing of ours.
            #expect(errno == EFBIG)
            print("64 GiB of a hole: NOT TRIED, the file system of \(fixture.scratch.path) takes no file of that size")
            return
        }
        try DocumentFixture.write([1, 2, 3], to: source, at: UInt64(40 << 30))
        await #expect(processExitsWith: .success) { [path = fixture.scratch.path as String] in
            let scratch = FilePath(path)
            _ = try await DocumentTransferTests.transfer(
                try DocumentScan.scan(scratch.appending("large")), to: scratch.appending("destination"),
                ledger: try PartFileLedger(stateFolder: scratch.appending("parts")), pool: BufferPool())
            let peak = try DocumentFixture.peakMemory()
            #expect(peak < 64 << 20, "\(peak) bytes")
        }
        let arrived = fixture.folder.appending("large")
        #expect(try DocumentFixture.size(at: arrived) == size)
        #expect(try Self.allocated(arrived) <= 128 << 10)
        let file = try SystemCalls.open(arrived, O_RDONLY)
        var bytes = [UInt8](repeating: 9, count: 5)
        let count = try bytes.withUnsafeMutableBytes { try SystemCalls.read(file, into: $0, at: UInt64(40 << 30) - 1) }
        #expect(count == 5 && bytes == [0, 1, 2, 3, 0])
    }

    @Test("What an earlier attempt left of a chunk is cleared", arguments: [true, false], [true, false])
    func garbage(_ isSparse: Bool, _ isAllZeros: Bool) async throws {
        let fixture = try WriterFixture()
        let tree = try DocumentFixture.tree(3 << 20, version: 6, isSparse: isSparse)
        var content = [UInt8](repeating: 0, count: 3 << 20)
        if !isAllZeros { content[1 << 20 + 500_000] = 7 }
        do {
            let writer = try await DocumentWriter.begun(tree, in: fixture.folder, ledger: fixture.ledger)
            try await writer.write(ResumeFixture.records([0..<1], of: content))
            #expect(await writer.end() == 1 << 20)
        }
        // As a process leaves it that is killed before the checksum of the chunk has come.
        let part = fixture.folder.appending(try #require(fixture.names.first))
        try DocumentFixture.write([UInt8](repeating: 0xEE, count: 1 << 20), to: part, at: 1 << 20)
        let writer = try await DocumentWriter.begun(tree, in: fixture.folder, ledger: fixture.ledger)
        #expect(try await writer.missing() == [1..<3])
        if isAllZeros {
            let zeros = DocumentFixture.record([UInt8](repeating: 0, count: 1 << 20), encoding: 1, saying: [])
            try await writer.write(zeros + zeros)
        } else {
            try await writer.write(ResumeFixture.records([1..<3], of: content))
        }
        #expect(try DocumentFixture.read(try await writer.commit()) == content)
        if isSparse { #expect(try Self.allocated(fixture.document) <= 128 << 10) }
        fixture.expectOnly(["report.pdf"])
    }
}
