// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonMessages
import BatonTransport
import FoundationEssentials
import SwiftProtobuf
import SystemPackage

extension ControlService {
    func offer(
        _ activity: OfferedActivity, from application: Connection, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        let id = OfferID()
        let events = try offers.offer(activity, from: application, as: id)
        do {
            try await stream.respond(
                .offer(
                    .with {
                        $0.activityID = Data(activity.id.bytes)
                        $0.title = activity.ownTitle
                    }))
        } catch {
            offers.decide { $0.withdraw(id) }
            throw error
        }
        applications.activityBecameCurrent(on: application)
        async let told: Void = tell(events, on: stream)
        do {
            // END, an abort, or the application's death: each withdraws.
            for try await update in stream.records(of: WireOfferUpdate.self) {
                try await self.update(id, of: activity, update)
                if update.becomesCurrent { applications.activityBecameCurrent(on: application) }
            }
        } catch {
            offers.decide { $0.fail(id, because: error) }
        }
        offers.decide { $0.withdraw(id) }
        await told
    }

    /// Tells an application the events of its offer. An application that has gone hears nothing more.
    private func tell(_ events: AsyncStream<WireOfferEvent>, on stream: BatonTransport.Stream) async {
        await withTaskGroup { group in
            group.addTask {
                for await event in events {
                    guard (try? await stream.send(record: event)) != nil else { return }
                }
                await stream.finish()
            }
            group.addTask { await stream.untilClosedOrCancelled() }
            await group.next()
            group.cancelAll()
        }
    }

    private func update(
        _ id: OfferID, of activity: OfferedActivity, _ update: WireOfferUpdate
    ) async throws(HandoffError) {
        let (offer, document) = try await outgoing(update.offer)
        let since = update.becomesCurrent ? UInt64(Date.now.timeIntervalSince1970) : activity.since
        let updated = try OfferedActivity(offer, document: document, id: activity.id, since: since)
        offers.decide { $0.update(id, to: updated, becomesCurrent: update.becomesCurrent) }
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
            FilePath(absolute: path, "the document's path"), OfferedActivity.selection(request.folderEntries.names),
            countedIn: documents.descriptions)
    }

    func withdraw(_ request: WireWithdrawRequest) throws(HandoffError) -> WireWithdrawResponse {
        let offered = offers.decide { $0.offered }
        let offer = try Self.only(offered, idPrefix: request.idPrefix, "offered activity") {
            $0.activity.id.description
        }
        let activity = offer.activity
        offers.decide { $0.withdraw(offer.id) }
        return .with {
            $0.activityID = Data(activity.id.bytes)
            $0.title = activity.ownTitle
        }
    }
}
