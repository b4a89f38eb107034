// SPDX-License-Identifier: Apache-2.0

/// A stream that the peer opened, with its request.
package struct IncomingStream: Sendable {
    package let stream: Stream
    package let request: [UInt8]
}

/// The streams that the peer of a connection opens, in order; ends with the connection.
package struct IncomingStreams: AsyncSequence, AsyncIteratorProtocol, Sendable {
    let connection: Connection

    package func makeAsyncIterator() -> Self { self }

    /// Waits for the next stream; `nil` if the connection has ended or the task is cancelled.
    package nonisolated(nonsending) func next() async -> IncomingStream? { await connection.nextIncoming() }
}
