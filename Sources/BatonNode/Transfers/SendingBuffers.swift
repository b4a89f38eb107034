// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonProtocol
import BatonTransport

/// The buffers that one transfer has on their way to its stream, in order.
///
/// A transfer that has buffers waits for one of these, never for another transfer's. This prevents a deadlock.
struct SendingBuffers: ~Copyable {
    private let pool: BufferPool
    private let limit: Int
    private var lent: [Buffer] = []
    private var byteCount = 0

    /// - Parameter limit: how many may be on their way at once, at least 1.
    init(of pool: BufferPool, atMost limit: Int) {
        self.pool = pool
        self.limit = limit
    }

    /// An empty buffer, for the caller to hand to ``add(_:)`` or ``giveBack(_:)``.
    ///
    /// - Parameter drain: waits until no more than so many bytes of this transfer are queued.
    mutating func next(
        draining drain: nonisolated(nonsending) (Int) async throws -> Void
    ) async throws -> Buffer {
        while let first = lent.first {
            if lent.count < limit, let buffer = pool.acquireIfAvailable() { return buffer }
            try await drain(byteCount - first.count)
            release()
        }
        return try await pool.acquire()
    }

    /// Takes a buffer back that was not queued.
    func giveBack(_ buffer: Buffer) { pool.release(buffer) }

    /// Takes note of a buffer that is queued behind the others.
    mutating func add(_ buffer: Buffer) {
        lent.append(buffer)
        byteCount += buffer.count
    }

    /// Gives back what has gone, where so many bytes are still queued.
    mutating func release(queued: Int) {
        while let first = lent.first, byteCount - first.count >= queued { release() }
    }

    /// Gives all of them back: nothing of them is queued any more.
    mutating func releaseAll() {
        while !lent.isEmpty { release() }
    }

    private mutating func release() {
        let first = lent.removeFirst()
        byteCount -= first.count
        pool.release(first)
    }
}
