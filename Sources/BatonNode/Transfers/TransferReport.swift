// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import SwiftProtobuf

/// What is known of a document's transfer on this side, over all attempts: how it goes, and what it waits for. Any task
/// may read and set it.
final class TransferReport: Sendable {
    private struct State {
        /// Bytes of the document.
        var size: UInt64
        /// Bytes that were there before the attempt.
        var resumed: UInt64 = 0
        var bytes: UInt64 = 0
        /// Bytes of them that are kept if it ends now, where this device is the one that continues.
        var kept: UInt64?
        /// Bytes that have come over the link, in all attempts.
        var received: UInt64 = 0
        var meter = BottleneckMeter(now: .now)
        /// The last statement of the other device, and its time.
        var heard: (bottleneck: Bottleneck, time: Instant)?
        /// Bytes that were there when it was told last, and its time.
        var told: (bytes: UInt64, time: Instant)?
        /// When there were last other bytes to tell than before.
        var lastChange = Instant.now
        /// How far the document is; nil before it was told.
        var transfer: TransferProgress?

        /// The other device's bottleneck, if it is known now.
        func there(now: Instant) -> Bottleneck {
            guard let heard, now - heard.time < TransferReport.hearsayLife else { return .unknown }
            return heard.bottleneck
        }
    }

    /// How long the other device's statement about its bottleneck holds: 3 s. A receiver repeats it at least once a
    /// second. If nothing comes, the link may be cut.
    static let hearsayLife = Duration.seconds(3)
    /// Without news it is told again this often: 1 s.
    private static let pause = Duration.seconds(1)

    /// The name of the device that it is sent to.
    private let device: String
    private let state: Lock<State>

    init(of size: UInt64 = 0, device: String = "") {
        self.device = device
        state = Lock(State(size: size))
    }

    /// An attempt to fetch a document begins.
    ///
    /// - Parameter resumed: bytes that are there.
    func begin(of size: UInt64, resumed: UInt64) {
        state.withLock { state in
            (state.size, state.resumed, state.bytes, state.kept) = (size, resumed, resumed, nil)
            (state.meter, state.heard) = (BottleneckMeter(now: .now), nil)
        }
    }

    /// An attempt has ended.
    ///
    /// - Parameter kept: bytes of the document that are kept: that is what is there from now on.
    func end(keeping kept: UInt64) {
        advance(to: kept, keeping: kept)
        state.withLock { state in
            if state.told != nil { state.transfer.note(state.bytes, of: state.size) }
        }
    }

    /// Bytes of the document.
    var size: UInt64 { state.withLock { $0.size } }

    /// Bytes that the continuing device has verified and written.
    var bytes: UInt64 { state.withLock { $0.bytes } }

    /// Bytes that were there when it was told last.
    var toldBytes: UInt64 { state.withLock { $0.told?.bytes ?? 0 } }

    /// Bytes that have come over the link for it, in all attempts.
    var received: UInt64 { state.withLock { $0.received } }

    /// So many more have come.
    func add(received count: Int) { state.withLock { $0.received += UInt64(count) } }

    /// Bytes that are kept of what is there.
    var kept: UInt64 { state.withLock { $0.kept ?? 0 } }

    /// How far the document is; nil before it was told.
    var transfer: TransferProgress? { state.withLock { $0.transfer } }

    /// How long nothing has come.
    var stillness: Duration { state.withLock { .now - $0.lastChange } }

    /// So many bytes are there by now.
    ///
    /// - Parameter kept: how many of them are kept if it ends now, where this device is the one that continues.
    func advance(to bytes: UInt64, keeping kept: UInt64? = nil) {
        state.withLock { state in
            state.bytes = min(bytes, state.size)
            state.kept = kept
        }
    }

    /// This device's bottleneck.
    var bottleneckHere: Bottleneck { state.withLock { $0.meter.bottleneck(now: .now) } }

    /// Takes note of what the other device says that it waits for.
    func hear(_ bottleneck: Bottleneck, now: Instant = .now) {
        state.withLock { $0.heard = (bottleneck, now) }
    }

    /// A stage begins, and the one before has ended; what that took is told with the others.
    func begin(_ stage: Bottleneck, now: Instant = .now) {
        state.withLock { $0.meter.begin(stage, now: now) }
    }

    /// Takes note of what the stages took since the last time.
    func note(link: Duration, disk: Duration, processor: Duration, now: Instant = .now) {
        state.withLock { state in
            state.meter.add(.link, link, now: now)
            state.meter.add(.disk, disk, now: now)
            state.meter.add(.processor, processor, now: now)
        }
    }

    /// How far it is, for applications of this device, which are told now.
    @discardableResult
    func tell() -> WireProgressReport {
        state.withLock { state in
            if state.bytes != state.told?.bytes ?? 0 { state.lastChange = .now }
            state.told = (state.bytes, .now)
            state.transfer.note(state.bytes, of: state.size)
        }
        return progress()
    }

    /// The same, not to be told.
    func progress(now: Instant = .now) -> WireProgressReport {
        let state = state.withLock { $0 }
        return .with {
            $0.bytes = state.bytes
            $0.total = state.size
            $0.device = device
            // A disk that has failed may have lost some of these.
            $0.resumedBytes = min(state.resumed, state.bytes)
            if let kept = state.kept { $0.keptBytes = kept }
            $0.bottleneck = WireTransferBottleneck(here: state.meter.bottleneck(now: now), there: state.there(now: now))
        }
    }

    /// Does some work, and meanwhile tells the same again while there is no news: whoever draws it sees the rate fall
    /// while nothing comes. Nothing is told any more when it returns. What is waited for is what is waited for by then.
    nonisolated(nonsending) func repeating<Value, Failure: Error>(
        _ tell: @escaping @Sendable (WireProgressReport) async -> Void,
        during work: nonisolated(nonsending) () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        async let _: Void = {
            while (try? await Alarm.sleep(for: Self.pause)) != nil {
                let isOld = state.withLock { $0.told.map { .now - $0.time >= Self.pause } ?? false }
                if isOld { await tell(progress()) }
            }
        }()
        return try await work()
    }
}
