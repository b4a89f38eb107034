// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import SwiftProtobuf

/// What is known of a transfer on this side while it runs: how it goes, and what it waits for.
final class TransferReport: Sendable {
    private struct State {
        var bytes: UInt64
        /// Bytes of them that are kept if it ends now, where this device is the one that continues.
        var kept: UInt64?
        /// Bytes that have come over the link.
        var received: UInt64 = 0
        var meter: BottleneckMeter
        /// The last statement of the other device, and its time.
        var heard: (bottleneck: Bottleneck, time: Instant)?

        /// The other device's bottleneck, if it is known now.
        func there(now: Instant) -> Bottleneck {
            guard let heard, now - heard.time < TransferReport.hearsayLife else { return .unknown }
            return heard.bottleneck
        }
    }

    /// How long the other device's statement about its bottleneck holds: 3 s. A receiver repeats it at least once a
    /// second. If nothing comes, the link may be cut.
    static let hearsayLife = Duration.seconds(3)

    /// Bytes of the document.
    let size: UInt64
    /// Bytes that were there before.
    private let resumed: UInt64
    /// The name of the device that it is sent to.
    private let device: String
    private let state: Lock<State>

    init(of size: UInt64, resumed: UInt64 = 0, device: String = "") {
        self.size = size
        self.resumed = resumed
        self.device = device
        state = Lock(State(bytes: resumed, meter: BottleneckMeter(now: .now)))
    }

    /// Bytes that the continuing device has verified and written.
    var bytes: UInt64 { state.withLock { $0.bytes } }

    /// Bytes that have come over the link for it.
    var received: UInt64 { state.withLock { $0.received } }

    /// So many more have come.
    func add(received count: Int) { state.withLock { $0.received += UInt64(count) } }

    /// Bytes that are kept of what is there.
    var kept: UInt64 { state.withLock { $0.kept ?? 0 } }

    /// So many bytes are there by now.
    ///
    /// - Parameter kept: how many of them are kept if it ends now, where this device is the one that continues.
    func advance(to bytes: UInt64, keeping kept: UInt64? = nil) {
        state.withLock { state in
            state.bytes = min(bytes, size)
            state.kept = kept
        }
    }

    /// This device's bottleneck.
    var bottleneckHere: Bottleneck { state.withLock { $0.meter.bottleneck(now: .now) } }

    /// The other device's bottleneck, as that device says.
    var bottleneckThere: Bottleneck { state.withLock { $0.there(now: .now) } }

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

    /// How far it is, for applications of this device.
    func progress(now: Instant = .now) -> WireProgressReport {
        let (bytes, kept, here, there) = state.withLock { state in
            (state.bytes, state.kept, state.meter.bottleneck(now: now), state.there(now: now))
        }
        return .with {
            $0.bytes = bytes
            $0.total = size
            $0.device = device
            // A disk that has failed may have lost some of these.
            $0.resumedBytes = min(resumed, bytes)
            if let kept { $0.keptBytes = kept }
            $0.bottleneck = WireTransferBottleneck(here: here, there: there)
        }
    }
}
