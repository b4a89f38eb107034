// SPDX-License-Identifier: Apache-2.0

/// The credit of one direction, granted as the application consumes.
///
/// A pure value: it says when credit is due and never writes a frame. Offsets are absolute, so a repeated CREDIT does
/// no harm. Invariants: `consumed <= received <= granted`, and `granted` never falls.
struct ReceiveWindow {
    /// How far the granted offset may be ahead of the consumed one, in bytes.
    private(set) var size: Int
    /// The offset that the peer has been told.
    private(set) var granted: UInt64
    /// Bytes that the peer has sent.
    private(set) var received: UInt64 = 0
    /// Bytes that the application has consumed or that were discarded.
    private(set) var consumed: UInt64 = 0
    /// The window is worth a CREDIT frame when one of this many parts can be granted.
    private let parts: Int

    /// - Parameter parts: how finely credit is granted. Up to one part of the window may be missing while a sender
    ///   waits, so a window that several streams share has more parts.
    init(size: Int, parts: Int) {
        self.size = size
        self.parts = parts
        granted = UInt64(size)
    }

    /// Bytes received and neither consumed nor discarded yet.
    var unconsumed: Int { Int(received - consumed) }

    /// Counts bytes from the peer. Returns false, and counts nothing, if they exceed the credit.
    mutating func receive(_ count: Int) -> Bool {
        guard UInt64(count) <= granted - received else { return false }
        received += UInt64(count)
        return true
    }

    /// Counts consumed bytes.
    mutating func consume(_ count: Int) {
        assert(count >= 0 && count <= unconsumed, "consumed more than was received")
        consumed += UInt64(count)
    }

    /// Raises the size. Sizes never shrink, because granted credit cannot be taken back.
    mutating func grow(to size: Int) {
        self.size = max(self.size, size)
    }

    /// Whether a CREDIT is worth a frame: a part of the window or more would be granted.
    var isCreditDue: Bool {
        consumed + UInt64(size) >= granted + UInt64(max(size / parts, 1))
    }

    /// Grants all that the window allows and returns the offset for the CREDIT frame, nil when it is not new.
    mutating func grant() -> UInt64? {
        let offset = consumed + UInt64(size)
        guard offset > granted else { return nil }
        granted = offset
        return offset
    }
}
