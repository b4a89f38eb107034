// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonDocuments

/// The findings of a verifier in a stream.
private struct Found: Equatable {
    var content: [UInt64: [UInt8]] = [:]
    var zeros: [UInt64] = []
    var verified: [UInt64] = []
}

@Suite("Encodings of chunk records")
struct ChunkEncodingTests {
    static let megabyte = DocumentFixture.megabyte

    private static func length(_ count: Int) -> [UInt8] {
        withUnsafeBytes(of: UInt32(count).bigEndian) { Array($0) }
    }

    /// A record whose payload is the first half of its content: an encoding that these tests can undo.
    private static func thinned(_ chunk: [UInt8], encoding: UInt8) -> [UInt8] {
        let payload = Array(chunk[..<(chunk.count / 2)])
        return DocumentFixture.record(chunk, encoding: encoding, saying: length(payload.count) + payload)
    }

    /// A chunk that is its own first half twice.
    private static func doubled(_ count: Int, seed: UInt64) -> [UInt8] {
        let half = DocumentFixture.content(count / 2, seed: seed)
        return half + half
    }

    private static func undo(
        _: ChunkRecord.Encoding, _ payload: UnsafeRawBufferPointer, _ content: UnsafeMutableRawBufferPointer
    ) throws(DocumentError) {
        guard payload.count * 2 == content.count else { throw DocumentError(.badRecord, "test") }
        UnsafeMutableRawBufferPointer(rebasing: content[..<payload.count]).copyMemory(from: payload)
        UnsafeMutableRawBufferPointer(rebasing: content[payload.count...]).copyMemory(from: payload)
    }

    private func label() throws -> DocumentLabel { try DocumentLabel(Array("report.pdf".utf8)) }

