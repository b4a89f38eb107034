// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// The events of one handoff, for whoever accepted it, and how far its document is, for a listing.
final class HandoffEvents: Sendable {
    /// Events that wait for an application that does not read; older progress is lost beyond it.
    static let bound = 1024

    /// The events, of which `continued` or `failed` is the last. To be iterated once.
    let stream: AsyncStream<WireAcceptEvent>
    private let continuation: AsyncStream<WireAcceptEvent>.Continuation
    private let latest = Lock(LatestTransfer())
    /// Whether the user knows that the document is another version than what came before, and nothing of it has come
    /// since.
    let isToldOfChange = Lock(false)

    init() {
        (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(Self.bound))
    }

    /// How far the document is.
    var transfer: LatestTransfer { latest.withLock { $0 } }

    /// Sends an event.
    func send(_ kind: WireAcceptEvent.OneOf_Kind) {
        latest.withLock { $0.note(kind, now: .now) }
        continuation.yield(.with { $0.kind = kind })
    }

    /// Tells that the document stopped coming, and goes on by itself.
    ///
    /// - Parameter waits: how long its device is waited for; zero if it is there.
    func tellInterruption(_ cause: HandoffError, waiting waits: Duration, keeping bytes: UInt64) {
        send(
            .interrupted(
                .with {
                    $0.cause = cause.shortened.failure
                    $0.keptBytes = bytes
                    $0.waitsSeconds = UInt32(clamping: waits.components.seconds)
                }))
    }

    /// An attempt to fetch the document has ended, and so much of it is kept.
    func end(keeping bytes: UInt64) {
        latest.withLock { $0.noteEnd(keeping: bytes, now: .now) }
    }

    /// No more events follow.
    func finish() {
        continuation.finish()
    }
}

/// How far the document of a handoff is, from the events that tell of it. A value.
struct LatestTransfer: Sendable {
    private(set) var state = WireTransfer.State.starting
    /// Nil before the first report.
    private(set) var progress: TransferProgress?
    /// The handoff has been continued or has failed.
    private(set) var isOver = false

    mutating func note(_ kind: WireAcceptEvent.OneOf_Kind, now: Instant) {
        switch kind {
        case .progress(let report):
            // Progress is repeated while nothing comes, also while the device is away.
            if state != .waiting || report.bytes != progress?.bytes { state = .running }
            note(report.bytes, of: report.total, now: now)
        case .interrupted(let interruption):
            state = interruption.waitsSeconds > 0 ? .waiting : .running
        case .continued, .failed:
            isOver = true
        case .willContinue, .payload, .choose:
            break
        }
    }

    mutating func noteEnd(keeping bytes: UInt64, now: Instant) {
        if let progress { note(bytes, of: progress.total, now: now) }
    }

    private mutating func note(_ bytes: UInt64, of total: UInt64, now: Instant) {
        if progress?.total == total {
            progress?.update(bytes: bytes, now: now)
        } else {
            progress = TransferProgress(total: total, bytes: bytes, now: now)
        }
    }
}

extension Handoff {
    /// Whether a document is on its way, or may be soon.
    nonisolated var isReceiving: Bool {
        let latest = events.transfer
        return plan.destination != nil && !latest.isOver && (plan.activity.kind == .document || latest.progress != nil)
    }

    /// The document on its way, for a listing.
    nonisolated var transfer: WireTransfer {
        let latest = events.transfer
        return .with {
            $0.id = Data(id.bytes)
            $0.direction = .receiving
            $0.state = latest.state
            $0.title = plan.activity.title
            $0.device = plan.origin.name
            $0.deviceID = plan.origin.id
            $0.activityID = plan.activity.id
            $0.total = plan.activity.documentSize
            if let folder = plan.destination?.path { $0.folder = Data(folder.bytes) }
            if let progress = latest.progress { $0.set(progress, now: .now) }
        }
    }
}

extension WireTransfer {
    /// Sets how far the transfer is.
    mutating func set(_ progress: TransferProgress, now: Instant) {
        (bytes, total) = (progress.bytes, progress.total)
        if state == .running, let rate = progress.rate(now: now) { self.rate = UInt64(rate) }
    }
}
