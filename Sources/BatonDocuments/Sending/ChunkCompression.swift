import BatonProtocol

/// Compresses chunks where the link is what a transfer waits for.
struct ChunkCompression: ~Copyable {
    private let now: @Sendable () -> Instant
    private var policy: CompressionPolicy
    private var compressor: ChunkCompressor?
    /// What became of the chunks that were read since the caller told how long the link took.
    private var pending: [Made] = []

    private struct Made {
        let contentSize: Int
        let wireSize: Int
        let compressing: Duration?
    }

    /// - Parameter now: the clock.
    init(now: @escaping @Sendable () -> Instant) {
        self.now = now
        policy = CompressionPolicy(now: now())
    }

    /// The link has taken what was made before, after so long.
    mutating func note(linkWait: Duration) {
        var waiting = linkWait
        for made in pending {
            policy.record(
                .init(
                    contentSize: made.contentSize, wireSize: made.wireSize, compressing: made.compressing,
                    waiting: waiting), now: now())
            // Waited for once, however many chunks went together.
            waiting = .zero
        }
        pending.removeAll(keepingCapacity: true)
    }

    /// Compresses a chunk, if that is worth its time.
    ///
    /// - Returns: bytes written; nil where the chunk is better sent plain.
    mutating func compress(
        _ content: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer
    ) -> Int? {
        let start = now()
        guard policy.shouldCompress(now: start) else {
            pending.append(Made(contentSize: content.count, wireSize: content.count, compressing: nil))
            return nil
        }
        if compressor == nil { compressor = try? ChunkCompressor() }
        let count = compressor?.compress(content, into: room)
        pending.append(
            Made(contentSize: content.count, wireSize: count ?? content.count, compressing: now() - start))
        return count
    }
}
