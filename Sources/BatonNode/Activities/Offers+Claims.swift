// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// The continuing devices' side of what is offered.
extension Offers {
    /// Gives a device the activity as it is now, and a claim on it.
    ///
    /// The application is asked to save first. Where that fails no claim stays, and the activity remains available.
    ///
    /// - Parameter gone: returns when the device waits no longer, and says why, as ``release(_:by:because:)`` takes it:
    ///   its claim goes at once. Cancelled when there is something to answer.
    func claim(
        _ id: ActivityID, by device: PeerName, until gone: (@Sendable () async -> HandoffError?)? = nil
    ) async throws(HandoffError) -> (claim: ClaimID, payload: WireActivityPayload) {
        let offer = try offer(id)
        try refuseIfHeld(offer.activity, for: device)
        let claim: ClaimID
        do {
            claim = try claims.claim(offer.activity, by: device, now: .now)
        } catch {
            settle()
            throw refusal(error)
        }
        // The device's oldest may have made room.
        settle()
        saveBegins(offer.id)
        defer { saveEnded(offer.id) }
        let watching = gone.map { gone in
            Task {
                let reason = await withTaskExecutorPreference(loop.taskExecutor) { await gone() }
                if !Task.isCancelled { release(claim, by: device, because: reason) }
            }
        }
        defer { watching?.cancel() }
        do throws(HandoffError) {
            let state = try await handedOverState(of: offer, for: claim, of: device)
            guard let number = claims.claims[claim]?.number else { throw HandoffError.claimGone }
            // It may have been withdrawn, or switched off, while its application saved.
            _ = try self.offer(id)
            claims.setState(state, of: claim)
            offer.events.yield(
                .with {
                    $0.taken = device.taken()
                    $0.claim = number
                })
            return (claim, state.payload)
        } catch {
            // Of a claim that went meanwhile its application was told why.
            if let failed = claims.setFailed(claim, by: device) {
                offer.events.yield(
                    .with {
                        $0.failed = error.concerning(device).failure
                        $0.claim = failed.number
                    })
            }
            claims.release(claim, by: device)
            settle()
            // The application may have said where the document was; that is for this device's user alone.
            guard error.code != .documentUnreadable else { throw .unreadableAtOrigin }
            throw error
        }
    }

    /// The claim that a device presents.
    func claim(_ id: ClaimID, of device: PeerName) throws(HandoffError) -> Claim {
        defer { settle() }
        if let claim = claims.present(id, by: device, now: .now) {
            guard !claim.isCancelled else { throw Self.cancelled }
            return claim
        }
        guard !checks.contains(.given), let activity = offers.last?.activity else {
            throw HandoffError(.noSuchClaim, "the activity is not claimed by this device, or the claim has lapsed")
        }
        return Claim(
            activity: activity, device: device, number: 0,
            document: activity.document.flatMap { try? ScannedDocument($0) })
    }

    /// Notes what a claim's holder was told of the document: that, and nothing else, is what it is then sent.
    func setDocument(_ document: ScannedDocument, of id: ClaimID) {
        claims.setDocument(document, of: id)
    }

    /// The holder has taken the activity over, and may go on using its claim.
    func setContinued(_ id: ClaimID, by device: PeerName) throws(HandoffError) {
        let claim = try claim(id, of: device)
        // It may be said again, such as on another connection; the application is told once.
        guard claims.setContinued(id) else { return }
        changed(.continued(title: claim.activity.title, device: device.name))
        report(.continued(device.taken(bytes: claim.document?.tree.size ?? 0, state: claim.state)), of: claim)
        settle()
    }

    /// Tells the application of a claimed activity how far its document is.
    ///
    /// Nothing is told once the claim's end is known: the device says on one stream how far it is, on another that it
    /// has all of it, and the second may come first.
    func report(_ progress: WireProgressReport, of id: ClaimID) {
        guard let claim = claims.claims[id], claim.isUnsettled else { return }
        report(.progress(progress), of: claim)
    }

