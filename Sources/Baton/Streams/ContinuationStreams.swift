// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
public import FoundationEssentials

/// The bytes that the application on the other device sends, as they come.
///
/// ```swift
/// for try await bytes in input { page.append(bytes) }
/// ```
///
/// The sequence ends where the other application finished its output. It throws if the stream was reset or cut off. A
/// slow reader slows the sender: at most 512 KiB wait here. One task at a time may read.
public struct ContinuationInput: AsyncSequence, Sendable {
    public typealias Element = Data
    public typealias Failure = UserActivityError

    let end: StreamEnd

    /// Waits for the next bytes and returns them, at least one; `nil` if the other application has finished.
    ///
    /// - Throws: ``UserActivityError``: `streamFailed` if the program on the other side failed after it had sent what
    ///   was read; `userCancelled` if either side cancelled, or the task is cancelled; `connectionUnavailable` if the
    ///   connection broke; `streamInUse` if another task is reading.
    public func read() async throws(UserActivityError) -> Data? {
        guard let buffer = try await end.read() else { return nil }
        return buffer.withBytes { Data($0) }
    }

    /// Resets the stream in both directions. Unread bytes are dropped, and the other application learns of it.
    public func cancel() async {
        await end.cancel()
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(input: self) }

    public struct AsyncIterator: AsyncIteratorProtocol {
        let input: ContinuationInput

        public mutating func next() async throws(UserActivityError) -> Data? { try await input.read() }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(UserActivityError) -> Data? { try await input.read() }
    }
}

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

/// This application's end of a stream between two applications, shared by its input and its output.
///
/// Releasing both resets an unfinished stream.
final class StreamEnd: Sendable {
    let stream: BatonTransport.Stream
    /// The current reader and writer: at most one each, as the stream below requires.
    private let use = Lock(Use())

    private struct Use {
        var isReading = false
        var isWriting = false
    }

    init(_ stream: BatonTransport.Stream) {
        self.stream = stream
    }

    func read() async throws(UserActivityError) -> Buffer? {
        let isFree = use.withLock { use in
            defer { use.isReading = true }
            return !use.isReading
        }
        guard isFree else { throw .inUse("read") }
        defer { use.withLock { $0.isReading = false } }
        do {
            return try await stream.read()
        } catch {
            throw UserActivityError(stream: error)
        }
    }

    /// Writes buffers in order, each after the queue has shrunk to the bound.
    func write(_ buffers: some Sequence<Buffer>, queueBound: Int) async throws(UserActivityError) {
        let isFree = use.withLock { use in
            defer { use.isWriting = true }
            return !use.isWriting
        }
        guard isFree else { throw .inUse("written") }
        defer { use.withLock { $0.isWriting = false } }
        do throws(TransportError) {
            for buffer in buffers { try await stream.write(buffer, queueBound: queueBound) }
        } catch {
            throw UserActivityError(stream: error)
        }
    }

    func finish() async {
        await stream.finish()
    }

    func fail(status: UInt8) async {
        await stream.fail(status: status)
    }

    func cancel() async {
        await stream.reset(.cancelled)
    }
}

extension UserActivityError {
    fileprivate init(stream error: TransportError) {
        if case .reset(let code) = error.code, code.programStatus != nil {
            self.init(.streamFailed, error.message)
        } else {
            self.init(HandoffError(error))
        }
    }

    fileprivate static func inUse(_ what: String) -> UserActivityError {
        UserActivityError(.streamInUse, "the stream is being \(what) by another task: one at a time may")
    }
}
