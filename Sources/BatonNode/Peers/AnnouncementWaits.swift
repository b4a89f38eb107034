// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Synchronization

/// Who waits for a device to announce itself: one wait of each handoff that is under way.
final class AnnouncementWaits: Sendable {
    private let begun = Atomic<UInt64>(0)
    private let waiting = Lock<[UInt64: (device: String, heard: AsyncStream<Void>.Continuation)]>([:])

    /// How many wait.
    var count: Int { waiting.withLock { $0.count } }

    /// Waits until a device is heard, at most for a time, or until the task is cancelled.
    func wait(for device: String, atMost pause: Duration) async {
        let id = begun.wrappingAdd(1, ordering: .relaxed).newValue
        let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        waiting.withLock { $0[id] = (device, continuation) }
        let timer = Task {
            try? await Alarm.sleep(for: pause)
            continuation.finish()
        }
        for await _ in stream { break }
        timer.cancel()
        waiting.withLock { $0[id] = nil }
    }

    /// A device was heard: who waits for it waits no longer.
    func heard(_ device: String) {
        for wait in waiting.withLock({ $0.values.filter { $0.device == device } }) { wait.heard.yield() }
    }

    /// Ends every wait.
    func stop() {
        for wait in waiting.withLock({ Array($0.values) }) { wait.heard.finish() }
    }
}
