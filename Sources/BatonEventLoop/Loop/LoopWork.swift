// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import Synchronization

/// What was put on a loop and has not run yet, in order.
///
/// Dispatch is asked for a thread once for all that waits, and not at all while a turn of the loop (``ReadinessPoll``)
/// has one. A turn that waits for events is told by one write to a descriptor that it watches.
///
/// No bound of its own: an actor's job is a suspended task, and who makes tasks bounds them.
final class LoopWork: Sendable {
    typealias Item = @Sendable () -> Void

    private struct State {
        var items: [Item] = []
        /// Whether somebody on the queue, or on its way there, is going to look at the items.
        var isAttended = false
        /// What ends the wait of a turn; nil unless one waits that nobody has told.
        var wake: SharedDescriptor?
        /// Whether the loop has ended, and no turn is to wait any more.
        var isFinished = false
    }

    /// How often what has run may have added more before events have their turn: the steps of a task that passes
    /// between actors of one loop are so many rounds.
    static let rounds = 16
    /// No more of them begin after this time, in nanoseconds: 1 ms.
    static let roundsTime: UInt64 = 1_000_000

    private let queue: DispatchQueue
    private let state = Lock(State())
    private let busy = Atomic<UInt64>(0)

    /// Nanoseconds that the loop has spent on its work and on what its descriptors told. Callable from anywhere.
    var busyNanoseconds: UInt64 { busy.load(ordering: .relaxed) }

    /// - Parameter queue: the loop's.
    init(on queue: DispatchQueue) {
        self.queue = queue
    }

    /// Adds work at the end. Callable from anywhere.
    func append(_ item: @escaping Item) {
        let (isAttended, wake) = state.withLock { state in
            state.items.append(item)
            defer {
                state.isAttended = true
                state.wake = nil
            }
            return (state.isAttended, state.wake)
        }
        if !isAttended { return later() }
        end(wake)
    }

    /// Lets no turn wait any more: the loop has ended. Callable from anywhere.
    func finish() {
        end(
            state.withLock { state in
                state.isFinished = true
                defer { state.wake = nil }
                return state.wake
            })
    }

    private func end(_ wait: SharedDescriptor?) {
        guard let wait else { return }
        var one: UInt64 = 1
        _ = write(wait.rawValue, &one, MemoryLayout<UInt64>.size)
    }

    private func later() {
        queue.async {
            _ = self.run()
            self.leave()
        }
    }

    // MARK: - On the queue

    /// Runs something that the loop is busy with.
    func measure(_ body: () -> Void) {
        let start = MonotonicClock.nanoseconds()
        body()
        busy.wrappingAdd(MonotonicClock.nanoseconds() - start, ordering: .relaxed)
    }

    /// Says that the caller is going to look at what is added until it leaves, and waits no more.
    func attend() {
        state.withLock { state in
            state.isAttended = true
            state.wake = nil
        }
    }

    /// Runs what there is, and what that adds in turn, for up to ``rounds`` and ``roundsTime``: events have their turn
    /// in between. Returns whether there was something.
    func run() -> Bool {
        var items = takeItems()
        guard !items.isEmpty else { return false }
        let start = MonotonicClock.nanoseconds()
        var spent: UInt64 = 0
        for round in 1...Self.rounds {
            // Each is released when it has run.
            items.reverse()
            while let item = items.popLast() { item() }
            spent = MonotonicClock.nanoseconds() - start
            guard round < Self.rounds, spent < Self.roundsTime else { break }
            items = takeItems()
            guard !items.isEmpty else { break }
        }
        busy.wrappingAdd(spent, ordering: .relaxed)
        return true
    }

    private func takeItems() -> [Item] {
        state.withLock { state in
            defer { state.items = [] }
            return state.items
        }
    }

    /// Whether the caller may wait: there is nothing to do, and what is added next writes to `wake`, once.
    func mayWait(until wake: SharedDescriptor) -> Bool {
        state.withLock { state in
            guard state.items.isEmpty, !state.isFinished else { return false }
            state.wake = wake
            return true
        }
    }

    /// Says that the caller is gone, and leaves to a later turn of the queue what was added behind its back.
    func leave() {
        let isDone = state.withLock { state in
            state.wake = nil
            state.isAttended = !state.items.isEmpty
            return !state.isAttended
        }
        if !isDone { later() }
    }
}
