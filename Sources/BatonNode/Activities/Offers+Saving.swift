// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonMessages
import FoundationEssentials
import SwiftProtobuf
import SystemPackage

/// The contents that are handed over: the state that the application has saved at that moment.
extension Offers {
    /// Returns the payload of an activity in a saved state, and the data of its claims.
    func handedOver(
        _ saved: WireWillSaveResponse, of activity: OfferedActivity
    ) async throws(HandoffError) -> (payload: WireActivityPayload, kept: KeptActivity) {
        let (userInfo, document) = try await files.outgoing(
            saved.userInfo, document: document(of: saved, for: activity))
        var payload = activity.payload
        payload.userInfo = userInfo
        if let document {
            payload.summary.kind = .document
            payload.summary.documentSize = document.size
            payload.summary.identity = document.document
        }
        payload.webPageURL = saved.webPageURL
        payload.referrerURL = saved.referrerURL
        payload.requiredUserInfoKeys = saved.requiredUserInfoKeys
        payload.targetContentIdentifier = saved.targetContentIdentifier
        payload.summary.hasWebPage_p = !saved.webPageURL.isEmpty
        if !saved.title.isEmpty, saved.title.utf8.count <= OfferedActivity.titleBound {
            payload.summary.title = saved.title
        }
        try OfferedActivity.requireSane(payload, userInfo: userInfo)
        var kept = KeptActivity(activity: activity)
        (kept.activity.document, kept.state) = (document, saved.state)
        return (payload, kept)
    }

    /// The document that goes with a state. A file that was moved meanwhile is named by what was saved, and not yet by
    /// what was offered.
    private func document(
        of state: WireWillSaveResponse, for activity: OfferedActivity
    ) async throws(HandoffError) -> DocumentSource? {
        guard !state.documentPath.isEmpty else { return activity.document }
        let path = try FilePath(absolute: state.documentPath, "the document's path")
        if let document = activity.document, document.path == path { return document }
        return try await DocumentService.inspect(path, calledInErrors: "the document", countedIn: descriptions)
    }
}
