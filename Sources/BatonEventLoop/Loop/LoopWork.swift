// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import Synchronization

/// The work of a loop that has not run yet, in order.
///
/// Dispatch is asked for a thread once for all waiting work, and not at all during a turn of the loop
/// (``ReadinessPoll``), which has one. A turn that waits for events is woken by one write to a descriptor that it
/// watches.
///
/// It has no bound of its own: a job of an actor is a suspended task, and the creator of tasks bounds them.
final class LoopWork: Sendable {
    typealias Item = @Sendable () -> Void

    private struct State {
        var items: [Item] = []
        /// Whether a turn or a block on the queue is going to run the items.
        var hasRunner = false
        /// The descriptor that ends the wait of a turn; nil unless a turn waits and was not woken yet.
        var wake: SharedDescriptor?
        /// Whether the loop has ended, so that no turn may wait any more.
        var isFinished = false
    }

    /// The greatest number of rounds between two looks at events. Work that running work adds belongs to the next
    /// round, for example the next step of a task that passes between actors of one loop.
    static let rounds = 16
    /// The time after which no further round begins, in nanoseconds: 1 ms.
    static let roundsTime: UInt64 = 1_000_000

    private let queue: DispatchQueue
    private let state = Lock(State())
    private let busy = Atomic<UInt64>(0)

    /// Nanoseconds that the loop has spent on its work and on events. Callable from anywhere.
    var busyNanoseconds: UInt64 { busy.load(ordering: .relaxed) }

    /// Makes an empty list of work.
    ///
    /// - Parameter queue: the loop's queue.
    init(on queue: DispatchQueue) {
        self.queue = queue
    }

    /// Adds work at the end. Callable from anywhere.
    func append(_ item: @escaping Item) {
        let (hasRunner, wake) = state.withLock { state in
            state.items.append(item)
            defer {
                state.hasRunner = true
                state.wake = nil
            }
            return (state.hasRunner, state.wake)
        }
        if !hasRunner { return scheduleRun() }
        end(wake)
    }

    /// Ends the loop: no turn waits any more. Callable from anywhere.
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

    private func scheduleRun() {
        queue.async {
            _ = self.run()
            self.leave()
        }
    }

    // MARK: - On the queue

    /// Runs `body` and counts its time as busy.
    func measure(_ body: () -> Void) {
        let start = MonotonicClock.nanoseconds()
        body()
        busy.wrappingAdd(MonotonicClock.nanoseconds() - start, ordering: .relaxed)
    }

    /// Marks the caller as the one that runs new items until it leaves. It no longer waits.
    func enter() {
        state.withLock { state in
            state.hasRunner = true
            state.wake = nil
        }
    }

    /// Runs the items, and those that they add, for up to ``rounds`` and ``roundsTime``. Returns whether there were
    /// any.
    func run() -> Bool {
        var items = takeItems()
        guard !items.isEmpty else { return false }
        let start = MonotonicClock.nanoseconds()
        var spent: UInt64 = 0
        for round in 1...Self.rounds {
            // Each item is released when it has run.
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

    /// Prepares the caller to wait. Returns false if there is work. Otherwise the next item writes to `wake`, once.
    func prepareToWait(wakingBy wake: SharedDescriptor) -> Bool {
        state.withLock { state in
            guard state.items.isEmpty, !state.isFinished else { return false }
            state.wake = wake
            return true
        }
    }

    /// Ends the caller's duty to run new items, and schedules those that were added meanwhile.
    func leave() {
        let isDone = state.withLock { state in
            state.wake = nil
            state.hasRunner = !state.items.isEmpty
            return !state.hasRunner
        }
        if !isDone { scheduleRun() }
    }
}
