// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import BatonTransport

/// What waiting for a connection took: the network, and what the connection's event loop had to compute for it
/// meanwhile, which is TLS for the most part.
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

    /// What the network took.
    private(set) var link = Duration.zero
    /// What the loop was busy for.
    private(set) var processor = Duration.zero
    /// All of it.
    var whole: Duration { link + processor }

    /// Adds a wait.
    mutating func add(from start: Mark, to end: Mark) {
        let elapsed = end.time - start.time
        let busy = min(elapsed, end.busy - start.busy)
        processor += busy
        link += elapsed - busy
    }
}
