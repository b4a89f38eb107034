// SPDX-License-Identifier: Apache-2.0

public import Baton
public import Foundation

/// A continuation stream's input for code that wants Foundation's `InputStream`.
///
/// `read(_:maxLength:)` blocks the calling thread until bytes have come: it is for threads of the application's own,
/// not for `async` code. Scheduling on a run loop is not supported, nor is a delegate: there are no events. One thread
/// at a time uses it.
public final class ContinuationInputStream: InputStream {
    private let input: ContinuationInput
    private var unread = Data()
    private var status = Status.notOpen
    private var failure: UserActivityError?

    /// Reads from a continuation stream; open it first, as any `InputStream`.
    public init(_ input: ContinuationInput) {
        self.input = input
        super.init(data: Data())
    }

    public override var streamStatus: Status { status }

    /// The ``UserActivityError`` that reading ended with.
    public override var streamError: (any Error)? { failure }

    /// Whether reading may give bytes: it may still have to wait for them.
    public override var hasBytesAvailable: Bool { status == .open }

    public override func open() {
        if status == .notOpen { status = .open }
    }

    /// Aborts the stream unless it was read to its end.
    public override func close() {
        if status == .open {
            let input = input
            BlockingCall.wait { await input.cancel() }
        }
        status = .closed
        unread = Data()
    }

    /// Gives bytes; waits for some.
    ///
    /// - Returns: how many, 0 at the end, -1 where it failed (``streamError``) or is not open.
    public override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength length: Int) -> Int {
        guard status == .open, length > 0 else { return status == .atEnd || status == .open ? 0 : -1 }
        if unread.isEmpty {
            let input = input
            let next = BlockingCall.wait { () async -> Result<Data?, UserActivityError> in
                do throws(UserActivityError) {
                    return .success(try await input.read())
                } catch {
                    return .failure(error)
                }
            }
            switch next {
            case .success(let bytes?): unread = bytes
            case .success(nil):
                status = .atEnd
                return 0
            case .failure(let error):
                failure = error
                status = .error
                return -1
            }
        }
        let count = min(length, unread.count)
        unread.copyBytes(to: buffer, count: count)
        unread = unread.dropFirst(count)
        return count
    }

    /// There is no buffer to look into.
    public override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
    ) -> Bool { false }
}
