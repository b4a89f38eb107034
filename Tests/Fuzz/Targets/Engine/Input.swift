// SPDX-License-Identifier: Apache-2.0

/// An input that is read from the front. Where it is at its end, every byte is 0.
struct Input {
    private var rest: UnsafeRawBufferPointer

    init(_ bytes: UnsafeRawBufferPointer) {
        rest = bytes
    }

    var isEmpty: Bool { rest.isEmpty }

    mutating func byte() -> UInt8 {
        guard let byte = rest.first else { return 0 }
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst())
        return byte
    }

    /// A number of so many bytes, big endian.
    mutating func number(_ bytes: Int) -> UInt64 {
        (0..<bytes).reduce(0) { value, _ in value << 8 | UInt64(byte()) }
    }

    /// The next bytes, fewer at the end of the input.
    mutating func bytes(_ count: Int) -> [UInt8] {
        let taken = rest.prefix(count)
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(taken.count))
        return Array(taken)
    }

    /// All that is left.
    mutating func remainder() -> [UInt8] { bytes(rest.count) }
}

extension [UInt8] {
    /// A number of so many bytes, big endian.
    init(number: UInt64, bytes: Int) {
        self = (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * UInt64($0))) }
    }

    /// The array in pieces; a size of 0 leaves it whole.
    func pieces(of size: Int) -> [ArraySlice<UInt8>] {
        guard size > 0, count > size else { return [self[...]] }
        return stride(from: 0, to: count, by: size).map { self[$0..<Swift.min($0 + size, count)] }
    }
}
