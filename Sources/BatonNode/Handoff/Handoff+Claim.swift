// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// The origin's side of a handoff: its payload, and the claim, which outlives a connection and can be asked for anew.
extension Handoff {
    /// Asks for the payload.
    func fetchAcceptedPayload() async throws(HandoffError) -> WireActivityPayload {
        let connection = try await connections.connection(to: plan.origin.id, isWanted: true)
        try plan.requirePolicy(over: connection, size: known.size)
        async let _: Void = leaveMoved(connection)
        do {
            return try await fetchPayload(from: connection)
        } catch {
            guard error.code == .noSuchActivity else { throw error }
            throw HandoffError(noLongerOfferedBy: plan.origin.name, now: try await offered(on: connection).first)
        }
    }

    /// Asks for the payload and a claim, which takes the place of the one that is held.
    func fetchPayload(from connection: Connection) async throws(HandoffError) -> WireActivityPayload {
        let opened = Lock<BatonTransport.Stream?>(nil)
        // Not as the user's own cancelling, which the origin's application would stay silent about.
        let giveUp: @Sendable () async -> Void = { await opened.withLock { $0 }?.reset(.timeout) }
        let answer = try await withDeadline(
            deadlines.payload, "\(plan.origin.name) did not send the activity", device: plan.origin.name,
            late: giveUp
        ) { [id = activityID] in
            defer { opened.withLock { $0 = nil } }
            return try await connection.answer(to: .payload(.with { $0.activityID = id })) { stream in
                opened.withLock { $0 = stream }
            }
        }
        guard case .payload(let response) = answer, let claim = ClaimID(response.claimID) else {
            throw HandoffError(.internal, "\(plan.origin.name) gave an answer that cannot be read")
        }
        try await hold(claim, on: connection)
        let payload = response.payload
        guard payload.summary.id == activityID else {
            throw HandoffError(.internal, "\(plan.origin.name) sent another activity than the one asked for")
        }
        try requireAccepted(payload.summary)
        do {
            try OfferedActivity.requireSane(payload, userInfo: payload.userInfo)
        } catch {
            throw HandoffError(.internal, "\(plan.origin.name) sent what no activity may have: \(error)")
        }
        let summary = payload.summary
        try plan.rule?.require(type: summary.type, size: summary.documentSize)
        try plan.requirePolicy(over: connection, size: summary.documentSize)
        known = (summary.identity, summary.title, summary.documentSize)
        return payload
    }

    /// Requires what the user accepted and an application was chosen for.
    private func requireAccepted(_ summary: WireActivitySummary) throws(HandoffError) {
        try plan.requireAccepted(summary)
        guard summary.version != plan.activity.version, let continuing else { return }
        try continuing.versions.require(summary, of: plan.origin.name, by: continuing.name)
    }

    /// The claim, and a connection to present it on: another one where that which it came by has ended.
    func presentClaim() async throws(HandoffError) -> (Connection, ClaimID) {
        guard let (connection, claim) = held else {
            throw HandoffError(.noSuchClaim, "the activity has not been continued")
        }
        guard !connection.isOpen else { return (connection, claim) }
        let fresh = try await connections.connection(to: plan.origin.id, isWanted: true)
        try plan.requirePolicy(over: fresh, size: known.size)
        // The claim, or its connection, may have been replaced meanwhile.
        guard let now = held, now.connection === connection, now.claim == claim else { return try await presentClaim() }
        try await hold(claim, on: fresh)
        return (fresh, claim)
    }

    /// Makes sure that the origin knows the claim, by asking what the document is now. If the origin has forgotten it,
    /// asks for the activity again.
    ///
    /// An offer with another id counts as the same activity if its document is the same file or folder there. The
    /// origin tells that: another document may have the same title, type and name.
    func renewClaim() async throws(HandoffError) {
        let (connection, _) = try await presentClaim()
        do {
            described = nil
            _ = try await description()
            return
        } catch {
            // Of a folder that is being written to. The claim is known, and the next turn asks again, in time.
            if error.code == .documentChanged { return }
            guard error.code == .noSuchClaim else { throw error }
        }
        activityID = try await relocate(connection) ?? activityID
        let payload = try await fetchPayload(from: connection)
        guard payload.summary.kind == .document else {
            throw HandoffError(.noSuchActivity, "\(plan.origin.name) no longer offers the document")
        }
        // An application may have asked meanwhile, with the claim before.
        described = nil
    }

    /// The id under which the origin offers the activity now; `nil` where it is as it was.
    private func relocate(_ connection: Connection) async throws(HandoffError) -> Data? {
        let offered = try await offered(on: connection)
        guard !offered.contains(where: { $0.id == activityID }) else { return nil }
        // Prefer a file at the same place to a file that was moved from there.
        let candidates = offered.filter(isOf)
        return (candidates.first { $0.identity.hasPlace(of: known.identity) } ?? candidates.first)?.id
    }

    /// Whether something that the origin offers is the activity of this handoff.
    ///
    /// A node that starts again gives new ids. Then the document counts: it is at the same place there, or it is the
    /// same file under the same title. A file that has gone leaves its number to another one.
    func isOf(_ activity: WireActivitySummary) -> Bool {
        activity.id == activityID
            || activity.type == plan.activity.type
                && (activity.identity.hasPlace(of: known.identity)
                    || activity.identity.hasFile(of: known.identity) && activity.title == known.title)
    }

    /// The activities that the origin offers now, its current one first.
    private func offered(on connection: Connection) async throws(HandoffError) -> [WireActivitySummary] {
        try await withDeadline(deadlines.answer, "\(plan.origin.name) did not answer") {
            try await connection.offeredActivities()
        }
    }
}
