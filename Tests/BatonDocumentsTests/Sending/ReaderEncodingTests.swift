// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("What a reader makes of chunks")
struct ReaderEncodingTests {
    let fixture: WriterFixture
    let pool = BufferPool(budget: 4 << 20)

    init() throws {
        fixture = try WriterFixture()
    }

    /// A record that was read.
    private struct Record {
        let chunk: UInt64
        let encoding: UInt8
        let bottleneck: UInt8
        let size: Int
    }

    /// Takes records apart, by the definition.
    private func take(_ wire: [UInt8], of chunks: some Sequence<UInt64>, in layout: ChunkLayout) -> [Record] {
        var (records, position) = ([Record](), 0)
        for chunk in chunks {
            let encoding = wire[position]
            let payload =
                switch encoding {
                case 0: layout.size(of: chunk)
                case 1: 0
                case _: 4 + wire[position + 2..<position + 6].reduce(0) { $0 << 8 | Int($1) }
                }
            let size = 2 + payload + 16
            records.append(
                Record(chunk: chunk, encoding: encoding, bottleneck: wire[position + 1], size: size))
            position += size
        }
        #expect(position == wire.count)
        return records
    }

    private func source(_ content: [UInt8], _ name: String = "report.pdf") throws -> ScannedDocument {
        let path = try fixture.scratch.makeFile(name, content)
        try DocumentFixture.backdate(path)
        return try DocumentScan.scan(path)
    }

    /// A link of 10 MB/s whose time passes when it carries something, and never otherwise.
    private final class SimulatedLink: Sendable {
        private let clock = Lock(ManualClock())

        var now: Instant { clock.withLock { $0.now } }

        func carry(_ count: Int) -> Duration { wait(.nanoseconds(count * 100)) }

        func wait(_ duration: Duration) -> Duration {
            clock.withLock { $0.advance(by: duration) }
            return duration
        }
    }

    /// Hands everything from a reader to a writer.
    ///
    /// - Returns: what crossed.
    private func pump(
        _ reader: DocumentReader, to writer: DocumentWriter, over link: SimulatedLink? = nil
    ) async throws -> [UInt8] {
        var wire: [UInt8] = []
        var linkWait = Duration.zero
        while let records = try await reader.next(from: pool, linkWait: linkWait) {
            wire += Array(records.buffer.bytes)
            linkWait = link?.carry(records.buffer.count) ?? .zero
            try await writer.write(records.buffer)
            pool.release(records.buffer)
        }
        try await writer.finish()
        return wire
    }

    @Test("Several ranges come in the order in which they were asked for")
    func ranges() async throws {
        let content = DocumentFixture.content(5 << 20 - 7, seed: 70)
        let ranges: [Range<UInt64>] = [4..<5, 0..<1, 2..<2, 1..<3]
        let reader = try await DocumentReader.open(try source(content), ranges: ranges)
        var (wire, counted) = ([UInt8](), UInt64(0))
        while let records = try await reader.next(from: pool, telling: .disk) {
            wire += Array(records.buffer.bytes)
            counted += records.contentByteCount
            pool.release(records.buffer)
        }
        let expected = [4, 0, 1, 2].flatMap { chunk in
            DocumentFixture.record(
                Array(content[chunk << 20..<min((chunk + 1) << 20, content.count)]), bottleneck: 2)
        }
        #expect(wire == expected)
        #expect(counted == UInt64(4 << 20 - 7))
    }

    @Test("Small files go together in a buffer, and each is itself again")
    func smallFiles() async throws {
        let folder = try fixture.scratch.makeFolder("source")
        for number in 0..<300 {
            try fixture.scratch.makeFile(
                "source/\(1000 + number)", DocumentFixture.content(number * 7, seed: UInt64(number)))
        }
        let big = DocumentFixture.content(1 << 20 + 5, seed: 71)
        try fixture.scratch.makeFile("source/big", big)
        let document = try DocumentScan.scan(folder)
        let writer = try await DocumentWriter.begun(document.tree, in: fixture.folder, ledger: fixture.ledger)
        let reader = try await DocumentReader.open(document)
        var buffers: [Int] = []
        while let records = try await reader.next(from: pool) {
            buffers.append(records.buffer.count)
            #expect(records.buffer.count <= ChunkRecord.capacity)
            try await writer.write(records.buffer)
            pool.release(records.buffer)
        }
        // 299 of them are not empty: 314 KiB and their records are one buffer, a whole chunk is the next, its end
        // another.
        #expect(buffers.count == 3, "\(buffers)")
        try await writer.finish()
        let arrived = try await writer.commit()
        for number in 0..<300 {
            let found = try DocumentFixture.read(arrived.appending("\(1000 + number)"))
            #expect(found == DocumentFixture.content(number * 7, seed: UInt64(number)), "\(number)")
        }
        #expect(try DocumentFixture.read(arrived.appending("big")) == big)
        #expect(pool.lentCount == 0)
    }