    /// Gives `wire` to a verifier in slices, by one record at a time where `byRecord` says so.
    private func verify(
        _ wire: [UInt8], sizes: [UInt64], ranges: [Range<UInt64>]? = nil, decodes: Bool = true, byRecord: Bool = false,
        slices: () -> Int = { 1 << 16 }
    ) throws -> Found {
        let layout = try #require(ChunkLayout(fileSizes: sizes))
        guard var verifier = ChunkVerifier(layout: layout, ranges: ranges ?? [layout.allChunks], label: try label())
        else { throw DocumentError(.badRange, "") }
        var found = Found()
        func handle(_ chunk: ChunkVerifier.Chunk) {
            found.verified.append(chunk.number)
            guard let content = chunk.content else { return found.zeros.append(chunk.number) }
            found.content[chunk.number] = Array(content)
            #expect(chunk.checksum == ChunkChecksum(of: content))
        }
        var position = 0
        while position < wire.count {
            let end = min(wire.count, position + max(1, slices()))
            let slice: ArraySlice<UInt8> = wire[position..<end]
            let undo: ChunkVerifier.Decoder = Self.undo
            let decode = decodes ? undo : nil
            var taken = slice.count
            try slice.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) throws -> Void in
                if byRecord {
                    taken = try verifier.receiveRecord(bytes, decode: decode, handle: handle)
                } else {
                    try verifier.receive(bytes, decode: decode, handle: handle)
                }
            }
            let count = verifier.verifiedChunkCount
            #expect(count == UInt64(found.verified.count))
            if byRecord, taken < end - position {
                // It stopped at the end of a record.
                #expect(taken > 0)
            }
            position += taken
        }
        try verifier.finish()
        return found
    }

    /// A document of several files with a chunk of each encoding.
    private struct Mixed {
        let sizes: [UInt64] = [UInt64(ChunkEncodingTests.megabyte) * 2 + 500, 0, 1000, 1 << 20, 7]
        let chunks: [[UInt8]]
        let records: [[UInt8]]

        init(seed: UInt64) {
            chunks = [
                DocumentFixture.content(ChunkEncodingTests.megabyte, seed: seed),
                ChunkEncodingTests.doubled(ChunkEncodingTests.megabyte, seed: seed &+ 1),
                [UInt8](repeating: 0, count: 500), ChunkEncodingTests.doubled(1000, seed: seed &+ 2),
                [UInt8](repeating: 0, count: ChunkEncodingTests.megabyte), DocumentFixture.content(7, seed: seed),
            ]
            records = [
                DocumentFixture.record(chunks[0]), ChunkEncodingTests.thinned(chunks[1], encoding: 2),
                DocumentFixture.record(chunks[2], encoding: 1, saying: []),
                ChunkEncodingTests.thinned(chunks[3], encoding: 3),
                DocumentFixture.record(chunks[4], encoding: 1, saying: []), DocumentFixture.record(chunks[5]),
            ]
        }

        func expect(_ found: Found, _ order: [UInt64], _ comment: Comment) {
            #expect(found.verified == order, comment)
            #expect(found.zeros == order.filter { $0 == 2 || $0 == 4 }, comment)
            for chunk in order where chunk != 2 && chunk != 4 {
                #expect(found.content[chunk] == chunks[Int(chunk)], comment)
            }
        }
    }

    @Test("Every encoding, in slices of any size")
    func slicing() throws {
        var generator = SeededGenerator()
        let mixed = Mixed(seed: generator.next())
        let wire = Array(mixed.records.joined())
        for byRecord in [false, true] {
            for largest in [9, 1000, 1 << 20, 1 << 24] {
                let found = try verify(wire, sizes: mixed.sizes, byRecord: byRecord) {
                    // Small ones everywhere would take minutes; they come in runs.
                    Bool.random(using: &generator)
                        ? Int.random(in: 1...largest, using: &generator)
                        : Int.random(in: 1...1 << 18, using: &generator)
                }
                mixed.expect(found, [0, 1, 2, 3, 4, 5], "\(generator) \(largest) \(byRecord)")
            }
        }
        // One byte at a time through the small records, where every field has a seam.
        let small = Array(mixed.records[2...3].joined())
        let found = try verify(small, sizes: mixed.sizes, ranges: [2..<4]) { 1 }
        mixed.expect(found, [2, 3], "\(generator)")
    }

    @Test("Several ranges, in the order in which they were asked for")
    func ranges() throws {
        let mixed = Mixed(seed: 7)
        let order: [UInt64] = [4, 5, 0, 2, 3]
        let wire = order.flatMap { mixed.records[Int($0)] }
        let found = try verify(wire, sizes: mixed.sizes, ranges: [4..<6, 1..<1, 0..<1, 6..<6, 2..<4])
        mixed.expect(found, order, "several ranges")
        #expect(try verify([], sizes: mixed.sizes, ranges: []).verified.isEmpty)
        #expect(try verify([], sizes: mixed.sizes, ranges: [3..<3]).verified.isEmpty)
    }

    @Test("A chunk that is handed on may lie in the room that its owner gave")
    func ownRoom() throws {
        let mixed = Mixed(seed: 9)
        let layout = try #require(ChunkLayout(fileSizes: mixed.sizes))
        guard var verifier = ChunkVerifier(layout: layout, ranges: [layout.allChunks], label: try label()) else {
            return
        }
        let room = Buffer(capacity: ChunkRecord.capacity)
        verifier.room = room
        let wire = Array(mixed.records.joined())
        var position = 0
        while position < wire.count {
            position += try wire[position..<min(wire.count, position + 300_000)].withUnsafeBytes { bytes in
                try verifier.receiveRecord(bytes, decode: Self.undo) { (chunk) throws(DocumentError) in
                    // Its owner uses the room for the second half.
                    guard let content = chunk.content else { return }
                    let half = UnsafeRawBufferPointer(rebasing: content[(content.count / 2)...])
                    #expect(room.append(half) == half.count)
                    #expect(room.bytes.elementsEqual(mixed.chunks[Int(chunk.number)].suffix(half.count)))
                    room.count = 0
                }
            }
        }
        let isComplete = verifier.isComplete
        #expect(isComplete)
    }

    @Test("A record at a time is taken, and no byte of the next")
    func oneRecord() throws {
        let mixed = Mixed(seed: 8)
        let wire = Array(mixed.records.joined())
        let layout = try #require(ChunkLayout(fileSizes: mixed.sizes))
        guard var verifier = ChunkVerifier(layout: layout, ranges: [layout.allChunks], label: try label()) else {
            return
        }
        var position = 0
        for record in mixed.records {
            position += try wire[position...].withUnsafeBytes {
                try verifier.receiveRecord($0, decode: Self.undo) { _ in }
            }
            #expect(wire[..<position].suffix(record.count).elementsEqual(record))
        }
        #expect(position == wire.count)
        let isComplete = verifier.isComplete
        #expect(isComplete)
    }

    @Test("What the sender waits for is told, and a value of the future says nothing")
    func bottleneck() throws {
        let layout = try #require(ChunkLayout(fileSizes: [1, 1, 1, 1, 1, 1]))
        guard var verifier = ChunkVerifier(layout: layout, ranges: [layout.allChunks], label: try label()) else {
            return
        }
        for (value, expected) in [
            (0, Bottleneck.unknown), (1, .link), (2, .disk), (3, .processor), (4, .unknown), (255, .unknown),
        ] as [(UInt8, Bottleneck)] {
            try DocumentFixture.record([9], bottleneck: value).withUnsafeBytes { try verifier.receive($0) { _ in } }
            let told = verifier.senderBottleneck
            #expect(told == expected)
        }
    }

    @Test("What is encoded is refused where nobody asked for it", arguments: [2, 3] as [UInt8])
    func unasked(_ encoding: UInt8) async throws {
        let record = Self.thinned(Self.doubled(1000, seed: 1), encoding: encoding)
        let code = await DocumentFixture.code { _ = try verify(record, sizes: [1000], decodes: false) }
        #expect(code == .badRecord)
        #expect(try verify(record, sizes: [1000]).verified == [0])
    }

    @Test("Encodings that do not exist", arguments: [4, 5, 16, 127, 128, 255] as [UInt8])
    func unknownEncoding(_ encoding: UInt8) async throws {
        let record = DocumentFixture.record(DocumentFixture.content(100, seed: 1), encoding: encoding)
        #expect(await DocumentFixture.code { _ = try verify(record, sizes: [100]) } == .badRecord)
    }

    @Test("Lengths of nothing, and of more than the content", arguments: [0, 1001, 1 << 20, 1 << 31, 0xFFFF_FFFF])
    func hostileLength(_ count: Int) async throws {
        for encoding in [2, 3] as [UInt8] {
            let start = [encoding, 0] + Self.length(count)
            let code = await DocumentFixture.code { _ = try verify(start, sizes: [1000, 1 << 20], slices: { 1 }) }
            #expect(code == .badRecord, "\(encoding)")
            // Said before a byte of it is gathered.
            #expect(await DocumentFixture.code { _ = try verify(start, sizes: [1000]) } == .badRecord, "\(encoding)")
        }
    }

    @Test("As many bytes as the content has are the bound, and taken")
    func longestPayload() throws {
        let layout = try #require(ChunkLayout(fileSizes: [1 << 20]))
        guard var verifier = ChunkVerifier(layout: layout, ranges: [0..<1], label: try label()) else { return }
        let chunk = DocumentFixture.content(1 << 20, seed: 3)
        let wire = DocumentFixture.record(chunk, encoding: 2, saying: Self.length(chunk.count) + chunk)
        try wire.withUnsafeBytes { wire in
            try verifier.receive(
                wire,
                decode: { (_, payload, content) throws(DocumentError) in content.copyMemory(from: payload) },
                handle: { _ in })
        }
        let isComplete = verifier.isComplete
        #expect(isComplete)
    }

    @Test("Content that is decoded is compared as well")
    func decodedChecksum() async throws {
        for position in [6, 300, 505] {
            var wire = Self.thinned(Self.doubled(1000, seed: 2), encoding: 3)
            wire[position] ^= 4
            #expect(await DocumentFixture.code { _ = try verify(wire, sizes: [1000]) } == .checksumMismatch)
        }
    }

    @Test("Zeros have a checksum too, that of their size")
    func zerosChecksum() async throws {
        for size in [1, 500, 1 << 20] {
            let zeros = [UInt8](repeating: 0, count: size)
            var record = DocumentFixture.record(zeros, encoding: 1, saying: [])
            #expect(record.count == 18)
            #expect(try verify(record, sizes: [UInt64(size)]).zeros == [0])
            record[9] ^= 1
            #expect(await DocumentFixture.code { _ = try verify(record, sizes: [UInt64(size)]) } == .checksumMismatch)
            let other = DocumentFixture.record(zeros + [0], encoding: 1, saying: [])
            #expect(await DocumentFixture.code { _ = try verify(other, sizes: [UInt64(size)]) } == .checksumMismatch)
        }
    }

    @Test("Random bytes are no document, and never crash")
    func noise() async throws {
        var generator = SeededGenerator()
        for _ in 0..<200 {
            var wire = generator.bytes(Int.random(in: 1...3000, using: &generator))
            wire[0] &= 7
            let code = await DocumentFixture.code { _ = try verify(wire, sizes: [700, 700]) }
            #expect(code != nil, "\(generator)")
        }
    }
}
