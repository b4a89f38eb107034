// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
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
