// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Testing

@testable import BatonDocuments

/// Two devices in memory: one has files, the other sends one.
struct DeltaFixture {
    let bases: [[UInt8]]
    var index: SignatureIndex
    /// Bytes of all signatures on the wire.
    private(set) var signatureBytes = 0

    init(bases: [[UInt8]], size: PieceSize = .smallest) throws {
        self.bases = bases
        index = SignatureIndex(size: size)
        for (number, basis) in bases.enumerated() {
            let batch = try Self.signatures(of: basis, size: size)
            try index.append(batch, basis: number)
            signatureBytes += batch.count
        }
    }

    /// The wire form of the signatures of a file.
    static func signatures(of content: [UInt8], size: PieceSize = .smallest) throws -> [UInt8] {
        let folder = try ScratchFolder()
        let file = try SystemCalls.open(folder.makeFile("basis", content), 0)
        var reader = BasisReader(size: size)
        var bytes: [UInt8] = []
        while try reader.step(in: file, 0..<UInt64(content.count), appendingTo: &bytes) {}
        return bytes
    }

    /// A chunk as it crosses.
    enum Sent {
        case plain([UInt8])
        case delta([UInt8], size: Int)

        var count: Int {
            switch self {
            case .plain(let bytes): bytes.count
            case .delta(let bytes, _): bytes.count + 36
            }
        }
    }

    /// Encodes the whole target in chunks of `chunkSize()` bytes; `ahead()` bounds what one read gives.
    func encode(
        _ target: [UInt8], with encoder: inout DeltaEncoder, chunkSize: () -> Int = { 1 << 20 },
        ahead: () -> Int = { .max }
    ) -> [Sent] {
        var sent: [Sent] = []
        var position = 0
        while position < target.count {
            let end = min(position + chunkSize(), target.count)
            sent.append(encode(position..<end, of: target, with: &encoder, ahead: ahead))
            position = end
        }
        return sent
    }

    func encode(
        _ range: Range<Int>, of target: [UInt8], with encoder: inout DeltaEncoder, ahead: () -> Int = { .max }
    ) -> Sent {
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: range.count, alignment: 1)
        defer { room.deallocate() }
        return target.withUnsafeBytes { bytes in
            let count = encoder.encode(
                UnsafeRawBufferPointer(rebasing: bytes[range]), at: UInt64(range.lowerBound), of: 0, into: room
            ) { (offset, place) in
                let count = min(ahead(), place.count, bytes.count - Int(offset))
                UnsafeMutableRawBufferPointer(rebasing: place[..<count])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[Int(offset)..<Int(offset) + count]))
                return count
            }
            guard let count else { return .plain(Array(bytes[range])) }
            return .delta(Array(room[..<count]), size: range.count)
        }
    }

    /// The content that the receiver decodes from the sent chunks.
    func decode(_ sent: [Sent]) throws -> [UInt8] {
        var content: [UInt8] = []
        for chunk in sent {
            switch chunk {
            case .plain(let bytes): content += bytes
            case .delta(let bytes, let size): content += try decode(bytes, size: size)
            }
        }
        return content
    }

    func decode(_ delta: [UInt8], size: Int) throws -> [UInt8] {
        let sizes = bases.map { UInt64($0.count) }
        return try delta.withUnsafeBytes { bytes in
            var content: [UInt8] = []
            var decoder = DeltaDecoder(bytes, contentSize: size, basisSizes: sizes)
            while let operation = try decoder.next() {
                switch operation {
                case .copy(let basis, let offset, let length):
                    content += bases[basis][Int(offset)..<Int(offset) + length]
                case .literal(let literal):
                    content += literal
                }
            }
            return content
        }
    }
}

extension SignatureIndex {
    mutating func append(_ batch: [UInt8], basis: Int) throws(DeltaError) {
        try batch.withUnsafeBufferPointer { (bytes) throws(DeltaError) in
            try append(UnsafeRawBufferPointer(bytes), basis: basis)
        }
    }
}

extension SeededGenerator {
    /// The same as `bytes`, ten times as fast in a debug build. `count` has to be a multiple of 8.
    mutating func manyBytes(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { room, filled in
            let words = UnsafeMutableRawBufferPointer(room)
            while filled < count {
                words.storeBytes(of: next(), toByteOffset: filled, as: UInt64.self)
                filled += 8
            }
        }
    }

    /// One edit of a file, of the kinds that people and programs make.
    mutating func edit(_ content: inout [UInt8]) {
        let place = Int.random(in: 0...content.count, using: &self)
        let end = min(content.count, place + Int.random(in: 0...40_000, using: &self))
        switch Int.random(in: 0..<7, using: &self) {
        case 0: content.insert(contentsOf: bytes(Int.random(in: 1...50_000, using: &self)), at: place)
        case 1: content.removeSubrange(place..<end)
        case 2: content.replaceSubrange(place..<end, with: bytes(end - place))
        case 3:
            let moved = Array(content[place..<end])
            content.removeSubrange(place..<end)
            content.insert(contentsOf: moved, at: Int.random(in: 0...content.count, using: &self))
        case 4: content.removeLast(min(content.count, Int.random(in: 0...100_000, using: &self)))
        case 5: content += bytes(Int.random(in: 1...100_000, using: &self))
        case _: content.insert(UInt8.random(in: 0...255, using: &self), at: 0)
        }
    }
}
