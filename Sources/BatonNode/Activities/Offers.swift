// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import Logging
import SwiftProtobuf

/// The driver of `OwnActivities`: that value decides about the offers of this device and the claims on them, and this
/// actor carries out its orders.
///
/// No `await` stands between reading the core's state and changing it, because everything goes through ``decide(_:)``.
@ControlLoop
final class Offers {
    /// Events that wait for an application that does not read; the oldest progress is lost beyond it.
    nonisolated static let eventBound = 1024
    /// How long an application may take to save: the 5 s of its code, and half a second for its library.
    nonisolated static let saveDeadline = Duration.milliseconds(5500)

    private(set) var core: OwnActivities<NodeWorld>
    /// The events of each offer, for its application.
    private var events: [OfferID: AsyncStream<WireOfferEvent>.Continuation] = [:]
    /// Devices that wait for an activity.
    private var takers: [ClaimID: CheckedContinuation<Result<WireActivityPayload, HandoffError>, Never>] = [:]
    private var awaitingReplacement: [CheckedContinuation<Void, Never>] = []
    private var timer = DeadlineTimer()
    let files: SharedFiles
    let descriptions: SharedPart?
    private let saveDeadline: Duration
    private let announce: @ControlLoop @Sendable () -> Void
    /// Whether a change is to be announced in the next turn of the loop, with others of this turn.
    private var isAnnouncing = false

    /// - Parameters:
    ///   - files: what the files of this device are for others.
    ///   - bound: see ``NodeLimits/offers``.
    ///   - descriptions: where the memory of looking at a document is counted; nil counts it nowhere.
    ///   - lease: how long a claim outlives the connection of its holder.
    ///   - saveDeadline: how long an application may take to save.
    ///   - announce: tells other devices of changes. A withdrawal and the offer that takes its place are one change,
    ///     because announcements are rationed.
    nonisolated init(
        files: SharedFiles, bound: Int = NodeLimits().offers, descriptions: SharedPart? = nil,
        lease: Duration = ClaimBounds.lease, saveDeadline: Duration = Offers.saveDeadline,
        announce: @escaping @ControlLoop @Sendable () -> Void
    ) {
        self.files = files
        self.descriptions = descriptions
        self.saveDeadline = saveDeadline
        self.announce = announce
        core = OwnActivities(bound: bound, lease: lease)
    }

    /// Tells the core of an event, or asks it something, and carries out what it orders.
    @discardableResult
    func decide<Value: Sendable>(_ event: @Sendable (inout OwnActivities<NodeWorld>) -> Value) -> Value {
        core.advance(to: .now)
        let value = event(&core)
        for effect in core.takeEffects() { carryOut(effect) }
        timer.schedule(at: core.nextDeadline) { [weak self] in self?.decide { _ in } }
        return value
    }

    private func carryOut(_ effect: OwnActivities<NodeWorld>.Effect) {
        switch effect {
        case .changed: if !core.isAwaitingReplacement { announceSoon() }
        case .tell(let offer, let told, let claim):
            events[offer]?.yield(WireOfferEvent(told, claim))
            guard case .continued = told, let claim else { break }
            files.logger.notice("“\(claim.kept.activity.title)” was taken over by \(claim.device.name)")
        case .endEvents(let offer): events.removeValue(forKey: offer)?.finish()
        case .askToSave(let offer, let device):
            ControlLoop.task {
                let answer = await self.saved(offer, for: device)
                self.decide { $0.saved(offer.id, answer) }
            }
        case .answer(let claim, let answer): takers.removeValue(forKey: claim)?.resume(returning: answer)
        case .graceEnded:
            for waiting in awaitingReplacement { waiting.resume() }
            awaitingReplacement = []
            announceSoon()
        }
    }

    private func announceSoon() {
        guard !isAnnouncing else { return }
        isAnnouncing = true
        ControlLoop.execute {
            self.isAnnouncing = false
            self.announce()
        }
    }

    // MARK: The application's side

