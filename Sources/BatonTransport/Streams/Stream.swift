// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// One bidirectional stream of a connection: a request, its response, and bytes both ways.
///
/// Any task may use a stream; at most one at a time waits to read, and one to write: another one that would read, or
/// would have to wait to write, fails meanwhile (``TransportError/Code/alreadyWaiting``). Letting the last reference go
/// aborts what is not finished, so that no path leaks a stream.
package final class Stream: Sendable {
    /// The stream's number on its connection.
    package let id: StreamID
    /// The connection that carries it.
    package let connection: Connection

    init(id: StreamID, connection: Connection) {
        self.id = id
        self.connection = connection
    }

    deinit {
        connection.abandon(id)
    }

    /// The peer's response to the request that opened this stream. Waits for it.
    package nonisolated(nonsending) func response() async throws(TransportError) -> [UInt8] {
        try await connection.response(of: id)
    }

    /// Answers the request that the peer opened this stream with; once, before any data.
    package nonisolated(nonsending) func respond(_ message: [UInt8]) async throws(TransportError) {
        try await connection.respond(id, message)
    }

    /// Takes room of the connection's budget for bytes that will be queued behind the answer, until the stream is gone.
    ///
    /// For answers that are no bulk: documents and continuation streams have budgets of their own.
    ///
    /// - Throws: ``TransportError/Code/limitExceeded`` where there is not so much.
    package nonisolated(nonsending) func reserve(_ bytes: Int) async throws(TransportError) {
        try await connection.reserve(id, bytes)
    }

    /// The bytes that came since the last call; waits for some. `nil` at the peer's END.
    ///
    /// The peer is given credit for a buffer when the next one is asked for: who reads slowly slows the sender.
    ///
    /// - Parameters:
    ///   - bound: wait for so many bytes, or the peer's END; at most ``Connection/readBound``. Bulk that is written to
    ///     a disk costs less in large pieces.
    ///   - buffer: the previous buffer, when its bytes are no longer needed; it is filled again.
    ///   - framing: how what comes from now on is to be cut into buffers; as it was by default, at first as it comes.
    package nonisolated(nonsending) func read(
        atLeast bound: Int = 1, reusing buffer: Buffer? = nil, framing: Framing? = nil
    ) async throws(TransportError) -> Buffer? {
        try await connection.read(id, atLeast: bound, reusing: buffer, framing: framing)
    }

    /// Has a task that waits in ``read(atLeast:reusing:)`` take what has come, or what comes next, be it less.
    package func settle() async {
        await connection.settle(id)
    }

    /// Queues bytes for the peer, and waits while more of this stream is queued than the bound.
    ///
    /// - Parameters:
    ///   - buffer: not to be touched by the caller while its bytes are queued.
    ///   - queueBound: how many bytes may be queued when it returns.
    /// - Returns: how many bytes of this stream are still queued. Buffers are sent in order, so that the caller knows
    ///   which ones it may fill again.
    @discardableResult
    package nonisolated(nonsending) func write(
        _ buffer: Buffer, queueBound: Int = Connection.sendQueueBound
    ) async throws(TransportError) -> Int {
        try await connection.write(id, buffer, queueBound: queueBound)
    }

    /// Says that no bytes are expected from the peer: one that sends some has its stream aborted, so that nobody can
    /// make this side keep what it will never read. Not waited for: it comes before what a task that is on no actor
    /// asks of the stream next.
    package func ignoreInput() {
        connection.ignoreInput(of: id)
    }

    /// Gives what is written here so many slices at each of its turns: see `Session.setWeight(_:of:)`.
    package func setWeight(_ weight: Int) async {
        await connection.setWeight(weight, of: id)
    }

    /// Waits until every byte that was written has been handed to the network, or all but so many.
    ///
    /// - Returns: bytes that are still queued.
    @discardableResult
    package nonisolated(nonsending) func drained(to bound: Int = 0) async throws(TransportError) -> Int {
        try await connection.waitForQueue(of: id, atMost: bound)
    }

    /// Sends END after what is queued. The other direction goes on.
    package nonisolated(nonsending) func finish() async {
        await connection.finish(id)
    }

    /// Aborts both directions; what is queued or unread is dropped.
    ///
    /// The peer is told at once, unless so many streams are aborted that it would take it for an attack
    /// (`Limits.sentResets`): see ``left()``.
    package nonisolated(nonsending) func reset(_ code: ApplicationErrorCode) async {
        await connection.reset(id, code)
    }

    /// Waits until the stream was aborted, has ended in both directions, or its connection has; or until the task is
    /// cancelled. For work that nobody wants any more then.
    package func gone() async {
        await connection.gone(id)
    }

    /// Waits until the stream, which has ended or was aborted, no longer takes a place among those that may be open.
    /// The end of the connection ends the wait, a cancellation does not.
    package func left() async {
        await connection.left(id)
    }
}
