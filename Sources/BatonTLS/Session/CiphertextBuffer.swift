// SPDX-License-Identifier: Apache-2.0

/// A bounded queue of bytes between TLS and the network.
///
/// It is nearly always empty, because most bytes go straight from and to memory of the session's owner
/// (``MemoryBIO``).
struct CiphertextBuffer: ~Copyable {
    let limit: Int
    private var bytes: [UInt8] = []
    /// The number of bytes at the front that were read.
    private var start = 0

    init(limit: Int) {
        self.limit = limit
    }

    /// The number of bytes that wait.
    var count: Int { bytes.count - start }

    /// The number of bytes that still fit.
    var freeSpace: Int { limit - count }

    /// Appends all bytes. Returns false, and appends none, if they exceed the limit.
    mutating func append(_ source: UnsafeRawBufferPointer) -> Bool {
        guard source.count <= freeSpace else { return false }
        guard !source.isEmpty else { return true }
        if bytes.count + source.count > bytes.capacity {
            bytes.removeFirst(start)
            start = 0
            bytes.reserveCapacity(min(limit, 2 * (bytes.count + source.count)))
        }
        bytes.append(contentsOf: source)
        return true
    }

    /// Moves the oldest bytes to `target`, and returns their number.
    mutating func read(into target: UnsafeMutableRawBufferPointer) -> Int {
        let taken = min(count, target.count)
        guard taken > 0 else { return 0 }
        bytes.withUnsafeBytes { target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<start + taken])) }
        start += taken
        if start == bytes.count {
            bytes.removeAll(keepingCapacity: true)
            start = 0
        }
        return taken
    }
}