    /// A transfer to the holder was cut, and the holder goes on as soon as it can. Its application is told once, until
    /// the holder has gone on.
    func interrupt(_ id: ClaimID, by device: PeerName, because error: HandoffError) {
        guard let claim = claims.setInterrupted(id, by: device, now: .now) else { return }
        report(.interrupted(error.concerning(device).failure), of: claim)
        awaitLapse()
    }

    /// The holder asks for the document once more: that its application was told of a failure is over.
    func goOn(_ id: ClaimID) {
        claims.setGoingOn(id)
    }

    /// What a claim was made for has failed: its application is told once, however many things fail, and again when it
    /// fails after it went on.
    func fail(_ id: ClaimID, by device: PeerName, with error: HandoffError) {
        guard let claim = claims.setFailed(id, by: device) else { return }
        report(.failed(error.concerning(device).failure), of: claim)
        settle()
    }

    /// Releases a claim, and tells the application that its activity was not taken over.
    ///
    /// - Parameter error: the other device's reason. A long sentence is cut.
    func release(_ id: ClaimID, by device: PeerName, because error: HandoffError? = nil) {
        let reason =
            error.map { HandoffError($0.code, $0.shortened.message) }
            ?? HandoffError(.cancelled, "the device gave it up")
        fail(id, by: device, with: reason)
        if let claim = claims.release(id, by: device) { saves[claim.activity.id]?.remove(id, because: reason) }
        forgetApplications()
        settle()
    }

    /// Whether a device holds a claim.
    func holdsClaim(_ device: String) -> Bool { claims.isHolder(device, now: .now) }

    /// The last connection to a device ended.
    func connectionsEnded(of device: String) {
        claims.connectionsEnded(of: device, now: .now)
        awaitLapse()
    }

    /// The application behind a claimed activity, for a continuation stream. What it offers now counts: it may have
    /// begun to support streams, or ceased to. Of what was withdrawn only the application knows that: it is asked.
    func application(of claimed: OfferedActivity) async throws(HandoffError) -> Connection {
        let offer = offers.first { $0.activity.id == claimed.id }
        let activity = offer?.activity ?? claimed
        guard offer == nil || activity.supportsContinuationStreams else {
            throw HandoffError(.streamsUnsupported, "the activity “\(activity.title)” has no continuation streams")
        }
        guard let application = offer?.application ?? applicationsOfClaimed[claimed.id], application.isOpen else {
            throw HandoffError(.applicationGone, "the application that offered “\(activity.title)” has gone")
        }
        return application
    }

    /// Forgets the applications of activities that nobody holds a claim on any more.
    private func forgetApplications() {
        applicationsOfClaimed = applicationsOfClaimed.filter { claims.isClaimed($0.key, now: .now) }
    }

    func offer(_ id: ActivityID) throws(HandoffError) -> Offer {
        guard visible.contains(where: { $0.id == id }), let offer = offers.first(where: { $0.activity.id == id }) else {
            throw HandoffError(.noSuchActivity, "the activity is no longer offered")
        }
        return offer
    }

    private func refuseIfHeld(_ activity: OfferedActivity, for device: PeerName) throws(HandoffError) {
        guard activity.isExclusive, let holder = claims.holder(of: activity.id, otherThan: device, now: .now) else {
            return
        }
        throw refusal(.held(by: holder))
    }

    private func refusal(_ refusal: ClaimTable.Refusal) -> HandoffError {
        switch refusal {
        case .held(let holder):
            HandoffError(.claimHeld, "the activity is taken, and only one device may have it", device: holder.name)
        case .tooManyClaims:
            HandoffError(.limitExceeded, "\(ClaimTable.bound) activities of that device are claimed already: try later")
        }
    }
}

extension HandoffError {
    /// The same, told of a device.
    func concerning(_ device: PeerName) -> HandoffError {
        // Which switch it was, and how to turn it, concerns that device's user alone.
        HandoffError(
            code, code == .handoffOff ? "Handoff is switched off on \(device.name)" : message, device: device.name)
    }
}
