// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import CLinux
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Journal of a transfer")
struct TransferJournalTests {
    let scratch: ScratchFolder
    let path: FilePath
    let tree: DocumentTree

    init() throws {
        scratch = try ScratchFolder()
        path = scratch.filePath.appending("journal")
        tree = try DocumentFixture.tree(1000 << 20, version: 1)
    }

    private var header: JournalHeader { JournalHeader(origin: DocumentFixture.origin, tree: tree) }

    private static func checksum(_ chunk: UInt64) -> ChunkChecksum { ChunkChecksum(high: chunk &* 3, low: ~chunk) }

    private func append(_ chunks: some Sequence<UInt64>, to journal: TransferJournal) throws {
        for chunk in chunks { journal.append(chunk, Self.checksum(chunk)) }
        try journal.flush()
    }

    private func open() throws -> TransferJournal { try #require(try TransferJournal.open(path)).journal }

    /// The journal's content: chunks that it vouches for, and chunks that are unsure.
    private func content() throws -> (vouched: [Range<UInt64>], unsure: [UInt64]) {
        let content = try #require(try TransferJournal.content(at: path))
        for (chunk, checksum) in content.unsure { #expect(checksum == Self.checksum(chunk)) }
        return (Array(content.vouched.ranges), content.unsure.map(\.number))
    }

    private func size() throws -> UInt64 { UInt64(try DocumentFixture.size(at: path)) }

    @Test("What was written is read again and can be gone on with, and what was not flushed is not there")
    func reading() throws {
        let journal = try TransferJournal.create(at: path, header)
        try append(3..<7, to: journal)
        journal.append(9, Self.checksum(9))
        #expect(!journal.isFlushed)
        #expect(try content().vouched.isEmpty && content().unsure == [3, 4, 5, 6])
        let again = try open()
        try append([0, 8], to: again)
        try again.checkpoint()
        try append([1], to: again)
        #expect(try content().vouched == [0..<1, 3..<7, 8..<9] && content().unsure == [1])
        let header = try #require(try TransferJournal.content(at: path)?.header)
        #expect(header.origin == DocumentFixture.origin && header.tree.isSameVersion(as: tree))
    }

    @Test("What is found not to be there is gone for good, whatever vouches for it later")
    func replacedTail() throws {
        let journal = try TransferJournal.create(at: path, header)
        try append(0..<2, to: journal)
        try journal.checkpoint()
        try append(2..<9, to: journal)
        let again = try open()
        try again.replaceTail([2, 5, 8].map { ($0, Self.checksum($0)) })
        #expect(try content().vouched == [0..<2] && content().unsure == [2, 5, 8])
        try again.checkpoint()
        try append([3], to: again)
        #expect(try content().vouched == [0..<3, 5..<6, 8..<9] && content().unsure == [3])
    }

    @Test("A damaged entry costs its chunk, and a damaged checkpoint a reading, whichever bit it is")
    func damagedEntry() throws {
        for bit in stride(from: 0, to: 320, by: 7) {
            for isCheckpoint in [false, true] {
                let journal = try TransferJournal.create(at: path, header)
                try append(0..<4, to: journal)
                try journal.checkpoint()
                let place = try size() - (isCheckpoint ? 40 : 120) + UInt64(bit / 8)
                let byte = try DocumentFixture.read(path)[Int(place)]
                try DocumentFixture.write([byte ^ (1 << UInt8(bit % 8))], to: path, at: place)
                let found = try content()
                #expect(found.vouched == (isCheckpoint ? [] : [0..<2, 3..<4]), "bit \(bit)")
                #expect(found.unsure == (isCheckpoint ? [0, 1, 2, 3] : []), "bit \(bit)")
            }
        }
    }

    @Test("Entries that changed places are damaged both, and a torn end is written over by what comes next")
    func places() throws {
        let journal = try TransferJournal.create(at: path, header)
        try append(0..<4, to: journal)
        let (bytes, end) = (try DocumentFixture.read(path), try size())
        try DocumentFixture.write(Array(bytes.suffix(80).prefix(40)), to: path, at: end - 40)
        #expect(try content().unsure == [0, 1, 2])
        try SystemCalls.call { truncate(path.string, off_t(end - 53)) }
        #expect(try content().unsure == [0, 1])
        try append([7, 8], to: try open())
        #expect(try content().unsure == [0, 1, 7, 8])
    }

    @Test("Room behind the last entry that was never written is none, and is written over")
    func unwritten() throws {
        try append(0..<2, to: try TransferJournal.create(at: path, header))
        try SystemCalls.call { truncate(path.string, off_t(try! size() + 4000)) }
        #expect(try content().unsure == [0, 1])
        try append([5], to: try open())
        #expect(try content().unsure == [0, 1, 5])
    }

    @Test("Chunks that the document has not are not believed")
    func chunksBeyond() throws {
        let journal = try TransferJournal.create(at: path, header)
        try append([5, 1000, .max], to: journal)
        #expect(try content().unsure == [5])
        try journal.checkpoint()
        #expect(try content().vouched == [5..<6])
    }

    @Test("A damaged or cut header costs everything, and nothing crashes")
    func damagedHeader() throws {
        try append(0..<3, to: try TransferJournal.create(at: path, header))
        let (bytes, start) = (try DocumentFixture.read(path), try size() - 120)
        for place in 0..<Int(start) {
            try DocumentFixture.write([bytes[place] ^ 1], to: path, at: UInt64(place))
            #expect(try TransferJournal.open(path) == nil, "byte \(place)")
            #expect(try TransferJournal.content(at: path)?.header == nil, "byte \(place)")
            try DocumentFixture.write([bytes[place]], to: path, at: UInt64(place))
        }
        #expect(try content().unsure == [0, 1, 2])
        for length in stride(from: Int(start) - 1, through: 0, by: -3) {
            try SystemCalls.call { truncate(path.string, off_t(length)) }
            #expect(try TransferJournal.open(path) == nil)
        }
    }

    @Test("A link in the place of a journal is not followed, and one that is too large is not read")
    func strangers() throws {
        try append(0..<3, to: try TransferJournal.create(at: path, header))
        let link = scratch.filePath.appending("link")
        try SystemCalls.call { symlink(path.string, link.string) }
        #expect(throws: Errno.tooManySymbolicLinkLevels) { try TransferJournal.open(link) }
        #expect(throws: Errno.tooManySymbolicLinkLevels) { try TransferJournal.create(at: link, header) }
        try SystemCalls.call { truncate(path.string, off_t(TransferJournal.sizeLimit) + 1) }
        #expect(try TransferJournal.open(path) == nil)
    }

    /// A disk is a set of chunks that it has for good, and a set of those that can be read.
    @Test("Through kills, power cuts and disks that fail it vouches for nothing that is not there")
    func courses() throws {
        var generator = SeededGenerator()
        for round in 0..<300 {
            var (durable, readable) = (Set<UInt64>(), Set<UInt64>())
            var journal = try TransferJournal.create(at: path, header)
            for _ in 0..<6 {
                var isUsable = true
                for _ in 0..<Int.random(in: 0...5, using: &generator) where isUsable {
                    for _ in 0..<Int.random(in: 0...4, using: &generator) {
                        let chunk = UInt64.random(in: 0..<20, using: &generator)
                        readable.insert(chunk)
                        journal.append(chunk, Self.checksum(chunk))
                        if Bool.random(using: &generator) { try journal.flush() }
                    }
                    switch Int.random(in: 0..<4, using: &generator) {
                    case 0:
                        // The disk fails: it takes some, and what it did not take is not read again.
                        readable = durable.union(readable.filter { _ in Bool.random(using: &generator) })
                        isUsable = false
                    case 1:
                        durable.formUnion(readable)
                        try journal.checkpoint()
                    case _: break
                    }
                }
                if Bool.random(using: &generator) {
                    durable.formUnion(readable.filter { _ in Bool.random(using: &generator) })
                    readable = durable
                }
                let opened = try #require(try TransferJournal.open(path))
                let vouched = Set(opened.content.vouched.ranges.joined())
                #expect(vouched.isSubset(of: durable), "\(generator), round \(round)")
                journal = opened.journal
                let there = opened.content.unsure.filter { readable.contains($0.number) }
                if there.count < opened.content.unsure.count { try journal.replaceTail(there) }
                let told = vouched.union(there.map(\.number))
                readable = readable.intersection(told).union(durable)
            }
        }
    }
}
