import BatonDocuments
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// What is handed over: the state that the application is asked for at that moment.
extension Offers {
    /// The document that goes with a state: a file that was moved meanwhile is named by what was saved, and not yet by
    /// what was offered.
    private func document(
        of state: WireWillSaveResponse, for activity: OfferedActivity
    ) async throws(HandoffError) -> DocumentSource? {
        guard !state.documentPath.isEmpty else { return activity.document }
        let path = try OfferedActivity.documentPath(state.documentPath)
        if let document = activity.document, document.path == path { return document }
        return try await DocumentService.inspect(path, calledInErrors: "the document", countedIn: descriptions)
    }

    /// What the application says that the state is now, and the document that goes with it.
    func savedPayload(
        of offer: Offer, for device: PeerName
    ) async throws(HandoffError) -> (payload: WireActivityPayload, document: DocumentSource?) {
        var payload = offer.activity.payload
        guard offer.activity.needsSave else { return (payload, offer.activity.document) }
        let state = try await askToSave(offer, for: device)
        let (userInfo, document) = try await files.outgoing(
            state.userInfo, document: document(of: state, for: offer.activity))
        try OfferedActivity.requireFitting(userInfo)
        try OfferedActivity.requireSane(
            webPageURL: state.webPageURL, referrerURL: state.referrerURL, requiredKeys: state.requiredUserInfoKeys,
            target: state.targetContentIdentifier)
        try OfferedActivity.requireOnlyPage(
            type: offer.activity.type, webPageURL: state.webPageURL, userInfo: userInfo)
        payload.userInfo = userInfo
        if let document {
            payload.summary.kind = .document
            payload.summary.documentSize = document.size
            payload.summary.documentIdentity = Data(document.tag)
        }
        payload.webPageURL = state.webPageURL
        payload.referrerURL = state.referrerURL
        payload.requiredUserInfoKeys = state.requiredUserInfoKeys
        payload.targetContentIdentifier = state.targetContentIdentifier
        payload.summary.hasWebPage_p = !state.webPageURL.isEmpty
        if !state.title.isEmpty, state.title.utf8.count <= OfferedActivity.titleBound {
            payload.summary.title = state.title
        }
        return (payload, document)
    }

    /// Asks the application for the state when it has been asked for the devices before this one: each of them has all
    /// the time that there is, and one that gets no answer fails no other.
    private func askToSave(_ offer: Offer, for device: PeerName) async throws(HandoffError) -> WireWillSaveResponse {
        let id = offer.activity.id
        try await beginAsking(id)
        defer { endAsking(id) }
        let application = offer.application
        let saved: WireResponse.OneOf_Kind
        do {
            saved = try await withDeadline(saveDeadline, "the application that offers it did not save") {
                let (response, stream) = try await application.request(
                    .willSave(
                        .with {
                            $0.activityID = Data(id.bytes)
                            $0.device = device.name
                        }))
                await stream.finish()
                return response
            }
        } catch {
            // Its connection, and not the one between the devices.
            guard error.code == .connectionLost else { throw error }
            throw HandoffError(.applicationGone, "the application that offers it has ended")
        }
        guard case .willSave(let state) = saved else {
            throw HandoffError(.internal, "the application that offers it gave an answer that cannot be read")
        }
        return state
    }

    private func beginAsking(_ id: ActivityID) async throws(HandoffError) {
        guard let waiting = awaitingSave[id]?.count else {
            awaitingSave[id] = []
            return
        }
        guard waiting < Self.waitingSaves else {
            throw HandoffError(
                .limitExceeded,
                "the application that offers it is being asked for other devices; accept it again in a moment")
        }
        await withCheckedContinuation { awaitingSave[id]?.append($0) }
    }

    private func endAsking(_ id: ActivityID) {
        guard let next = awaitingSave[id]?.first else {
            awaitingSave[id] = nil
            return
        }
        awaitingSave[id]?.removeFirst()
        next.resume()
    }
}
