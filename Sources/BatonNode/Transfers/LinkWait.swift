// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import BatonTransport

/// The time that waiting for a connection took, split into the network's part and the event loop's part, mostly TLS.
struct LinkWait: Sendable, Hashable {
    /// A moment at which a wait begins or ends.
    struct Mark: Sendable {
        let time: Instant
        let busy: Duration

        /// Now, on the loop of a connection.
        init(_ loop: EventLoop) {
            time = .now
            busy = loop.busyTime
        }

        init(time: Instant, busy: Duration) {
            self.time = time
            self.busy = busy
        }
    }

    private(set) var link = Duration.zero
    /// The time that the loop was busy.
    private(set) var processor = Duration.zero
    var whole: Duration { link + processor }

    /// Adds a wait.
    mutating func add(from start: Mark, to end: Mark) {
        let elapsed = end.time - start.time
        let busy = min(elapsed, end.busy - start.busy)
        processor += busy
        link += elapsed - busy
    }
}
