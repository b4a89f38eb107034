// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol
import Glibc

/// Decides for each chunk whether compressing is worth its time.
///
/// Compressing pays if the transfer waits for the link and the compressor saves more time there than it takes. Both are
/// measured:
///
/// - A document begins plain. While the link takes 30 % of the time, one chunk is tried: every 0.25 s, or after 50
///   times of what the try took. So tries take at most 2 % of the time.
/// - Chunks are compressed if that takes at most 85 % of the plain time, and until it takes more than 95 %. Content
///   that no longer shrinks is sent plain again within a second.
/// - If compressing leaves the link idle, nobody sees how fast the link is. So every 5 s chunks go plain again until
///   the link is waited for and one is tried.
///
/// A pure value: time comes in with every call, on a monotonic clock. Each stream of chunks has one.
package struct CompressionPolicy: Sendable {
    package struct Outcome: Sendable, Hashable {
        /// Bytes that are sent without compression: the content or a delta of it.
        package let contentSize: Int
        /// Bytes that were sent.
        package let wireSize: Int
        /// The compressor's time, also for a failed try; nil without a try.
        package let compressing: Duration?
        /// The time since the outcome before in which the sender waited for the link.
        package var waiting: Duration

        package init(contentSize: Int, wireSize: Int, compressing: Duration?, waiting: Duration = .zero) {
            self.contentSize = contentSize
            self.wireSize = wireSize
            self.compressing = compressing
            self.waiting = waiting
        }
    }

    /// Sums in which a chunk counts for 1/e after ``memory``. Waiting comes in lumps, so averages of chunks mislead.
    private struct Sums {
        var content = 0.0
        var wire = 0.0
        var compressing = 0.0
        var elapsed = 0.0
        var waiting = 0.0

        mutating func add(_ outcome: Outcome, elapsed time: Double, fading: Double) {
            let factor = exp(-fading / memory)
            content = content * factor + Double(outcome.contentSize)
            wire = wire * factor + Double(outcome.wireSize)
            compressing = compressing * factor + (outcome.compressing ?? .zero).inSeconds
            elapsed = elapsed * factor + time
            waiting = waiting * factor + min(outcome.waiting.inSeconds, time)
        }
    }

    private enum Mode {
        /// Chunks go plain, and one is tried at `nextTry`; `isTrying` until its outcome comes.
        case plain(nextTry: Instant, isTrying: Bool)
        case compressing(nextMeasurement: Instant)
    }

    /// Seconds after which a chunk counts for 1/e.
    private static let memory = 0.2
    /// The least times between two tries, and between two measurements of the link.
    private static let (tryInterval, measurementInterval) = (Duration.milliseconds(250), Duration.seconds(5))
    /// Plain chunks before the first try of a measurement.
    private static let measurement = Duration.milliseconds(100)
    /// Tries take at most one part in so many of the time.
    private static let tryShare = 50
    /// The waiting share from which chunks are tried, and the one below which the link counts as idle.
    private static let (waitingShare, idleShare) = (0.3, 0.05)
    /// The part of the plain time that compressing may take: to begin, and to go on.
    private static let (beginning, going) = (0.85, 0.95)

    private var mode: Mode
    private var last: Instant
    private var link = Sums()
    private var tries = Sums()
    /// Seconds of the link for a byte, as last measured.
    private var linkCost = 0.0

    /// A policy for chunks that begin now.
    package init(now: Instant) {
        mode = .plain(nextTry: now, isTrying: false)
        last = now
    }

    /// Whether chunks are compressed at present. A try does not count.
    package var isCompressing: Bool {
        if case .compressing = mode { true } else { false }
    }

    /// Whether to try to compress the next chunk. Outcomes of earlier chunks may still be untold.
    package mutating func shouldCompress(now: Instant) -> Bool {
        guard case .plain(let nextTry, _) = mode else { return true }
        guard now >= nextTry, waitingShare >= Self.waitingShare else { return false }
        mode = .plain(nextTry: now + Self.tryInterval, isTrying: true)
        return true
    }

    /// Takes note of the outcome of a chunk, tried or not, which the link has taken now.
    package mutating func record(_ outcome: Outcome, now: Instant) {
        let elapsed = max(0, (now - last).inSeconds)
        last = max(last, now)
        link.add(outcome, elapsed: elapsed, fading: elapsed)
        if outcome.compressing != nil {
            if case .plain(_, true) = mode { tries = Sums() }
            // A chunk that shrank counts no longer than it would have taken plain: small records pass quickly.
            tries.add(outcome, elapsed: 0, fading: max(elapsed, linkCost * Double(outcome.contentSize)))
        }
        switch mode {
        case .plain(_, let isTrying):
            guard isTrying, let took = outcome.compressing else { return updateLinkCost() }
            mode =
                share <= Self.beginning
                ? .compressing(nextMeasurement: now + Self.measurementInterval)
                : .plain(nextTry: now + max(Self.tryInterval, took * Self.tryShare), isTrying: false)
        case .compressing(let nextMeasurement):
            let isIdle = waitingShare < Self.idleShare
            if !isIdle { updateLinkCost() }
            if share > Self.going {
                mode = .plain(nextTry: now + Self.tryInterval, isTrying: false)
            } else if isIdle, now >= nextMeasurement {
                link = Sums()
                mode = .plain(nextTry: now + Self.measurement, isTrying: false)
            }
        }
    }

    private var waitingShare: Double { link.elapsed > 0 ? link.waiting / link.elapsed : 0 }

    /// The time that chunks take with compression, as a part of the time without; infinite if the link costs nothing.
    private var share: Double {
        let plain = linkCost * tries.content
        return plain > 0 ? (tries.compressing + linkCost * tries.wire) / plain : .infinity
    }

    /// Takes over the cost of the last chunks. The link worked on its queue while the compressor ran.
    private mutating func updateLinkCost() {
        if link.wire > 0 { linkCost = (link.waiting + link.compressing) / link.wire }
    }
}

extension Duration {
    var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
