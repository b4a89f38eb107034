// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// How far a transfer is, how fast, and how long it will take.
///
/// A pure value: time comes in with every call, on a monotonic clock. The rate is that of the last 3 s or so, which is
/// calm enough to read and falls when a transfer stalls. At most 32 samples (512 bytes) are kept.
package struct TransferProgress: Sendable, Hashable {
    struct Sample: Sendable, Hashable {
        let time: Instant
        let bytes: UInt64
    }

    /// The time that the rate is taken over: 3 s.
    package static let window: Duration = .seconds(3)
    /// No rate is told before this time is over: 250 ms, because the first moments mislead.
    package static let warmUp: Duration = .milliseconds(250)
    /// Samples closer than this to the one before are not kept: 100 ms.
    static let spacing: Duration = .milliseconds(100)
    static let sampleLimit = 32

    /// Bytes transferred so far; never more than `total`.
    package private(set) var bytes: UInt64
    /// Bytes in all.
    package let total: UInt64
    /// When the transfer began, or began anew.
    let start: Instant

    private(set) var samples: [Sample]

    /// A transfer that begins now.
    ///
    /// - Parameter bytes: what was there before (a resumed transfer); it does not count for the rate.
    package init(total: UInt64, bytes: UInt64 = 0, now: Instant) {
        self.total = total
        self.bytes = min(bytes, total)
        start = now
        samples = [Sample(time: now, bytes: min(bytes, total))]
    }

    /// Takes note of how many bytes there are by now, of the total at the most. Where they are fewer than before, such
    /// as of another version of the document, the transfer begins anew with them.
    package mutating func update(bytes newCount: UInt64, now: Instant) {
        guard newCount >= bytes else {
            self = TransferProgress(total: total, bytes: newCount, now: now)
            return
        }
        bytes = min(newCount, total)
        if let last = samples.last, now >= last.time + Self.spacing { samples.append(Sample(time: now, bytes: bytes)) }
        // One sample from before the window stays: it is where the window's first bytes are counted from.
        let older = samples.count(where: { $0.time + Self.window <= now })
        samples.removeFirst(max(0, max(older - 1, samples.count - Self.sampleLimit)))
    }

    package var isComplete: Bool { bytes == total }

    /// The part that is done, 0 to 1; 1 for an empty document.
    package var fraction: Double { total == 0 ? 1 : Double(bytes) / Double(total) }

    /// Bytes per second over the last `window`; nil before `warmUp` is over.
    package func rate(now: Instant) -> Double? {
        guard now >= start + Self.warmUp else { return nil }
        let older = samples.count(where: { $0.time + Self.window <= now })
        let base = samples[max(0, older - 1)]
        let seconds = (now - base.time).inSeconds
        return seconds > 0 ? Double(bytes - base.bytes) / seconds : nil
    }

    /// How long the rest will take at the present rate; nil while that is unknown, or longer than 100 days.
    package func timeLeft(now: Instant) -> Duration? {
        if isComplete { return .zero }
        guard let rate = rate(now: now), rate > 0 else { return nil }
        let seconds = Double(total - bytes) / rate
        return seconds <= 100 * 24 * 3600 ? .seconds(seconds) : nil
    }

    /// One line for people: `412 MiB of 1.0 GiB, 610 MiB/s, 1 s left`.
    package func summary(now: Instant) -> String {
        if isComplete {
            return HumanUnits.bytes(total)
        }
        var parts = ["\(HumanUnits.bytes(bytes)) of \(HumanUnits.bytes(total))"]
        if let rate = rate(now: now) {
            parts.append(rate >= 1 ? HumanUnits.rate(rate) : "stalled")
        }
        if let left = timeLeft(now: now) {
            parts.append("\(HumanUnits.duration(left)) left")
        }
        return parts.joined(separator: ", ")
    }
}
