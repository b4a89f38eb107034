// SPDX-License-Identifier: Apache-2.0

/// Writes the operations of one chunk, merging copies that continue each other and literals that touch.
///
/// It gives up once the operations outgrow their room. Borrows both memories for the time of one call.
struct DeltaWriter {
    private enum Pending {
        case nothing
        /// Bytes of the chunk.
        case literal(Range<Int>)
        case copy(SignatureIndex.Match, length: Int)
    }

    private let content: UnsafeRawBufferPointer
    private let room: UnsafeMutableRawBufferPointer
    private var count = 0
    private var pending = Pending.nothing
    private var hasRoom = true
    /// How much of the chunk is told.
    private(set) var position = 0

    init(_ content: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) {
        self.content = content
        self.room = room
    }

    /// The next `length` bytes of the chunk: a copy where there is a match.
    mutating func append(_ match: SignatureIndex.Match?, length: Int) {
        guard length > 0 else { return }
        let start = position
        position += length
        switch (pending, match) {
        case (.literal(let range), nil):
            pending = .literal(range.lowerBound..<position)
        case (.copy(let before, let taken), let match?)
        where before.basis == match.basis && before.offset + UInt64(taken) == match.offset:
            pending = .copy(before, length: taken + length)
        case (.nothing, nil), (.copy, nil):
            flush()
            pending = .literal(start..<position)
        case (.nothing, let match?), (.literal, let match?), (.copy, let match?):
            flush()
            pending = .copy(match, length: length)
        }
    }

    /// Ends the chunk.
    ///
    /// - Returns: bytes written, or nil where they had not room.
    mutating func finish() -> Int? {
        flush()
        return hasRoom ? count : nil
    }

    private mutating func flush() {
        defer { pending = .nothing }
        guard hasRoom else { return }
        switch pending {
        case .nothing:
            break
        case .literal(let range):
            let head = UInt64(range.count) << 1
            guard reserve(DeltaNumber.byteCount(of: head) + range.count) else { return }
            DeltaNumber.write(head, to: room, at: &count)
            UnsafeMutableRawBufferPointer(rebasing: room[count..<count + range.count])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: content[range]))
            count += range.count
        case .copy(let match, let length):
            let numbers = (UInt64(length) << 1 | 1, UInt64(match.basis), match.offset)
            guard
                reserve(
                    DeltaNumber.byteCount(of: numbers.0) + DeltaNumber.byteCount(of: numbers.1)
                        + DeltaNumber.byteCount(of: numbers.2))
            else { return }
            DeltaNumber.write(numbers.0, to: room, at: &count)
            DeltaNumber.write(numbers.1, to: room, at: &count)
            DeltaNumber.write(numbers.2, to: room, at: &count)
        }
    }

    private mutating func reserve(_ bytes: Int) -> Bool {
        hasRoom = bytes <= room.count - count
        return hasRoom
    }
}