    /// A writer that waits for all of a document, and what it has of it.
    private func writer(
        of document: ScannedDocument, against old: [UInt8]
    ) async throws -> (DocumentWriter, SignatureIndex) {
        let copy = try fixture.scratch.makeFile("older", old)
        let writer = try await DocumentWriter.create(
            document.tree, from: DocumentFixture.origin, in: try DestinationFolder(fixture.folder),
            ledger: fixture.ledger, against: [copy])
        try await writer.begin(try await writer.missing())
        var index = SignatureIndex(size: try #require(writer.pieceSize))
        while let batch = try await writer.nextSignatures() { try index.append(batch.bytes, basis: batch.basis) }
        return (writer, index)
    }

    @Test("What the other device has an older copy of crosses as what differs")
    func delta() async throws {
        var generator = SeededGenerator()
        let old = generator.bytes(6 << 20)
        var content = old
        content.insert(1, at: 0)
        for _ in 0..<3 { generator.edit(&content) }
        let document = try source(content)
        let (writer, index) = try await self.writer(of: document, against: old)
        let reader = try await DocumentReader.open(document)
        await reader.take(.init(signatures: index))
        let wire = try await pump(reader, to: writer)
        #expect(try DocumentFixture.read(try await writer.commit()) == content, "\(generator)")
        let layout = document.tree.layout
        let records = take(wire, of: layout.allChunks, in: layout)
        #expect(records.contains { $0.encoding == 3 }, "\(generator)")
        #expect(records.allSatisfy { $0.encoding == 3 || $0.encoding == 0 }, "\(generator)")
        // Three edits of at most 100,000 bytes, and pieces of 16 KiB on average around them.
        #expect(wire.count < content.count / 4, "\(generator): \(wire.count) of \(content.count)")
        #expect(
            records.allSatisfy { $0.size <= ChunkRecord.size(ofContent: layout.size(of: $0.chunk)) }, "\(generator)")
    }

    @Test("On a slow link what can be compressed is, once that was tried, and comes back the same")
    func compression() async throws {
        // Text-like: few letters, no repetition of length.
        let content = DocumentFixture.content(16 << 20, seed: 72).map { 0x61 + $0 % 8 }
        let document = try source(content)
        let writer = try await DocumentWriter.begun(document.tree, in: fixture.folder, ledger: fixture.ledger)
        let reader = try await DocumentReader.open(document)
        let link = SimulatedLink()
        await reader.take(.init(takesCompressed: true), now: { link.now })
        let wire = try await pump(reader, to: writer, over: link)
        #expect(try DocumentFixture.read(try await writer.commit()) == content)
        let layout = document.tree.layout
        let records = take(wire, of: layout.allChunks, in: layout)
        #expect(records.count(where: { $0.encoding == 2 }) > 8)
        #expect(records.allSatisfy { $0.encoding == 2 || $0.encoding == 0 })
        #expect(wire.count < content.count * 3 / 4)
    }