    /// Takes an activity on and makes it current.
    ///
    /// - Returns: its events. They end when it is withdrawn. If devices are taking it over then, they end when the
    ///   outcome for each is known.
    func offer(
        _ activity: OfferedActivity, from application: Connection, as id: OfferID = OfferID()
    ) throws(HandoffError) -> AsyncStream<WireOfferEvent> {
        let (stream, continuation) = AsyncStream<WireOfferEvent>.makeStream(
            bufferingPolicy: .bufferingNewest(Self.eventBound))
        if let failure = decide({ $0.offer(activity, from: application, as: id) }) { throw failure }
        events[id] = continuation
        return stream
    }

    private func saved(
        _ offer: Offer<NodeWorld>, for device: PeerName
    ) async -> Result<(payload: WireActivityPayload, kept: KeptActivity), HandoffError> {
        do throws(HandoffError) {
            let late = "the application that offers it did not save"
            let answer = try await withDeadline(saveDeadline, late) {
                try await offer.application.answer(
                    to: .willSave(
                        .with {
                            $0.activityID = Data(offer.activity.id.bytes)
                            $0.device = device.name
                        }))
            }
            guard case .willSave(let state) = answer else {
                throw HandoffError(.internal, "the application that offers it gave an answer that cannot be read")
            }
            return .success(try await handedOver(state, of: offer.activity))
        } catch {
            // Its connection, and not the one between the devices.
            guard error.code == .connectionLost else { return .failure(error) }
            return .failure(HandoffError(.applicationGone, "the application that offers it has ended"))
        }
    }

    // MARK: Lists

    /// The activities that others may know of, the oldest first. The last one is advertised.
    var visible: [OfferedActivity] { decide { $0.visible.map(\.activity) } }

    /// All offers, the current one first, also those that no device sees because Handoff is off for them.
    var listing: [WireOwnOffer] {
        decide { core in
            core.offered.reversed().map { offer in
                .with {
                    $0.activity = offer.activity.summary
                    $0.activity.title = offer.activity.ownTitle
                    $0.application = offer.activity.application
                    $0.switchedOff = !core.isOn(offer)
                }
            }
        }
    }

    /// Waits while a new offer may still take the place of a withdrawn one: for 100 ms after the withdrawal.
    func replaced() async {
        guard decide({ $0.isAwaitingReplacement }) else { return }
        await withCheckedContinuation { awaitingReplacement.append($0) }
    }

    // MARK: The continuing devices' side

    /// Gives a device the activity as it is now, and a claim on it.
    ///
    /// The application is asked to save first. If that fails no claim stays, and the activity remains available.
    ///
    /// - Parameter claim: a new one. Releasing it ends the wait.
    func claim(
        _ id: ActivityID, by device: PeerName, as claim: ClaimID = ClaimID()
    ) async throws(HandoffError) -> (claim: ClaimID, payload: WireActivityPayload) {
        let answer = await withCheckedContinuation { taker in
            takers[claim] = taker
            decide { $0.claim(id, as: claim, by: device) }
        }
        do {
            return (claim, try answer.get())
        } catch {
            // The application may have said where the document was; that is for this device's user alone.
            throw error.code == .documentUnreadable ? .unreadableAtOrigin : error
        }
    }

    /// The application behind a claimed activity, for a continuation stream.
    func application(of claim: Claim<NodeWorld>) throws(HandoffError) -> Connection {
        let (offer, activity) = (core.offer(of: claim), claim.kept.activity)
        // The application alone knows whether a withdrawn activity supports streams now.
        guard let offer, !offer.isOffered || offer.activity.supportsContinuationStreams else {
            throw HandoffError(.streamsUnsupported, "the activity “\(activity.title)” has no continuation streams")
        }
        guard offer.application.isOpen else {
            throw HandoffError(.applicationGone, "the application that offered “\(activity.title)” has gone")
        }
        return offer.application
    }

    /// The documents that devices are taking over.
    var transfers: [WireTransfer] {
        decide { $0.claims.filter { $0.isUnsettled && $0.kept.activity.document != nil }.map { WireTransfer($0) } }
    }

    /// Cancels the transfer to the holder of a claim. Its later requests with this claim are refused as `cancelled`,
    /// which a device takes for final.
    ///
    /// - Returns: the transfer as it was left; nil if it is over already.
    func cancelTransfer(_ id: ClaimID) -> WireTransfer? {
        decide { $0[id]?.kept.activity.document == nil ? nil : $0.cancel(id) }.map { WireTransfer($0) }
    }
}
