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
/// - If compressing leaves the link idle, nobody sees how fast the link is. Every 5 s it is then measured with plain
///   chunks, for 0.1 s or four chunks, and for at most 2 % of the time.
///
/// A pure value: time comes in with every call, on a monotonic clock. Each stream of chunks has one.
package struct CompressionPolicy: Sendable {
    /// The outcome of a chunk.
    package struct Outcome: Sendable, Hashable {
        /// Bytes that are sent without compression: the content or a delta of it.
        package let contentSize: Int
        /// Bytes that were sent.
        package let wireSize: Int
        /// The compressor's time, also for a failed try; nil without a try.
        package let compressing: Duration?
        /// The time since the outcome before in which the sender waited for the link.
        package let waiting: Duration

        /// An outcome with these measures.
        package init(contentSize: Int, wireSize: Int, compressing: Duration?, waiting: Duration) {
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
        case plain(nextProbe: Instant)
        /// One chunk was asked to be compressed at `start`.
        case probing(start: Instant)
        case compressing(nextMeasurement: Instant)
        /// Sending plain chunks since `start`; `hasWaited` once the queues on the way are full.
        case measuring(start: Instant, chunks: Int, hasWaited: Bool)
    }

    /// Seconds after which a chunk counts for 1/e.
    private static let memory = 0.2
    /// The least times between two probes and between two measurements of the link.
    private static let (probeInterval, measurementInterval) = (Duration.milliseconds(250), Duration.seconds(5))
    /// The time after which a probe without an outcome counts as lost, as with a stream that was reset.
    private static let lostProbe: Duration = .seconds(5)
    /// Probing and measuring each take at most one part in so many of the time.
    private static let probeShare = 50
    /// The waiting share from which chunks are tried, and the one below which the link counts as idle.
    private static let (waitingShare, idleShare) = (0.3, 0.05)
    /// The part of the plain time that compressing may take: to begin, and to go on.
    private static let (beginning, going) = (0.85, 0.95)
    /// The least time and the fewest chunks of a measurement.
    private static let (measurement, measuredChunks) = (Duration.milliseconds(100), 4)

    private var mode: Mode
    private var last: Instant
    private var link = Sums()
    private var tries = Sums()
    /// Seconds of the link for a byte, as last measured.
    private var linkCost = 0.0

    /// A policy for chunks that begin now.
    package init(now: Instant) {
        mode = .plain(nextProbe: now)
        last = now
    }

    /// Whether chunks are compressed at present. A probe does not count.
    package var isCompressing: Bool {
        if case .compressing = mode { true } else { false }
    }

    /// Whether to try to compress the next chunk. Outcomes of earlier chunks may still be untold.
    package mutating func shouldCompress(now: Instant) -> Bool {
        switch mode {
        case .compressing: return true
        case .measuring: return false
        case .plain(let nextProbe): guard now >= nextProbe, waitingShare >= Self.waitingShare else { return false }
        case .probing(let start): guard now >= start + Self.lostProbe else { return false }
        }
        mode = .probing(start: now)
        return true
    }

    /// Takes note of the outcome of a chunk, tried or not, which the link has taken now.
    package mutating func record(_ outcome: Outcome, now: Instant) {
        let elapsed = max(0, (now - last).inSeconds)
        last = max(last, now)
        link.add(outcome, elapsed: elapsed, fading: elapsed)
        if outcome.compressing != nil {
            if case .probing = mode { tries = Sums() }
            // A chunk that shrank counts no longer than it would have taken plain: small records pass quickly.
            tries.add(outcome, elapsed: 0, fading: max(elapsed, linkCost * Double(outcome.contentSize)))
        }
        switch mode {
        case .plain: updateLinkCost()
        case .probing:
            guard let took = outcome.compressing else { return updateLinkCost() }
            mode =
                share <= Self.beginning
                ? .compressing(nextMeasurement: now)
                : .plain(nextProbe: now + max(Self.probeInterval, took * Self.probeShare))
        case .compressing(let nextMeasurement):
            let isIdle = waitingShare < Self.idleShare
            if !isIdle { updateLinkCost() }
            if share > Self.going {
                mode = .plain(nextProbe: now + Self.probeInterval)
            } else if isIdle, now >= nextMeasurement {
                link = Sums()
                mode = .measuring(start: now, chunks: 0, hasWaited: false)
            }
        case .measuring(let start, let chunks, let hasWaited):
            guard outcome.compressing == nil else { return }
            if !hasWaited, waitingShare >= Self.waitingShare {
                link = Sums()
                mode = .measuring(start: now, chunks: 0, hasWaited: true)
            } else if now >= start + Self.measurement, chunks + 1 >= Self.measuredChunks {
                updateLinkCost()
                let pause = max(Self.measurementInterval, (now - start) * Self.probeShare)
                mode =
                    share <= Self.beginning
                    ? .compressing(nextMeasurement: now + pause) : .plain(nextProbe: now + Self.probeInterval)
            } else {
                mode = .measuring(start: start, chunks: chunks + 1, hasWaited: hasWaited)
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
    /// The duration in seconds.
    var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
