// SPDX-License-Identifier: Apache-2.0

/// Sleep for the tasks of a program that waits for days.
///
/// `Task.sleep` wakes a thread of Dispatch's global pool, and from then on that pool wakes the process once a second
/// (see ``GlobalPool``).
package enum Alarm {
    /// The loop of timers that belong to no other loop.
    package static let loop = EventLoop(name: "alarms")

    /// Suspends the task, as `Task.sleep(for:)` does. Callable from anywhere.
    ///
    /// - Parameter duration: negative is zero; at most a millisecond more passes.
    /// - Throws: as soon as the task is cancelled.
    package static func sleep(for duration: Duration) async throws(CancellationError) {
        await FirstResult<Void>().value(ifCancelled: (), within: duration, else: ())
        if Task.isCancelled { throw CancellationError() }
    }
}
