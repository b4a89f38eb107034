// SPDX-License-Identifier: Apache-2.0

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
        let id = Offers.OfferID()
        let events = try await offers.offer(activity, from: application, as: id)
        do {
            try await stream.respond(
                .offer(
                    .with {
                        $0.activityID = Data(activity.id.bytes)
                        $0.title = activity.ownTitle
                    }))
        } catch {
            await offers.withdraw(offer: id)
            throw error
        }
        await applications.activityBecameCurrent(on: application)
        let telling = Task {
            for await event in events { try await stream.send(record: event) }
            await stream.finish()
        }
        var problem: HandoffError?
        do {
            // END, an abort, or the application's death: each withdraws.
            for try await update in stream.records(of: WireOfferUpdate.self) {
                try await self.update(id, of: activity, update)
                if update.becomesCurrent { await applications.activityBecameCurrent(on: application) }
            }
        } catch {
            problem = error
        }
        if let problem { await offers.fail(id, because: problem) }
        await offers.withdraw(offer: id)
        _ = await telling.result
    }

    private func update(
        _ id: Offers.OfferID, of activity: OfferedActivity, _ update: WireOfferUpdate
    ) async throws(HandoffError) {
        let (offer, document) = try await outgoing(update.offer)
        let since = update.becomesCurrent ? UInt64(Date.now.timeIntervalSince1970) : activity.since
        try await offers.update(
            id, to: OfferedActivity(offer, document: document, id: activity.id, since: since),
            becomesCurrent: update.becomesCurrent)
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
        guard !request.idPrefix.isEmpty else { throw HandoffError(.invalidRequest, "an activity's id is needed") }
        let activity = try await offers.activity(withPrefix: request.idPrefix)
        await offers.withdraw(activity.id)
        try await stream.respond(
            .withdraw(
                .with {
                    $0.activityID = Data(activity.id.bytes)
                    $0.title = activity.ownTitle
                }))
        await stream.finish()
    }
}
