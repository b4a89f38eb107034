// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import DequeModule

/// A stream that the peer opened, with its request.
package struct IncomingStream: Sendable {
    package let stream: Stream
    package let request: [UInt8]
}

/// The streams that the peer of a connection opens, in order; ends with the connection.
///
/// At most one task may wait for the next one.
package struct IncomingStreams: AsyncSequence, Sendable {
    let connection: Connection

    package func makeAsyncIterator() -> AsyncIterator { AsyncIterator(connection: connection) }

    package struct AsyncIterator: AsyncIteratorProtocol {
        let connection: Connection

        /// Waits for the next stream; `nil` if the connection has ended or the task is cancelled.
        package nonisolated(nonsending) func next() async -> IncomingStream? { await connection.nextIncoming() }
    }
}

/// Streams of the peer that were not handed out yet. The protocol's limit of open streams bounds them.
///
/// It keeps ids and not ``Stream`` objects, which would keep their connection alive.
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
