// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// One bidirectional stream of a connection: a request, its response, and bytes in both directions.
///
/// Any task may use a stream. At most one task at a time may wait to read, and one to write; a second one fails
/// (``TransportError/Code/alreadyWaiting``). Releasing the last reference aborts a stream that is not finished, so that
/// no path leaks one.
package final class Stream: Sendable {
    /// The id of the stream on its connection.
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

    /// The peer's response to the request of this stream. Waits for it.
    package nonisolated(nonsending) func response() async throws(TransportError) -> [UInt8] {
        try await connection.response(of: id)
    }

    /// Answers the peer's request of this stream; once, before any data.
    package nonisolated(nonsending) func respond(_ message: [UInt8]) async throws(TransportError) {
        try await connection.respond(id, message)
    }

    /// Reserves bytes of the connection's budget for data that will be queued behind the answer, until the stream is
    /// gone.
    ///
    /// For small answers only: documents and continuation streams have budgets of their own.
    ///
    /// - Throws: ``TransportError/Code/limitExceeded`` if there are not enough.
    package nonisolated(nonsending) func reserve(_ bytes: Int) async throws(TransportError) {
        try await connection.reserve(id, bytes)
    }

    /// The bytes that came since the last call; waits for some. `nil` at the peer's END.
    ///
    /// The next call gives the peer credit for a buffer. So a slow reader slows the sender.
    ///
    /// - Parameters:
    ///   - bound: the number of bytes to wait for, unless the peer's END comes first; at most ``Connection/readBound``.
    ///     Large pieces cost less for bulk data that is written to a disk.
    ///   - buffer: the previous buffer, if its bytes are no longer needed; it is filled again.
    ///   - framing: how later bytes are cut into buffers. Nil, the default, changes nothing.
    package nonisolated(nonsending) func read(
        atLeast bound: Int = 1, reusing buffer: Buffer? = nil, framing: Framing? = nil
    ) async throws(TransportError) -> Buffer? {
        try await connection.read(id, atLeast: bound, reusing: buffer, framing: framing)
    }

    /// Lets a task that waits in ``read(atLeast:reusing:)`` return with any bytes that have come or come next.
    package func lowerReadBound() async {
        await connection.lowerReadBound(id)
    }

    /// Queues bytes for the peer, and waits while more of this stream is queued than the bound.
    ///
    /// - Parameters:
    ///   - buffer: must not be changed while its bytes are queued.
    ///   - queueBound: the most bytes that are queued when it returns.
    /// - Returns: the number of bytes of this stream that are still queued. Buffers are sent in order, so the caller
    ///   knows which ones it may fill again. If the task is cancelled while it waits, this can be more than the bound.
    /// - Throws: ``TransportError``. Nothing of the buffer was queued, unless the stream has failed. If it would have
    ///   to wait, it throws `alreadyWaiting` if another task waits, and `cancelled` if this task is cancelled.
    @discardableResult
    package nonisolated(nonsending) func write(
        _ buffer: Buffer, queueBound: Int = Connection.sendQueueBound
    ) async throws(TransportError) -> Int {
        try await connection.write(id, buffer, queueBound: queueBound)
    }

    /// Declares that no bytes are expected from the peer. If it sends some, the stream is aborted, so that nobody can
    /// make this side keep bytes that it will never read.
    ///
    /// Does not wait. It takes effect before the next call of a task without an actor.
    package func ignoreInput() {
        connection.ignoreInput(of: id)
    }

    /// Sets the number of slices that this side sends at each of the stream's turns: see `Session.setWeight(_:of:)`.
    package func setWeight(_ weight: Int) async {
        await connection.setWeight(weight, of: id)
    }

    /// Waits until at most `bound` written bytes have not been handed to the network.
    ///
    /// - Returns: the number of bytes that are still queued.
    @discardableResult
    package nonisolated(nonsending) func drained(to bound: Int = 0) async throws(TransportError) -> Int {
        try await connection.waitForQueue(of: id, atMost: bound)
    }

    /// Sends END after the queued bytes. The other direction continues.
    package nonisolated(nonsending) func finish() async {
        await connection.finish(id)
    }

    /// Aborts both directions and drops queued and unread bytes.
    ///
    /// The peer is told at once, unless so many streams are aborted that it would take it for an attack
    /// (`Limits.sentResets`): see ``untilClosed()``.
    package nonisolated(nonsending) func reset(_ code: ApplicationErrorCode) async {
        await connection.reset(id, code)
    }

    /// Ends the stream because the program behind it failed. The peer reads all that was written, and then gets an
    /// error.
    ///
    /// Waits until everything that was written has been handed to the network.
    ///
    /// - Parameter status: 1 to 255; see ``ApplicationErrorCode/programFailed(status:)``.
    package nonisolated(nonsending) func fail(status: UInt8) async {
        _ = try? await drained()
        await reset(.programFailed(status: status))
    }

    /// Waits until the stream was aborted, both directions or its connection have ended, or the task is cancelled. For
    /// work that nobody wants any more then.
    package func untilClosedOrCancelled() async {
        await connection.untilClosed(id, cancelled: true)
    }

    /// Waits until the stream, which has ended or was aborted, no longer counts as open. The end of the connection ends
    /// the wait, a cancellation does not.
    package func untilClosed() async {
        await connection.untilClosed(id, cancelled: false)
    }
}
