// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonMessages
import BatonProtocol
import BatonTransport

import struct SystemPackage.FilePath

/// The document of one handoff: what the origin says that it is, and its bytes, which can be read in any order before
/// it has arrived.
@ControlLoop
final class HandoffDocument {
    /// The most bytes of one read: 16 MiB.
    nonisolated static let readBound: UInt64 = 16 << 20

    /// Gives the claim, and a connection to present it on.
    typealias Presenting = @Sendable () async throws(HandoffError) -> (Connection, ClaimID)

    /// Throws where what is described is not what was accepted.
    typealias Approving = @Sendable (DocumentTree, Connection) async throws(HandoffError) -> Void

    private let documents: DocumentService
    private let present: Presenting
    private let approve: Approving
    private let queue = ReadQueue()
    private var describing: Task<DocumentDescription, any Error>?
    /// Which document it was and where it is in folders that are shared, when it was described first.
    private var first: (label: DocumentLabel, identity: DocumentIdentity, sharedURL: String)?
    /// Where it is on this device; `nil` until it has arrived.
    private var place: FilePath?

    /// - Parameter place: where this device has it already.
    nonisolated init(
        _ documents: DocumentService, place: FilePath? = nil, presenting present: @escaping Presenting,
        approving approve: @escaping Approving
    ) {
        self.documents = documents
        self.present = present
        self.approve = approve
        self.place = place
    }

    /// The description by the origin. The origin is asked once, because from then on it sends that and nothing else. It
    /// is asked again when that has changed. It stays the same document: one was accepted.
    func description() async throws(HandoffError) -> DocumentDescription {
        let asking: Task<DocumentDescription, any Error>
        if let describing {
            asking = describing
        } else {
            asking = Task { [documents, present, approve] in
                let (connection, claim) = try await present()
                let description = try await documents.describe(from: connection, claim: claim)
                try await approve(description.tree, connection)
                return description
            }
            describing = asking
        }
        do {
            return try bound(try await asking.valueUnlessCancelled)
        } catch {
            // An answer that did not come in time may come the next time, unless it was asked for again since.
            if !Task.isCancelled { forgetDescription(asking) }
            throw HandoffError(wrapping: error)
        }
    }

    private func bound(_ description: DocumentDescription) throws(HandoffError) -> DocumentDescription {
        let first = first ?? (description.tree.label, description.identity, description.sharedURL)
        guard description.tree.label == first.label, !description.identity.isOther(than: first.identity) else {
            throw HandoffError(
                .documentUnreadable,
                "the other device offers another document in the place of \(first.label): accept it again")
        }
        // A file that was put in its place is the document from now on, and may be moved in its turn.
        self.first = (first.label, description.identity, first.sharedURL)
        var bound = description
        bound.sharedURL = first.sharedURL
        return bound
    }

    /// It may be another one now: the origin is asked again.
    func forgetDescription() {
        describing = nil
    }

    /// The origin refused what it had described it as: it is asked again, unless somebody has since.
    private func description(insteadOf refused: DocumentDescription) async throws(HandoffError) -> DocumentDescription {
        let latest = try await description()
        guard latest.version == refused.version else { return latest }
        forgetDescription()
        return try await description()
    }

    /// Forgets one description: a later one stays.
    private func forgetDescription(_ asked: Task<DocumentDescription, any Error>?) {
        if describing == asked { describing = nil }
    }

    /// It is whole, and there.
    func setArrived(at path: FilePath) {
        place = path
    }

    /// Sends bytes of it to an application: from the file where it is here, else from the origin, ahead of what else is
    /// on its way.
    ///
    /// - Throws: what failed. Once the stream was answered, that has aborted it; of a document that is here it is then
    ///   not thrown.
    func read(_ range: FileRange, to stream: BatonTransport.Stream) async throws(HandoffError) {
        try await queue.enter()
        var asked = describing
        do {
            if let place {
                try await documents.read(range, ofDocumentAt: place, to: stream)
            } else {
                let description = try await description()
                asked = describing
                let (connection, claim) = try await present()
                try await documents.read(
                    range, of: description, from: connection, claim: claim, to: stream
                ) { (refused) throws(HandoffError) in try await self.description(insteadOf: refused) }
            }
            queue.leave()
        } catch {
            // It is described anew to who reads again.
            if error.code == .documentChanged { forgetDescription(asked) }
            queue.leave()
            throw error
        }
    }
}
