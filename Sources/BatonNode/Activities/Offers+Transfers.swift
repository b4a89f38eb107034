// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// The listing of own offers and of documents that are sent, for the user of this device.
extension Offers {
    /// What is offered, the current activity first; also what no device sees because Handoff is off for it.
    var listing: [WireOwnOffer] {
        offers.reversed().map(\.activity).filter { !$0.isExpired() }.map { activity in
            .with {
                $0.activity = activity.summary
                $0.activity.title = activity.ownTitle
                $0.application = activity.application
                $0.switchedOff = !handoffSwitch.isOn(for: activity.application)
            }
        }
    }

    /// The documents that devices are taking over.
    var transfers: [WireTransfer] {
        claims.expire(now: .now)
        return claims.claims.filter { $1.isUnsettled && $1.activity.document != nil }.map { WireTransfer($1, $0) }
    }

    /// Cancels the transfer to the holder of a claim. Its later requests with this claim are refused as `cancelled`,
    /// which a device takes for final.
    ///
    /// - Returns: the transfer as it was left; nil where it is over already.
    func cancelTransfer(_ id: ClaimID) -> WireTransfer? {
        guard let claim = claims.cancel(id, now: .now) else { return nil }
        let error = HandoffError(.cancelled, "the transfer was cancelled on this device")
        report(.failed(error.concerning(claim.device).failure), of: claim)
        settle()
        return WireTransfer(claim, id)
    }

    /// The answer to requests with a claim whose transfer was cancelled.
    static let cancelled = HandoffError(.cancelled, "the transfer was cancelled on the device that offers it")
}

extension WireTransfer {
    /// The transfer to the holder of a claim.
    fileprivate init(_ claim: Claim, _ id: ClaimID) {
        self = .with {
            $0.id = Data(id.bytes)
            $0.direction = .sending
            $0.state = claim.isAway ? .waiting : claim.progress == nil ? .starting : .running
            $0.title = claim.activity.ownTitle
            $0.device = claim.device.name
            $0.deviceID = claim.device.id
            $0.activityID = Data(claim.activity.id.bytes)
            $0.total = claim.document?.tree.size ?? claim.activity.document?.size ?? 0
            if let progress = claim.progress { $0.set(progress, now: .now) }
        }
    }
}
