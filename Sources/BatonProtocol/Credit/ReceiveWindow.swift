// SPDX-License-Identifier: Apache-2.0

/// The credit of one direction: granted as the application consumes, and grown with the bandwidth-delay product.
///
/// A pure value: it says when credit is due and never writes a frame. Offsets are absolute, so a repeated CREDIT does
/// no harm. Invariants: `consumed <= received <= granted`, and `granted` never falls.
struct ReceiveWindow {
    /// The least time over which a rate is measured, so that one burst of consumption does not look like a fast link.
    static let leastInterval: UInt64 = 4_000_000

    /// How far the granted offset may be ahead of the consumed one, in bytes.
    private(set) var size: Int
    /// The bound of `size`.
    private(set) var maximum: Int
    /// The offset that the peer has been told.
    private(set) var granted: UInt64
    /// Bytes that the peer has sent.
    private(set) var received: UInt64 = 0
    /// Bytes that the application has consumed or that were discarded.
    private(set) var consumed: UInt64 = 0

    private var intervalStart: Instant
    private var consumedBefore: UInt64 = 0

    /// The window is worth a CREDIT frame when one of this many parts can be granted.
    private let parts: Int

    /// - Parameter parts: how finely credit is granted. Up to one part of the window may be missing while a sender
    ///   waits, so a window that several streams share has more parts.
    init(initial: Int, maximum: Int, parts: Int, now: Instant) {
        size = initial
        self.parts = parts
        self.maximum = max(initial, maximum)
        granted = UInt64(initial)
        intervalStart = now
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
    ///
    /// The useful size is twice the measured product, and at most twice the present size. If the window is what limits
    /// the peer, its rate is `size / roundTrip`. The size then doubles each round trip until something else limits the
    /// peer.
    ///
    /// - Returns: the size that the link could use, the present one or more.
    mutating func consume(_ count: Int, now: Instant, roundTrip: UInt64?) -> Int {
        assert(count >= 0 && count <= unconsumed, "consumed more than was received")
        consumed += UInt64(count)
        guard let roundTrip, size < maximum else { return size }
        let elapsed = now.nanoseconds(since: intervalStart)
        guard elapsed >= max(roundTrip, Self.leastInterval) else { return size }
        let product = Double(consumed - consumedBefore) * Double(roundTrip) / Double(elapsed)
        intervalStart = now
        consumedBefore = consumed
        return max(size, min(2 * size, Int(2 * product)))
    }

    /// Raises the size to `size`, within the maximum. Sizes never shrink, because granted credit cannot be taken back.
    mutating func grow(to size: Int) {
        self.size = max(self.size, min(size, maximum))
    }

    /// Raises the size and its bound. Neither shrinks.
    mutating func widen(to size: Int, maximum: Int) {
        self.maximum = max(self.maximum, maximum)
        grow(to: size)
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
