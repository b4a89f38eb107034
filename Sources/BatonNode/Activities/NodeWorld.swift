// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// The contents that the core carries in a node.
enum NodeWorld: World {
    typealias Activity = OfferedActivity
    typealias Application = Connection
    typealias Kept = KeptActivity
    typealias Progress = WireProgressReport
    typealias Failure = HandoffError

    static func keep(_ activity: OfferedActivity) -> KeptActivity { KeptActivity(activity: activity) }

    static func note(_ report: WireProgressReport, in kept: inout KeptActivity) {
        kept.progress.note(report.bytes, of: report.total)
    }

    static func failure(_ refusal: Refusal) -> HandoffError {
        switch refusal {
        case .stopping: HandoffError(.nodeStopping, "the node was stopped, so nothing is offered any more")
        case .tooManyOffers(let bound):
            HandoffError(
                .limitExceeded, "\(bound) activities are offered already: withdraw one with `baton withdraw ID`")
        case .alreadyOffered: HandoffError(.invalidRequest, "an activity with this id is offered already")
        case .notOffered: HandoffError(.noSuchActivity, "the activity is no longer offered")
        case .held(let holder):
            HandoffError(.claimHeld, "the activity is taken, and only one device may have it", device: holder.name)
        case .tooManyClaims:
            HandoffError(
                .limitExceeded, "\(ClaimBounds.claims) activities of that device are claimed already: try later")
        case .noSuchClaim:
            HandoffError(.noSuchClaim, "the activity is not claimed by this device, or the claim has lapsed")
        case .displaced:
            HandoffError(
                .limitExceeded,
                "the device took over more than \(ClaimBounds.ofOneDevice) activities at once; this was the oldest")
        case .lapsed(wasInterrupted: true):
            HandoffError(
                .connectionLost,
                "the device did not come back in time; it still goes on by itself if it comes back soon")
        case .lapsed(wasInterrupted: false):
            HandoffError(.connectionLost, "the device was lost before it said that it continues the activity")
        case .givenUp: HandoffError(.cancelled, "the device gave it up")
        case .cancelled: HandoffError(.cancelled, "the transfer was cancelled on the device that offers it")
        case .alreadyReceiving(let title):
            HandoffError(
                .destinationExists,
                "“\(title)” is being received into this folder already: wait for that, or cancel it", advises: true)
        case .tooManyHandoffs(let bound):
            HandoffError(.limitExceeded, "\(bound) activities are being accepted already: try again later")
        case .mayHaveMoved(let origin):
            HandoffError(
                .connectionLost,
                "\(origin.name) did not confirm that the activity has moved here. It may have moved: then no device"
                    + " offers it any more, and this one does not have it", device: origin.name)
        }
    }

    static func setback(of failure: HandoffError) -> Setback {
        switch failure.code {
        case .connectionLost: .lost
        case .peerUnreachable, .timedOut, .nodeStopping: .away
        case .noSuchClaim: .unclaimed
        case .noSuchActivity: .unoffered
        case .limitExceeded: .noPlace
        case .documentChanged: .changed
        case .unspecified, .internal, .unsupported, .invalidRequest, .ambiguousActivity, .claimHeld,
            .streamsUnsupported, .userInfoTooLarge, .documentUnreadable, .destinationExists, .destinationUnwritable,
            .destinationFull, .corrupted, .applicationGone, .versionUnreadable, .applicationNotStarted, .handoffOff,
            .accessRefused, .cancelled, .refused, .notHandled, .UNRECOGNIZED:
            .final
        }
    }
}

/// The data that a claim keeps for its holder.
struct KeptActivity: Sendable {
    /// As it was when the device took it over.
    var activity: OfferedActivity
    /// Its application's number for what it saved for the holder; 0 for none.
    var state: UInt64 = 0
    /// The document as its holder was told of it, once it asked for the manifest. Only that is sent.
    var document: ScannedDocument?
    /// How far the holder is with the document; nil before it has said so.
    var progress: TransferProgress?
}

extension Moment {
    static var now: Moment { Moment(instant: .now, unixTime: Date.now.timeIntervalSince1970) }
}

extension WireOfferEvent {
    /// Tells the application of an offer what happens to it, or to a claim on it.
    init(_ told: Told<NodeWorld>, _ claim: Claim<NodeWorld>?) {
        self.init()
        self.claim = claim?.number ?? 0
        let device = Taken.with {
            $0.device = claim?.device.name ?? ""
            $0.deviceID = claim?.device.id ?? ""
        }
        switch told {
        case .taken: taken = device
        case .progress(let report): progress = report
        case .interrupted(let error): interrupted = error.concerning(claim?.device).failure
        case .continued:
            continued = device
            continued.bytes = claim?.kept.document?.tree.size ?? 0
            continued.state = claim?.kept.state ?? 0
        case .failed(let error): failed = error.concerning(claim?.device).failure
        case .withdrawn: withdrawn = .init()
        }
    }
}

extension HandoffError {
    /// The same, told of a device.
    fileprivate func concerning(_ device: PeerName?) -> HandoffError {
        guard let device else { return self }
        // Which switch it was, and how to turn it, concerns that device's user alone.
        return HandoffError(
            code, code == .handoffOff ? "Handoff is switched off on \(device.name)" : message, device: device.name)
    }
}

extension WireTransfer {
    /// The transfer to the holder of a claim.
    init(_ claim: Claim<NodeWorld>) {
        let kept = claim.kept
        self = .with {
            $0.id = Data(claim.id.bytes)
            $0.direction = .sending
            $0.state = claim.isAway ? .waiting : kept.progress == nil ? .starting : .running
            $0.title = kept.activity.ownTitle
            $0.device = claim.device.name
            $0.deviceID = claim.device.id
            $0.activityID = Data(kept.activity.id.bytes)
            $0.total = kept.document?.tree.size ?? kept.activity.document?.size ?? 0
            if let progress = kept.progress { $0.set(progress, now: .now) }
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

extension TransferProgress? {
    /// Takes note of how many bytes there are by now. It begins anew with another total.
    mutating func note(_ bytes: UInt64, of total: UInt64) {
        if self?.total == total {
            self?.update(bytes: bytes, now: .now)
        } else {
            self = TransferProgress(total: total, bytes: bytes, now: .now)
        }
    }
}