    @Test("On a slow link what differs is compressed where that is shorter, and sent as it is where it is not")
    func compressedDifferences() async throws {
        // Of a dozen chunks a fifth is known to the receiver, and all of the others.
        let (count, known) = (12, 200_000)
        let content = DocumentFixture.content(16 << 20, seed: 77).map { 0x61 + $0 % 8 }
        var old: [UInt8] = []
        for chunk in 0..<count { old += content[chunk << 20..<chunk << 20 + known] }
        old += content[(count << 20)...]
        let document = try source(content)
        let (writer, index) = try await self.writer(of: document, against: old)
        let reader = try await DocumentReader.open(document)
        let link = SimulatedLink()
        await reader.take(.init(signatures: index, takesCompressed: true), now: { link.now })
        let wire = try await pump(reader, to: writer, over: link)
        #expect(try DocumentFixture.read(try await writer.commit()) == content)
        let layout = document.tree.layout
        let records = take(wire, of: layout.allChunks, in: layout)
        // Nothing is known of the link with the first.
        #expect(records.map(\.encoding) == [3] + Array(repeating: 2, count: count - 1) + Array(repeating: 3, count: 4))
        let differing = count * (1 << 20 - known)
        #expect(wire.count < differing * 2 / 3, "\(wire.count)")
    }

    @Test("A wait for the link after holes, or after what differs, counts for what shrinks", arguments: [true, false])
    func waitsInBetween(areHoles: Bool) async throws {
        var generator = SeededGenerator(seed: 75)
        let known = generator.manyBytes(400_000)
        let text = DocumentFixture.content(1 << 20, seed: 76).map { 0x61 + $0 % 8 }
        let path = try fixture.scratch.makeFile("report.pdf", [])
        try SystemCalls.call { truncate(path.string, 24 << 20) }
        for chunk in 0..<24 where !areHoles || chunk % 3 == 2 {
            let content = chunk % 3 == 2 ? text : known + generator.manyBytes(1 << 20 - known.count)
            try DocumentFixture.write(content, to: path, at: UInt64(chunk << 20))
        }
        try DocumentFixture.backdate(path)
        let document = try DocumentScan.scan(path)
        let reader = try await DocumentReader.open(document)
        let link = SimulatedLink()
        await reader.take(
            .init(signatures: try DeltaFixture(bases: [known]).index, takesCompressed: true), now: { link.now })
        var (wire, linkWait) = ([UInt8](), Duration.zero)
        while let records = try await reader.next(from: pool, linkWait: linkWait) {
            // Of the waits next to nothing follows what is plain.
            linkWait = link.wait(records.buffer.bytes[0] == 0 ? .milliseconds(10) : .milliseconds(200))
            wire += Array(records.buffer.bytes)
            pool.release(records.buffer)
        }
        let layout = document.tree.layout
        let records = take(wire, of: layout.allChunks, in: layout)
        #expect(records.filter { $0.chunk % 3 != 2 }.allSatisfy { $0.encoding == (areHoles ? 1 : 3) })
        // Behind holes it is known that the link is waited for, and what it takes for a byte from the first plain ones
        // on.
        #expect(records.count { $0.chunk % 3 == 2 && $0.encoding == 2 } >= 6)
    }

    @Test("A receiver that has not said that it takes more gets content as it is")
    func plain() async throws {
        let document = try source([UInt8](repeating: 0x61, count: 3 << 20))
        let reader = try await DocumentReader.open(document)
        var wire: [UInt8] = []
        while let records = try await reader.next(from: pool, linkWait: .seconds(2)) {
            wire += Array(records.buffer.bytes)
            pool.release(records.buffer)
        }
        #expect(wire == DocumentFixture.records([UInt8](repeating: 0x61, count: 3 << 20)))
    }

    @Test("A few bytes are not worth an encoding", arguments: [1, 10, 40])
    func tiny(_ count: Int) async throws {
        let content = DocumentFixture.content(count, seed: 73)
        let document = try source(content)
        let fixtureIndex = try DeltaFixture(bases: [content]).index
        let reader = try await DocumentReader.open(document)
        await reader.take(.init(signatures: fixtureIndex, takesCompressed: true))
        let records = try #require(try await reader.next(from: pool, linkWait: .seconds(2)))
        #expect(Array(records.buffer.bytes) == DocumentFixture.records(content))
        pool.release(records.buffer)
    }

    @Test("Where the time went is counted")
    func times() async throws {
        let reader = try await DocumentReader.open(try source(DocumentFixture.content(4 << 20, seed: 74)))
        var before = await reader.times
        for _ in 0..<4 {
            pool.release(try #require(try await reader.next(from: pool)).buffer)
            let after = await reader.times
            #expect(after.disk > before.disk && after.processor > before.processor)
            before = after
        }
    }
}
