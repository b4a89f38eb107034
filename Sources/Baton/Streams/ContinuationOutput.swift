// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import FoundationEssentials

/// Bytes for the application on the other device.
///
/// One task at a time may write.
public struct ContinuationOutput: Sendable {
    /// Bytes that may be on their way out of this application before ``write(_:)`` waits: 256 KiB.
    public static let queueBound = 256 << 10
    private static let bufferSize = 64 << 10

    let end: StreamEnd

    /// Sends bytes, in order. Waits while more than ``queueBound`` are queued, because the other application reads more
    /// slowly than this one writes.
    ///
    /// - Throws: ``UserActivityError``: `userCancelled` if the other side or the task was cancelled;
    ///   `connectionUnavailable` if the connection broke, or this side has finished; `streamInUse` if another task is
    ///   writing.
    public func write(_ bytes: some Collection<UInt8>) async throws(UserActivityError) {
        try await end.write(Pieces(of: bytes, size: Self.bufferSize), queueBound: Self.queueBound)
    }

    /// Ends this direction after the written bytes, which the other application can still read. The other direction
    /// goes on. Read it to its end: releasing it earlier resets the stream.
    public func finish() async {
        await end.finish()
    }

    /// Ends the stream because this application failed, so that the other one does not take a part for the whole.
    ///
    /// The other application reads what was written, and then gets ``UserActivityError/Code/streamFailed``. This method
    /// waits until what was written has left this application.
    ///
    /// - Parameter status: what the other application's user is told: 1 to 255, as the exit status of a program.
    public func fail(status: UInt8 = 1) async {
        precondition(status > 0, "a status of 0 means success: call finish()")
        await end.fail(status: status)
    }

    /// Resets the stream in both directions. Queued bytes are dropped, and the other application learns of it.
    public func cancel() async {
        await end.cancel()
    }
}

/// Copies of pieces of a collection, made one at a time.
private struct Pieces<Bytes: Collection<UInt8>>: Sequence, IteratorProtocol {
    private var rest: Bytes.SubSequence
    private let size: Int

    init(of bytes: Bytes, size: Int) {
        rest = bytes[...]
        self.size = size
    }

    mutating func next() -> Buffer? {
        guard !rest.isEmpty else { return nil }
        let piece = rest.prefix(size)
        rest = rest[piece.endIndex...]
        return Buffer(copying: piece)
    }
}
