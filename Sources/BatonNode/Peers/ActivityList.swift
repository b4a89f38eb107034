// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonApplications
import BatonCore
import BatonDocuments
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

extension Connection {
    /// Activities that are taken from one device: 64, each of at most 1.5 KiB.
    private static var listBound: Int { NodeLimits().offers }

    /// Asks the other side for its activities, the current one first. Leaves out records that are no activity, and
    /// fields that no listing shows.
    func offeredActivities() async throws(HandoffError) -> [WireActivitySummary] {
        let (_, stream) = try await request(.activityList(.init()))
        await stream.finish()
        var offered: [WireActivitySummary] = []
        var records = stream.records(of: WireActivitySummary.self).makeAsyncIterator()
        // What is no activity counts as well: nobody is listened to for ever.
        for _ in 0..<Self.listBound {
            guard let activity = try await records.next() else { break }
            if let activity = activity.bounded { offered.append(activity) }
        }
        return offered
    }
}

extension WireActivitySummary {
    /// The activity, cut to the fields that a listing shows; nil if it is no activity at all.
    ///
    /// At most 1.5 KiB: fields that this version does not know are neither kept nor handed on.
    var bounded: WireActivitySummary? {
        guard id.count == ActivityID.size, !type.isEmpty, type.utf8.count <= AdvertisedActivity.maximumTypeCount else {
            return nil
        }
        var bounded = self
        bounded.unknownFields = UnknownStorage()
        bounded.title = title.beginning(bytes: OfferedActivity.titleBound)
        if teamTag.count != TeamTag.count { bounded.teamTag = Data() }
        bounded.identity = identity
        return bounded
    }

    /// Which document it is; what is told of that has to be of the right length.
    var identity: DocumentIdentity {
        get { DocumentIdentity(file: documentIdentity, place: placeIdentity) }
        set { (documentIdentity, placeIdentity) = (Data(newValue.file), Data(newValue.place)) }
    }
}
