// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
public import FoundationEssentials

/// The bytes that the application on the other device sends, as they come.
///
/// ```swift
/// for try await bytes in input { page.append(bytes) }
/// ```
///
/// The sequence ends where the other application finished its output; one that was aborted or cut off throws. Who reads
/// slowly slows the sender: at most 512 KiB wait here. One task at a time may read.
public struct ContinuationInput: AsyncSequence, Sendable {
    public typealias Element = Data
    public typealias Failure = UserActivityError

    let end: StreamEnd

    /// The next bytes, at least one; `nil` where the other application has finished. Waits for some.
    ///
    /// - Throws: ``UserActivityError``: `userCancelled` where the other side or this one cancelled, or the task is
    ///   cancelled; `connectionUnavailable` where the way was cut; `streamInUse` where another task is reading.
    public func read() async throws(UserActivityError) -> Data? {
        guard let buffer = try await end.read() else { return nil }
        return buffer.withBytes { Data($0) }
    }

    /// Aborts the stream in both directions: what is unread is dropped, and the other application is told so.
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
