// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import DequeModule

/// A stream that the peer opened, with the request that it opened it with.
package struct IncomingStream: Sendable {
    package let stream: Stream
    package let request: [UInt8]
}

/// The streams that the peer of a connection opens, in order; ends with the connection.
///
/// At most one task may wait for the next.
package struct IncomingStreams: AsyncSequence, Sendable {
    let connection: Connection

    package func makeAsyncIterator() -> AsyncIterator { AsyncIterator(connection: connection) }

    package struct AsyncIterator: AsyncIteratorProtocol {
        let connection: Connection

        /// Waits; `nil` when the connection has ended, or the task is cancelled.
        package nonisolated(nonsending) func next() async -> IncomingStream? { await connection.nextIncoming() }
    }
}

/// Streams that the peer opened and that nobody has taken yet. Bounded by the protocol's limit of open streams.
///
/// It keeps numbers, not ``Stream`` objects, which would keep their connection alive.
struct Arrivals {
    private var waiting: Deque<(StreamID, request: [UInt8])> = []
    var waiter = Waiter()

    var isEmpty: Bool { waiting.isEmpty }

    mutating func append(_ id: StreamID, _ request: [UInt8]) {
        waiting.append((id, request))
        waiter.wake()
    }

    mutating func next() -> (StreamID, [UInt8])? { waiting.popFirst() }
}
