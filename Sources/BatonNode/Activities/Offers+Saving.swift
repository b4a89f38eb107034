// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// What a device that takes an activity over is given.
struct HandedOverState {
    let payload: WireActivityPayload
    let document: DocumentSource?
    /// The application's number for it; 0: none.
    var number: UInt64 = 0
}

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
    func handedOverState(
        of offer: Offer, for claim: ClaimID, of device: PeerName
    ) async throws(HandoffError) -> HandedOverState {
        var payload = offer.activity.payload
        guard offer.activity.needsSave else {
            return HandedOverState(payload: payload, document: offer.activity.document)
        }
        let state = try await askToSave(offer.activity.id, for: claim, of: device)
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
            payload.summary.identity = document.document
        }
        payload.webPageURL = state.webPageURL
        payload.referrerURL = state.referrerURL
        payload.requiredUserInfoKeys = state.requiredUserInfoKeys
        payload.targetContentIdentifier = state.targetContentIdentifier
        payload.summary.hasWebPage_p = !state.webPageURL.isEmpty
        if !state.title.isEmpty, state.title.utf8.count <= OfferedActivity.titleBound {
            payload.summary.title = state.title
        }
        return HandedOverState(payload: payload, document: document, number: state.state)
    }

    /// The state, from a question that the application is asked after the device has asked.
    ///
    /// An application is asked one question at a time, and answers it for all who wait when it is asked. So each has
    /// all the time that there is, behind at most one question for others, and one that gets no answer fails no other.
    private func askToSave(
        _ id: ActivityID, for claim: ClaimID, of device: PeerName
    ) async throws(HandoffError) -> WireWillSaveResponse {
        let answer = await withCheckedContinuation { (waiter: CheckedContinuation<AwaitedSaves.Answer, Never>) in
            guard claims.claims[claim] != nil else { return waiter.resume(returning: .failure(.claimGone)) }
            let isUnderWay = saves[id] != nil
            saves[id, default: AwaitedSaves()].next.append(.init(claim: claim, device: device, waiter: waiter))
            if !isUnderWay { askNext(id) }
        }
        return try answer.get()
    }

    /// Asks for all who wait now; for none where all have gone.
    private func askNext(_ id: ActivityID) {
        guard let device = saves[id]?.begin() else {
            saves[id] = nil
            return
        }
        Task {
            let answer = await withTaskExecutorPreference(loop.taskExecutor) { await save(of: id, for: device) }
            saves[id]?.end(with: answer)
            askNext(id)
        }
    }

    private func save(of id: ActivityID, for device: PeerName) async -> AwaitedSaves.Answer {
        do throws(HandoffError) {
            let application = try offer(id).application
            let answer = try await withDeadline(saveDeadline, "the application that offers it did not save") {
                try await application.answer(
                    to: .willSave(
                        .with {
                            $0.activityID = Data(id.bytes)
                            $0.device = device.name
                        }))
            }
            guard case .willSave(let state) = answer else {
                throw HandoffError(.internal, "the application that offers it gave an answer that cannot be read")
            }
            return .success(state)
        } catch {
            // Its connection, and not the one between the devices.
            guard error.code == .connectionLost else { return .failure(error) }
            return .failure(HandoffError(.applicationGone, "the application that offers it has ended"))
        }
    }
}
