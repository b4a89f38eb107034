// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport

/// The last progress that was told, from wherever it is told.
final class LatestProgress: Sendable {
    /// Without news it is told again this often: 1 s.
    private static let pause = Duration.seconds(1)

    private let state = Lock<(report: TransferReport, bytes: UInt64, time: Instant)?>(nil)
    /// What came over the link in earlier attempts.
    private let receivedBefore = Lock(UInt64(0))
    private let lastChange = Lock(Instant.now)

    /// Bytes that were there when it was told last.
    var bytes: UInt64 { state.withLock { $0?.bytes ?? 0 } }

    /// Bytes that came over the link, in all attempts.
    var received: UInt64 { receivedBefore.withLock { $0 } + state.withLock { $0?.report.received ?? 0 } }

    /// Bytes that are kept of what has come.
    var kept: UInt64 { state.withLock { $0?.report }?.kept ?? 0 }

    /// How long nothing has come.
    var stillness: Duration { lastChange.withLock { .now - $0 } }

    /// Takes note of progress that is told now.
    func set(_ report: TransferReport) {
        let bytes = report.bytes
        let last = state.withLock { state in
            defer { state = (report, bytes, .now) }
            return state
        }
        if let last, last.report !== report { receivedBefore.withLock { $0 += last.report.received } }
        if bytes != last?.bytes ?? 0 { lastChange.withLock { $0 = .now } }
    }

    /// Takes note that an attempt has ended, and how much of the document is kept: that is what is there from now on.
    func end(keeping bytes: UInt64) {
        state.withLock { $0?.report }?.advance(to: bytes, keeping: bytes)
    }

    /// Tells the same again while there is no news, until the task is cancelled: whoever draws it sees the rate fall
    /// while nothing comes. What is waited for is what is waited for by then.
    func repeatWhileStill(_ tell: @Sendable (WireProgressReport) async -> Void) async {
        while (try? await Task.sleep(for: Self.pause)) != nil {
            let old = state.withLock { last in last.flatMap { .now - $0.time >= Self.pause ? $0.report : nil } }
            if let old { await tell(old.progress()) }
        }
    }
}
