// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A bounded queue of bytes between TLS and the network.
///
/// A ring, so that waiting bytes never move; a memory BIO of OpenSSL moves the rest at every write. It doubles up to
/// the limit. When it is empty, it begins at the front again, so that it seldom wraps.
struct CiphertextBuffer: ~Copyable {
    let limit: Int
    private(set) var count = 0
    private var base: UnsafeMutableRawPointer?
    private var capacity = 0
    private var start = 0

    init(limit: Int) {
        self.limit = limit
    }

    deinit {
        base?.deallocate()
    }

    /// The number of bytes that still fit.
    var freeSpace: Int { limit - count }

    /// The oldest bytes up to the end of the ring; valid until the next change.
    var front: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: base.map { UnsafeRawPointer($0) + start }, count: min(count, capacity - start))
    }

    /// Appends all bytes. Returns false, and appends none, if they exceed the limit.
    mutating func append(_ source: UnsafeRawBufferPointer) -> Bool {
        guard source.count <= freeSpace else { return false }
        guard let from = source.baseAddress, !source.isEmpty else { return true }
        let to = reserve(source.count)
        let end = start + count < capacity ? start + count : start + count - capacity
        let first = min(source.count, capacity - end)
        memcpy(to + end, from, first)
        if first < source.count {
            memcpy(to, from + first, source.count - first)
        }
        count += source.count
        return true
    }

    /// Moves the oldest bytes to `target`, and returns their number.
    mutating func read(into target: UnsafeMutableRawBufferPointer) -> Int {
        var taken = 0
        while taken < target.count, count > 0, let to = target.baseAddress, let from = front.baseAddress {
            let piece = min(front.count, target.count - taken)
            memcpy(to + taken, from, piece)
            drop(piece)
            taken += piece
        }
        return taken
    }

    /// Drops the oldest bytes.
    mutating func drop(_ number: Int) {
        precondition(number >= 0 && number <= count, "more bytes dropped than there are")
        count -= number
        start = count == 0 ? 0 : start + number
        if start >= capacity {
            start = count == 0 ? 0 : start - capacity
        }
    }

    /// Makes space for `number` more bytes.
    private mutating func reserve(_ number: Int) -> UnsafeMutableRawPointer {
        if let base, capacity - count >= number { return base }
        var grown = max(capacity, 4096)
        while grown - count < number { grown *= 2 }
        grown = min(grown, limit)
        let fresh = UnsafeMutableRawPointer.allocate(byteCount: grown, alignment: 64)
        let kept = read(into: UnsafeMutableRawBufferPointer(start: fresh, count: grown))
        base?.deallocate()
        base = fresh
        capacity = grown
        start = 0
        count = kept
        return fresh
    }
}
