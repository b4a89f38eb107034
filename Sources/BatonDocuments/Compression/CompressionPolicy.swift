// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// Decides, chunk by chunk, whether compressing is worth its time.
///
/// It is where the link is what everything waits for, and saves more time there than the compressor takes. Both are
/// measured, none is assumed:
///
/// - The document begins plain. While the link makes the sender wait for 30 % of the time or more, one chunk is tried
///   (the *probe*): at once the first time, then every 0.25 s, or after 50 times of what it took where that is longer,
///   so that probing costs 2 % at the most, and of a folder no file that shrinks is missed because the one before did
///   not. A link that nobody waits for is never probed.
/// - A chunk pays when the compressor's time and the link's time for what is left are together at most 85 % of the
///   link's time for the plain chunk. Then chunks are compressed until that rises above 95 %, taken over the last 0.2 s
///   or so: content that does not shrink is sent plain again within a second (or after one chunk, on a link where that
///   takes longer). So compressing is given up before it has cost more than it had saved just before, and what
///   alternates may be tried again as soon as anything else.
/// - Where compressing leaves the link without work, it can no longer be told how fast the link is. So it is *measured*
///   with plain chunks, for 0.1 s (or four chunks, where they take longer), at most every 5 s and for 2 % of the time.
///
/// A pure value: time comes in with every call, on a monotonic clock. One for each stream of chunks.
package struct CompressionPolicy: Sendable {
    /// The outcome of a chunk.
    package struct Outcome: Sendable, Hashable {
        /// Bytes of the chunk's content, or of what is sent for it where the compressor is not asked.
        package let contentSize: Int
        /// Bytes that were sent for it.
        package let wireSize: Int
        /// How long the compressor took; nil where it was not asked. Its failure (sent plain) counts with its time.
        package let compressing: Duration?
        /// How long the sender waited, since the outcome before, because the link took no more.
        package let waiting: Duration

        /// An outcome with these measures.
        package init(contentSize: Int, wireSize: Int, compressing: Duration?, waiting: Duration) {
            self.contentSize = contentSize
            self.wireSize = wireSize
            self.compressing = compressing
            self.waiting = waiting
        }
    }

    /// The least time between two probes.
    package static let probeInterval: Duration = .milliseconds(250)
    /// The least time between two measurements of the link.
    package static let measurementInterval: Duration = .seconds(5)
    /// How long a probe may be on its way before it counts as lost.
    static let lostProbe: Duration = .seconds(5)
    /// Probing and measuring take at most one part in so many of the time.
    static let probeShare = 50
    /// The part of the time that has to be waited for the link before a chunk is tried.
    static let waitingShare = 0.3
    /// The part of the time below which the link counts as idle.
    static let idleShare = 0.05
    /// The part of the plain time that compressing has to stay below: to begin, and to go on.
    static let (beginning, going) = (0.85, 0.95)
    /// How long a measurement of the link takes, and the chunks that it takes at least.
    static let (measurement, measuredChunks) = (Duration.milliseconds(100), 4)

    private enum Mode: Sendable {
        case plain(nextProbe: Instant)
        /// One chunk was asked to be compressed at `start`.
        case probing(start: Instant)
        /// The link has been without work since `idle`.
        case compressing(idle: Instant?, nextMeasurement: Instant)
        /// Sending plain chunks since `start`; `hasWaited` once the queues on the way are full.
        case measuring(start: Instant, chunks: Int, hasWaited: Bool)
    }

    private var mode: Mode
    private var costs: CompressionCosts

    /// A policy for chunks that begin now.
    package init(now: Instant) {
        mode = .plain(nextProbe: now)
        costs = CompressionCosts(now: now)
    }

    /// Whether chunks are compressed at present (a probe does not count).
    package var isCompressing: Bool {
        switch mode {
        case .compressing: true
        case .plain, .probing, .measuring: false
        }
    }

    /// Whether to try to compress the next chunk. Ask once for each, and tell the outcome with `record`.
    ///
    /// Chunks may be asked for before the outcomes of earlier ones are told.
    package mutating func shouldCompress(now: Instant) -> Bool {
        switch mode {
        case .compressing:
            return true
        case .measuring:
            return false
        case .plain(let nextProbe):
            guard now >= nextProbe, costs.waitingShare >= Self.waitingShare else { return false }
        case .probing(let start):
            // The chunk may never have been sent (a stream that was reset): ask for another one.
            guard now >= start + Self.lostProbe else { return false }
        }
        mode = .probing(start: now)
        return true
    }

    /// Takes note of what became of a chunk. `now` is when the link had taken it.
    ///
    /// Tell of every chunk, so that the link's work is known: of one that was not asked for (zeros, a delta) as well.
    package mutating func record(_ outcome: Outcome, now: Instant) {
        costs.add(outcome, now: now)
        switch mode {
        case .plain:
            costs.updateLink()
        case .probing:
            guard let took = outcome.compressing else { return costs.updateLink() }
            costs.beginTries(with: outcome)
            if costs.share <= Self.beginning {
                mode = .compressing(idle: nil, nextMeasurement: now)
            } else {
                mode = .plain(nextProbe: now + max(Self.probeInterval, took * Self.probeShare))
            }
        case .compressing(let idle, let nextMeasurement):
            goOn(idle, nextMeasurement, now)
        case .measuring(let start, let chunks, let hasWaited):
            guard outcome.compressing == nil else { return }
            guard hasWaited || costs.waitingShare < Self.waitingShare else {
                costs.forgetLink()
                mode = .measuring(start: now, chunks: 0, hasWaited: true)
                return
            }
            guard now >= start + Self.measurement, chunks + 1 >= Self.measuredChunks else {
                mode = .measuring(start: start, chunks: chunks + 1, hasWaited: hasWaited)
                return
            }
            conclude(start, now)
        }
    }

    private mutating func goOn(_ idle: Instant?, _ nextMeasurement: Instant, _ now: Instant) {
        let isIdle = costs.waitingShare < Self.idleShare
        if !isIdle { costs.updateLink() }
        guard costs.share <= Self.going else { return giveUp(now) }
        let idle = isIdle ? idle ?? now : nil
        if let idle, now >= idle + Self.measurement, now >= nextMeasurement {
            costs.forgetLink()
            mode = .measuring(start: now, chunks: 0, hasWaited: false)
        } else {
            mode = .compressing(idle: idle, nextMeasurement: nextMeasurement)
        }
    }

    /// Ends a measurement of the link.
    private mutating func conclude(_ start: Instant, _ now: Instant) {
        costs.updateLink()
        guard costs.share <= Self.beginning else { return giveUp(now) }
        mode = .compressing(
            idle: nil, nextMeasurement: now + max(Self.measurementInterval, (now - start) * Self.probeShare))
    }

    private mutating func giveUp(_ now: Instant) {
        mode = .plain(nextProbe: now + Self.probeInterval)
    }
}
