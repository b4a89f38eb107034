// SPDX-License-Identifier: Apache-2.0

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

    let stream: BatonTransport.Stream

    /// Waits for the next bytes and returns them, at least one; `nil` if the other application has finished.
    ///
    /// - Throws: ``UserActivityError``: `streamFailed` if the program on the other side failed after it had sent what
    ///   was read; `userCancelled` if either side cancelled, or the task is cancelled; `connectionUnavailable` if the
    ///   connection broke; `streamInUse` if another task is reading.
    public func read() async throws(UserActivityError) -> Data? {
        do {
            return try await stream.read()?.withBytes { Data($0) }
        } catch {
            throw UserActivityError(stream: error)
        }
    }

    /// Resets the stream in both directions. Unread bytes are dropped, and the other application learns of it.
    public func cancel() async {
        await stream.reset(.cancelled)
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

    let stream: BatonTransport.Stream

    /// Sends bytes, in order. Waits while more than ``queueBound`` are queued, because the other application reads more
    /// slowly than this one writes.
    ///
    /// - Throws: ``UserActivityError``: `userCancelled` if the other side or the task was cancelled;
    ///   `connectionUnavailable` if the connection broke, or this side has finished; `streamInUse` if another task
    ///   waits to write.
    public func write(_ bytes: some Collection<UInt8>) async throws(UserActivityError) {
        var rest = bytes[...]
        do {
            while !rest.isEmpty {
                let piece = rest.prefix(Self.bufferSize)
                rest = rest[piece.endIndex...]
                try await stream.write(Buffer(copying: piece), queueBound: Self.queueBound)
            }
        } catch {
            throw UserActivityError(stream: error)
        }
    }

    /// Ends this direction after the written bytes, which the other application can still read. The other direction
    /// goes on. Read it to its end: releasing it earlier resets the stream.
    public func finish() async {
        await stream.finish()
    }

    /// Ends the stream because this application failed, so that the other one does not take a part for the whole.
    ///
    /// The other application reads what was written, and then gets ``UserActivityError/Code/streamFailed``. This method
    /// waits until what was written has left this application.
    ///
    /// - Parameter status: what the other application's user is told: 1 to 255, as the exit status of a program.
    public func fail(status: UInt8 = 1) async {
        precondition(status > 0, "a status of 0 means success: call finish()")
        await stream.fail(status: status)
    }

    /// Resets the stream in both directions. Queued bytes are dropped, and the other application learns of it.
    public func cancel() async {
        await stream.reset(.cancelled)
    }
}

extension UserActivityError {
    fileprivate init(stream error: TransportError) {
        switch error.code {
        case .reset(let code) where code.programStatus != nil: self.init(.streamFailed, error.message)
        case .alreadyWaiting:
            self.init(.streamInUse, "the stream is being used by another task: one at a time may")
        case _: self.init(HandoffError(error))
        }
    }
}
