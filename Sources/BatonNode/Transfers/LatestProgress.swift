// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport

/// The progress of a document over all attempts to fetch it, as it was told last. Any task may read and set it.
final class LatestProgress: Sendable {
    private struct State {
        /// The attempt that reported last.
        var report: TransferReport?
        /// Bytes that were there when it reported last.
        var bytes: UInt64 = 0
        /// How far the document is.
        var transfer: TransferProgress?
        /// When it reported last.
        var time = Instant.now
        /// When there were last other bytes than before.
        var lastChange = Instant.now
        /// Bytes that came over the link in the attempts before ``report``.
        var receivedBefore: UInt64 = 0
    }

    /// Without news it is told again this often: 1 s.
    private static let pause = Duration.seconds(1)

    private let state = Lock(State())

    /// How far the document is; nil before it was told.
    var transfer: TransferProgress? { state.withLock { $0.transfer } }

    /// Bytes that were there when it was told last.
    var bytes: UInt64 { state.withLock { $0.bytes } }

    /// Bytes that came over the link, in all attempts.
    var received: UInt64 { state.withLock { $0.receivedBefore + ($0.report?.received ?? 0) } }

    /// Bytes that are kept of what has come.
    var kept: UInt64 { state.withLock { $0.report?.kept ?? 0 } }

    /// How long nothing has come.
    var stillness: Duration { state.withLock { .now - $0.lastChange } }

    /// Takes note of progress that is told now.
    func set(_ report: TransferReport) {
        state.withLock { state in
            if let last = state.report, last !== report { state.receivedBefore += last.received }
            let bytes = report.bytes
            if bytes != state.bytes { state.lastChange = .now }
            state.report = report
            state.bytes = bytes
            state.transfer.note(bytes, of: report.size)
            state.time = .now
        }
    }

    /// Takes note that an attempt has ended, and how much of the document is kept: that is what is there from now on.
    func end(keeping bytes: UInt64) {
        state.withLock { state in
            guard let report = state.report else { return }
            report.advance(to: bytes, keeping: bytes)
            state.transfer.note(bytes, of: report.size)
        }
    }

    /// Does some work, and meanwhile tells the same again while there is no news: whoever draws it sees the rate fall
    /// while nothing comes. Nothing is told any more when it returns. What is waited for is what is waited for by then.
    nonisolated(nonsending) func repeating<Value, Failure: Error>(
        _ tell: @escaping @Sendable (WireProgressReport) async -> Void,
        during work: nonisolated(nonsending) () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        async let _: Void = repeatWhileStill(tell)
        return try await work()
    }

    private func repeatWhileStill(_ tell: @Sendable (WireProgressReport) async -> Void) async {
        while (try? await Alarm.sleep(for: Self.pause)) != nil {
            let old = state.withLock { .now - $0.time >= Self.pause ? $0.report : nil }
            if let old { await tell(old.progress()) }
        }
    }
}
