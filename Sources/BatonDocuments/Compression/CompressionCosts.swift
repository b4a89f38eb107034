// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Glibc

/// The time that the link and the compressor took for the last chunks: sums in which a chunk counts for less and less.
///
/// Sums and not averages of single chunks, because waiting comes in lumps: a window of credit, then nothing for a
/// while.
struct CompressionCosts: Sendable {
    /// After this time a chunk counts for 1/e of what it did, in seconds.
    static let memory = 0.2

    private struct Link {
        var bytes = 0.0
        var elapsed = 0.0
        var waiting = 0.0
        /// The compressor's time: the link worked on what was queued meanwhile.
        var compressing = 0.0
    }

    private struct Tries {
        var bytes = 0.0
        var wire = 0.0
        var compressing = 0.0
    }

    private var link = Link()
    private var tries = Tries()
    private var last: Instant
    /// Seconds of the link for a byte, as last measured.
    private var linkCost = 0.0

    init(now: Instant) {
        last = now
    }

    /// The part of the time that was waited for the link, 0 to 1.
    var waitingShare: Double { link.elapsed > 0 ? link.waiting / link.elapsed : 0 }

    /// The time that chunks take with compression, as a part of what they would take without.
    ///
    /// Infinite where the link was never waited for.
    var share: Double {
        let plain = linkCost * tries.bytes
        return plain > 0 ? (tries.compressing + linkCost * tries.wire) / plain : .infinity
    }

    mutating func add(_ outcome: CompressionPolicy.Outcome, now: Instant) {
        let elapsed = max(0, (now - last).inSeconds)
        last = max(last, now)
        let factor = exp(-elapsed / Self.memory)
        let compressing = (outcome.compressing ?? .zero).inSeconds
        link.bytes = link.bytes * factor + Double(outcome.wireSize)
        link.elapsed = link.elapsed * factor + elapsed
        link.waiting = link.waiting * factor + min(outcome.waiting.inSeconds, elapsed)
        link.compressing = link.compressing * factor + compressing
        // A time without a try tells nothing about the content: what was known stays.
        guard outcome.compressing != nil else { return }
        // A chunk that shrank counts for no longer than it would have taken plain: of small records many pass in that
        // time.
        let plain = linkCost * Double(outcome.contentSize)
        let tryFactor = exp(-max(elapsed, plain) / Self.memory)
        tries.bytes = tries.bytes * tryFactor + Double(outcome.contentSize)
        tries.wire = tries.wire * tryFactor + Double(outcome.wireSize)
        tries.compressing = tries.compressing * tryFactor + compressing
    }

    /// Takes over what the last chunks tell about the link.
    mutating func updateLink() {
        if link.bytes > 0 { linkCost = (link.waiting + link.compressing) / link.bytes }
    }

    /// Begins to measure the link anew.
    mutating func forgetLink() {
        link = Link()
    }

    /// Begins to measure the content anew, with one chunk.
    mutating func beginTries(with outcome: CompressionPolicy.Outcome) {
        tries = Tries(
            bytes: Double(outcome.contentSize), wire: Double(outcome.wireSize),
            compressing: (outcome.compressing ?? .zero).inSeconds)
    }
}

extension Duration {
    fileprivate var inSeconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
