// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop
package import BatonProtocol
import Synchronization

/// The buffers of all documents of this process: one part of its budget, whatever the number of transfers.
///
/// A transfer that finds no buffer waits in line until another gives one back, so memory stays within the budget.
/// Reserved buffers are kept and used again; others go back to the ``BatonEventLoop/ByteBudget`` as soon as nobody
/// waits for them. Safe to use from any thread; every operation blocks on a lock only. A caller has to release each
/// buffer exactly once.
package final class BufferPool: Sendable {
    /// How many may wait in line for a buffer: 256 by default. It bounds what a flood of requests can pile up.
    package static let defaultWaiterLimit = 256

    /// Bytes of one buffer. By default one chunk record: 1 MiB and its checksum.
    package let bufferCapacity: Int
    /// How many buffers there can be: as many as fit in the part's ceiling, at least one.
    package let limit: Int
    /// How many may wait in line.
    package let waiterLimit: Int

    private typealias Turn = FirstResult<Result<Buffer, DocumentError>>

    private struct State {
        var idle: [Buffer] = []
        /// Held strongly, so that an identity cannot be reused while it stands here.
        var lent: [ObjectIdentifier: Buffer] = [:]
        var waiters: [Turn] = []
    }

    private let state = Mutex(State())
    private let part: ByteBudget.Part

    /// A pool in a part of the process's budget.
    ///
    /// - Parameter part: of the documents alone; one buffer at the least is reserved in it, so that a line for buffers
    ///   always moves.
    package init(
        part: ByteBudget.Part, bufferCapacity: Int = ChunkRecord.capacity, waiterLimit: Int = defaultWaiterLimit
    ) {
        precondition(part.reserved >= bufferCapacity, "one buffer is there for certain")
        self.part = part
        self.bufferCapacity = bufferCapacity
        self.waiterLimit = waiterLimit
        limit = part.ceiling / bufferCapacity
    }

    deinit {
        let count = state.withLock { $0.lent.count + $0.idle.count }
        part.giveBack(count * bufferCapacity)
    }

    /// Buffers that are out at this moment.
    package var lentCount: Int { state.withLock { $0.lent.count } }

    /// Buffers that exist, lent and idle.
    package var allocatedCount: Int { state.withLock { $0.lent.count + $0.idle.count } }

    /// Tasks in line at this moment.
    package var waiterCount: Int { state.withLock { $0.waiters.count } }

    /// An empty buffer; waits, first come first served, while all are out.
    ///
    /// - Throws: `busy` when too many wait already, `cancelled` when the task is cancelled before its turn.
    package nonisolated(nonsending) func acquire() async throws(DocumentError) -> Buffer {
        guard !Task.isCancelled else { throw DocumentError(.cancelled, "a document") }
        let turn = Turn()
        let buffer = try state.withLock { (state) throws(DocumentError) -> Buffer? in
            if let buffer = take(&state) { return buffer }
            guard state.waiters.count < waiterLimit else { throw DocumentError(.busy, "a document") }
            state.waiters.append(turn)
            return nil
        }
        if let buffer { return buffer }
        let result = await turn.value(ifCancelled: .failure(DocumentError(.cancelled, "a document")))
        if case .failure = result { state.withLock { $0.waiters.removeAll { $0 === turn } } }
        return try result.get()
    }

    /// An empty buffer if one is free and nobody is in line.
    package func acquireIfAvailable() -> Buffer? {
        state.withLock { take(&$0) }
    }

    /// Gives a buffer back. Its content is forgotten; a buffer that is not out from this pool is left alone.
    package func release(_ buffer: Buffer) {
        state.withLock { state in
            guard state.lent[ObjectIdentifier(buffer)] != nil else { return }
            buffer.count = 0
            // Straight to the first in line that was not cancelled, so that a newcomer cannot overtake it.
            while !state.waiters.isEmpty {
                if state.waiters.removeFirst().decide(.success(buffer)) { return }
            }
            state.lent[ObjectIdentifier(buffer)] = nil
            if part.held <= part.reserved {
                state.idle.append(buffer)
            } else {
                part.giveBack(bufferCapacity)
            }
        }
    }

    /// Frees the buffers that nobody uses: for when the last transfer is over.
    package func trim() {
        // Freed outside of the lock: giving pages back to the system takes its time.
        let idle = state.withLock { state in
            let idle = state.idle
            state.idle = []
            part.giveBack(idle.count * bufferCapacity)
            return idle
        }
        withExtendedLifetime(idle) {}
    }

    private func take(_ state: inout State) -> Buffer? {
        guard state.waiters.isEmpty else { return nil }
        let buffer: Buffer
        if let idle = state.idle.popLast() {
            buffer = idle
        } else if part.take(bufferCapacity) {
            buffer = Buffer(capacity: bufferCapacity)
        } else {
            return nil
        }
        state.lent[ObjectIdentifier(buffer)] = buffer
        return buffer
    }
}
