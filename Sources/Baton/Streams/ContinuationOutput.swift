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

    /// Sends bytes, in order. Waits while more than ``queueBound`` are queued, which is so when the other application
    /// reads slower than this one writes.
    ///
    /// - Throws: ``UserActivityError``: `userCancelled` where the other side cancelled, or the task is cancelled;
    ///   `connectionUnavailable` where the way was cut, or this side has finished; `streamInUse` where another task is
    ///   writing.
    public func write(_ bytes: some Collection<UInt8>) async throws(UserActivityError) {
        try await end.write(Pieces(of: bytes, size: Self.bufferSize), queueBound: Self.queueBound)
    }

    /// Ends this direction behind what was written: the other application reads to the end. Its own direction goes on,
    /// and what it sends should be read to the end, or the stream is aborted when it is let go.
    public func finish() async {
        await end.finish()
    }

    /// Aborts the stream in both directions: what is queued is dropped, and the other application is told so.
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
