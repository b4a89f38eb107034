// SPDX-License-Identifier: Apache-2.0

public import Baton
public import Foundation

/// A continuation stream's output for code that wants Foundation's `OutputStream`.
///
/// `write(_:maxLength:)` blocks the calling thread while the other application reads more slowly than this one writes.
/// Use it on threads of the application's own, one at a time, and not in `async` code. There are no events: scheduling
/// on a run loop and a delegate are not supported.
public final class ContinuationOutputStream: OutputStream {
    private let output: ContinuationOutput?
    private var status = Status.notOpen
    private var failure: UserActivityError?

    /// Writes to a continuation stream; open it first, as any `OutputStream`.
    public init(_ output: ContinuationOutput) {
        self.output = output
        super.init(toMemory: ())
    }

    /// Required by `OutputStream`. There is no continuation stream behind it: it cannot be opened.
    public required init(toMemory: ()) {
        output = nil
        super.init(toMemory: ())
    }

    public override var streamStatus: Status { status }

    /// The ``UserActivityError`` that writing ended with.
    public override var streamError: (any Error)? { failure }

    /// Whether bytes are taken: it may have to wait for that.
    public override var hasSpaceAvailable: Bool { status == .open }

    public override func open() {
        guard status == .notOpen else { return }
        status = output == nil ? .error : .open
    }

    /// Ends this direction after the written bytes. The other direction goes on.
    public override func close() {
        if status == .open, let output { BlockingCall.wait { await output.finish() } }
        status = .closed
    }

    /// Takes bytes; waits while too many are queued.
    ///
    /// - Returns: how many it took, which is all; -1 where it failed (``streamError``) or is not open.
    public override func write(_ buffer: UnsafePointer<UInt8>, maxLength length: Int) -> Int {
        guard status == .open, let output else { return -1 }
        let bytes = Data(bytes: buffer, count: max(length, 0))
        let error = BlockingCall.wait { () async -> UserActivityError? in
            do throws(UserActivityError) {
                try await output.write(bytes)
                return nil
            } catch {
                return error
            }
        }
        guard let error else { return bytes.count }
        failure = error
        status = .error
        return -1
    }
}
