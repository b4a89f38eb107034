// SPDX-License-Identifier: Apache-2.0

/// The bytes that may still be sent, by an absolute offset that the peer grants.
struct SendWindow {
    /// Bytes sent so far.
    private(set) var sent: UInt64 = 0
    /// The offset up to which the peer allows bytes.
    private(set) var limit: UInt64

    init(limit: UInt64) {
        self.limit = limit
    }

    /// Bytes that may be sent now. Invariant: `sent <= limit`.
    var available: Int {
        Int(clamping: limit - sent)
    }

    /// Raises the limit. Returns false if `offset` allows nothing new; limits never fall.
    mutating func raise(to offset: UInt64) -> Bool {
        guard offset > limit else { return false }
        limit = offset
        return true
    }

    mutating func send(_ count: Int) {
        assert(count >= 0 && count <= available, "sent more than the credit allows")
        sent += UInt64(count)
    }
}
