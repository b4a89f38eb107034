// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// Compresses chunks where the link is what a transfer waits for.
struct ChunkCompression: ~Copyable {
    private let now: @Sendable () -> Instant
    /// For chunks that are sent plain otherwise.
    private var plain: CompressionPolicy
    /// For chunks that are sent as differences otherwise. It judges for itself: it saves less, and a try where next to
    /// nothing differs says nothing about plain ones.
    private var delta: CompressionPolicy
    private var compressor: ChunkCompressor?
    /// Outcomes of the chunks that were read since the caller told how long the link took.
    private var pending: [Made] = []

    private struct Made {
        let contentSize: Int
        let wireSize: Int
        let compressing: Duration?
        let isDelta: Bool

        /// For the policy of plain chunks, or of the others: each hears of both, since both are the link's work.
        func outcome(ofDelta: Bool, waiting: Duration) -> CompressionPolicy.Outcome {
            ofDelta == isDelta
                ? .init(contentSize: contentSize, wireSize: wireSize, compressing: compressing, waiting: waiting)
                // The bytes that were sent for it count, compressed or not.
                : .init(contentSize: wireSize, wireSize: wireSize, compressing: nil, waiting: waiting)
        }
    }

    /// - Parameter now: the clock.
    init(now: @escaping @Sendable () -> Instant) {
        self.now = now
        plain = CompressionPolicy(now: now())
        delta = CompressionPolicy(now: now())
    }

    /// The link has taken what was made before, after so long.
    mutating func note(linkWait: Duration) {
        var waiting = linkWait
        for made in pending {
            let now = now()
            plain.record(made.outcome(ofDelta: false, waiting: waiting), now: now)
            delta.record(made.outcome(ofDelta: true, waiting: waiting), now: now)
            // Waited for once, however many chunks went together.
            waiting = .zero
        }
        pending.removeAll(keepingCapacity: true)
    }

    /// A chunk is nothing but zeros, of which next to nothing is sent: the link may be waited for behind it as well.
    mutating func noteZeros() {
        // Tens of thousands of them can go together: the wait is told once, with whatever there is.
        guard pending.isEmpty else { return }
        pending.append(Made(contentSize: 0, wireSize: 0, compressing: nil, isDelta: false))
    }

    /// Compresses a chunk, if that is worth its time.
    ///
    /// - Parameter delta: bytes of what differs, where that is sent otherwise; nil where the content is.
    /// - Returns: bytes written, fewer than would be sent otherwise; nil where the chunk is better sent so.
    mutating func compress(
        _ content: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer, insteadOf delta: Int? = nil
    ) -> Int? {
        let start = now()
        let (size, isDelta) = (delta ?? content.count, delta != nil)
        guard isDelta ? self.delta.shouldCompress(now: start) : plain.shouldCompress(now: start) else {
            pending.append(Made(contentSize: size, wireSize: size, compressing: nil, isDelta: isDelta))
            return nil
        }
        if compressor == nil { compressor = try? ChunkCompressor() }
        // Where little differs there is little room, and the compressor gives up as soon as it is full.
        let limit = delta.map { min($0 - 1, room.count) } ?? room.count
        let count = compressor?.compress(content, into: UnsafeMutableRawBufferPointer(rebasing: room[..<limit]))
        pending.append(
            Made(contentSize: size, wireSize: count ?? size, compressing: now() - start, isDelta: isDelta))
        return count
    }
}
