// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonMessages
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// The offers of applications to the other devices.
extension ControlService {
    func offer(
        _ activity: OfferedActivity, from application: Connection, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        let id = OfferID()
        let events = try await offers.offer(activity, from: application, as: id)
        do {
            try await stream.respond(
                .offer(
                    .with {
                        $0.activityID = Data(activity.id.bytes)
                        $0.title = activity.ownTitle
                    }))
        } catch {
            await offers.decide { $0.withdraw(id) }
            throw error
        }
        await applications.activityBecameCurrent(on: application)
        let telling = Task {
            for await event in events { try await stream.send(record: event) }
            await stream.finish()
        }
        // An application that has gone hears nothing more.
        let watching = Task {
            await stream.untilClosedOrCancelled()
            telling.cancel()
        }
        do {
            // END, an abort, or the application's death: each withdraws.
            for try await update in stream.records(of: WireOfferUpdate.self) {
                try await self.update(id, of: activity, update)
                if update.becomesCurrent { await applications.activityBecameCurrent(on: application) }
            }
        } catch {
            await offers.decide { $0.fail(id, because: error) }
        }
        await offers.decide { $0.withdraw(id) }
        _ = await telling.result
        watching.cancel()
    }

    private func update(
        _ id: OfferID, of activity: OfferedActivity, _ update: WireOfferUpdate
    ) async throws(HandoffError) {
        let (offer, document) = try await outgoing(update.offer)
        let since = update.becomesCurrent ? UInt64(Date.now.timeIntervalSince1970) : activity.since
        let updated = try OfferedActivity(offer, document: document, id: activity.id, since: since)
        await offers.decide { $0.update(id, to: updated, becomesCurrent: update.becomesCurrent) }
    }

    /// The activity as it may leave this device, and its document.
    func outgoing(
        _ request: WireOfferRequest
    ) async throws(HandoffError) -> (WireOfferRequest, DocumentSource?) {
        var request = request
        let document: DocumentSource?
        (request.userInfo, document) = try await files.outgoing(
            request.userInfo, document: await self.document(of: request))
        return (request, document)
    }

    func document(of request: WireOfferRequest) async throws(HandoffError) -> DocumentSource? {
        let path = request.hasFolderEntries ? request.folderEntries.folder : request.documentPath
        guard !path.isEmpty else { return nil }
        return try await DocumentService.inspect(
            OfferedActivity.documentPath(path), OfferedActivity.selection(request.folderEntries.names),
            countedIn: documents.descriptions)
    }

    func withdraw(
        _ request: WireWithdrawRequest, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        let offered = await offers.decide { $0.offered }
        let offer = try Self.only(offered, idPrefix: request.idPrefix, "offered activity") {
            $0.activity.id.description
        }
        let activity = offer.activity
        await offers.decide { $0.withdraw(offer.id) }
        try await stream.respond(
            .withdraw(
                .with {
                    $0.activityID = Data(activity.id.bytes)
                    $0.title = activity.ownTitle
                }))
        await stream.finish()
    }
}
