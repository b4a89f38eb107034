// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// The continuing devices' side of the offers: they ask for an activity, and hold a claim on it.
///
/// A claim lasts until its holder releases it, or until its lease is over, which begins with the end of the
/// connection on which it was presented last. Only one device at a time holds claims on an *exclusive* activity, and at
/// most one of them is committed: see ``setContinued(_:by:)``. Withdrawing an activity takes no claim away.
///
/// An application is asked one question at a time. The answer is for all devices that waited when it was asked. A later
/// device waits for the next question, because the answer under way may be older than its request. So each device has
/// all the time that there is, behind at most one question for others.
extension OwnActivities {
    /// A device asks for an activity and a claim on it. The application is asked to save first, if it wants to be.
    ///
    /// - Parameter id: a new one.
    package mutating func claim(_ activity: ActivityID, as id: ClaimID, by device: PeerName) {
        guard let offer = visible.first(where: { $0.activity.id == activity }) else { return refuse(id, .notOffered) }
        let holder = claims.first { $0.offer == offer.id && $0.device.id != device.id }
        if offer.activity.isExclusive, let holder { return refuse(id, .held(by: holder.device)) }
        let own = claims.filter { $0.device.id == device.id }
        if own.count >= ClaimBounds.ofOneDevice { drop(own[0].id, because: W.failure(.displaced)) }
        guard claims.count < ClaimBounds.claims else { return refuse(id, .tooManyClaims) }
        lastNumber += 1
        claims.append(
            Claim(id: id, device: device, number: lastNumber, offer: offer.id, kept: W.keep(offer.activity)))
        if offer.activity.needsSave { askToSave(offer.id) } else { give(id, offer.activity.payload) }
    }

    private mutating func refuse(_ id: ClaimID, _ refusal: Refusal) {
        effects.append(.answer(id, .failure(W.failure(refusal))))
    }

    private mutating func give(_ id: ClaimID, _ payload: W.Activity.Payload) {
        change(id) { $0.state = .open }
        tell(.taken, of: id)
        effects.append(.answer(id, .success(payload)))
    }

    /// Asks the application of an offer for all devices that wait now.
    private mutating func askToSave(_ id: OfferID) {
        guard let index = offers.firstIndex(where: { $0.id == id }), !offers[index].isAsked else { return }
        let waiting = claims.filter { $0.offer == id && $0.state == .waiting }
        guard let first = waiting.first else { return }
        offers[index].isAsked = true
        for claim in waiting { change(claim.id) { $0.state = .asked } }
        effects.append(.askToSave(offers[index], for: first.device))
    }

    /// The application of an offer has answered what the state is, or has not.
    package mutating func saved(
        _ id: OfferID, _ answer: Result<(payload: W.Activity.Payload, kept: W.Kept), W.Failure>
    ) {
        guard let index = offers.firstIndex(where: { $0.id == id }) else { return }
        offers[index].isAsked = false
        let isVisible = visible.contains { $0.id == id }
        for claim in claims where claim.offer == id && claim.state == .asked {
            switch answer {
            case .failure(let failure): drop(claim.id, because: failure)
            case .success where !isVisible: drop(claim.id, because: W.failure(.notOffered))
            case .success(let (payload, kept)):
                change(claim.id) { $0.kept = kept }
                give(claim.id, payload)
            }
        }
        askToSave(id)
    }

    // MARK: A claim in use

    package subscript(id: ClaimID) -> Claim<W>? { claims.first { $0.id == id } }

    /// Whether a device holds a claim.
    package func holdsClaim(_ device: String) -> Bool { claims.contains { $0.device.id == device } }

    /// The claim that a device presents, which ends its lease until the end of the connection.
    package mutating func present(_ id: ClaimID, by device: PeerName) -> Result<Claim<W>, W.Failure> {
        guard var claim = self[id], claim.device.id == device.id, claim.isGiven else {
            return .failure(W.failure(.noSuchClaim))
        }
        claim.awayUntil = nil
        claim.device = device
        change(id) { $0 = claim }
        return claim.state == .cancelled ? .failure(W.failure(.cancelled)) : .success(claim)
    }

    /// Changes what a claim keeps.
    package mutating func update(_ id: ClaimID, _ body: (inout W.Kept) -> Void) { change(id) { body(&$0.kept) } }

    /// The holder has taken the activity over. It may go on using the claim, and may say so again: the application is
    /// told once.
    ///
    /// This commits the claim on an *exclusive* activity: the activity has moved. It is offered no more and its other
    /// claims end, so no other claim of this offer is ever committed. The origin remembers the commit until the claim
    /// ends.
    package mutating func setContinued(_ id: ClaimID, by device: PeerName) -> Result<Void, W.Failure> {
        present(id, by: device).flatMap { claim in
            guard claim.state != .continued else { return .success(()) }
            let offer = offer(of: claim)
            let isExclusive = offer?.activity.isExclusive == true
            // An application that hears nothing more would offer the activity again, for instance at the next start.
            if isExclusive, offer?.isClosed == true {
                return .failure(stopped ?? W.failure(.notOffered))
            }
            change(id) { $0.state = .continued }
            tell(.continued, of: id)
            guard isExclusive else { return .success(()) }
            for other in claims where other.offer == claim.offer && other.id != id {
                drop(other.id, because: W.failure(.notOffered))
            }
            move(claim.offer)
            return .success(())
        }
    }

    /// The holder says how far it is. The application is told until it knows what becomes of the claim: the last report
    /// may come after that, on another stream.
    package mutating func report(_ progress: W.Progress, of id: ClaimID) {
        guard self[id]?.isUnsettled == true else { return }
        update(id) { W.note(progress, in: &$0) }
        tell(.progress(progress), of: id)
    }

    /// A transfer to the holder was cut, and the holder goes on as soon as it can. The application is told once until
    /// then.
    package mutating func interrupt(_ id: ClaimID, because failure: W.Failure) {
        guard self[id]?.state == .open else { return }
        let end = now.instant + ClaimBounds.patience
        change(id) { ($0.state, $0.awayUntil) = (.interrupted, end) }
        tell(.interrupted(failure), of: id)
    }

    /// The holder goes on after a failure or a cut. The outcome is news again.
    package mutating func goOn(_ id: ClaimID) {
        change(id) { if $0.state == .failed || $0.state == .interrupted { $0.state = .open } }
    }

    /// The handoff of a claim has failed. The application is told once, and again if it fails after it went on.
    package mutating func fail(_ id: ClaimID, because failure: W.Failure) {
        guard let claim = self[id], claim.isGiven, claim.isUnsettled else { return }
        change(id) { $0.state = .failed }
        tell(.failed(failure), of: id)
    }

    /// A device releases a claim, or does not wait for it any longer.
    ///
    /// - Parameter reason: nil if it gives none.
    package mutating func release(_ id: ClaimID, by device: PeerName, because reason: W.Failure? = nil) {
        if self[id]?.device.id == device.id { drop(id, because: reason ?? W.failure(.givenUp)) }
    }

    /// The user of this device cancels the transfer to the holder of a claim. The claim stays for as long as the holder
    /// may come back for more.
    ///
    /// - Returns: the claim as it was; nil if nothing is sent any more.
    package mutating func cancel(_ id: ClaimID) -> Claim<W>? {
        guard let claim = self[id], claim.isUnsettled else { return nil }
        guard claim.isGiven else {
            drop(id, because: W.failure(.cancelled))
            return claim
        }
        let end = now.instant + ClaimBounds.patience
        change(id) { ($0.state, $0.awayUntil) = (.cancelled, $0.isAway ? end : nil) }
        tell(.failed(W.failure(.cancelled)), of: id)
        return claim
    }

    /// A connection has ended: the leases of the claims begin that its device presented on it last. Another connection
    /// of the device keeps none of them, because a device that has restarted does not know its claims any more.
    package mutating func connectionEnded(of device: PeerName) {
        for claim in claims where claim.device.id == device.id && claim.device.connection == device.connection {
            let mayComeBack = claim.state == .interrupted || claim.state == .cancelled
            let end = now.instant + (mayComeBack ? ClaimBounds.patience : lease)
            change(claim.id) { $0.awayUntil = min($0.awayUntil ?? end, end) }
        }
    }

    /// The newest offer of a claimed activity.
    package func offer(of claim: Claim<W>) -> Offer<W>? { offers.first { $0.id == claim.offer } }

    // MARK: Inside

    /// Ends a claim. Its application is told, unless it knows what became of it; and so is a device that waits for it.
    mutating func drop(_ id: ClaimID, because failure: W.Failure) {
        guard let claim = self[id] else { return }
        if claim.isUnsettled { tell(.failed(failure), of: id) }
        if !claim.isGiven { effects.append(.answer(id, .failure(failure))) }
        claims.removeAll { $0.id == id }
    }

    private mutating func change(_ id: ClaimID, _ body: (inout Claim<W>) -> Void) {
        if let index = claims.firstIndex(where: { $0.id == id }) { body(&claims[index]) }
    }

    /// Tells the application of a claim what becomes of it.
    private mutating func tell(_ told: Told<W>, of id: ClaimID) {
        guard let claim = self[id], let offer = offer(of: claim), !offer.isClosed else { return }
        effects.append(.tell(offer.id, told, claim))
    }
}

/// One device's hold on an activity.
package struct Claim<W: World>: Sendable {
    /// The state of the handoff, as the application was told that offers the activity.
    package enum State: Sendable, Hashable {
        /// Its device waits for the next question to the application.
        case waiting
        /// Its device waits for the answer to the question that is under way.
        case asked
        /// Its device has the activity.
        case open
        /// The transfer to the holder was cut, and the holder has not gone on since.
        case interrupted
        /// It failed, and the holder has not gone on since.
        case failed
        /// The user of this device has cancelled what the holder is sent.
        case cancelled
        /// The holder has taken the activity over.
        case continued
    }

    package let id: ClaimID
    /// The holder, and the connection on which it presented the claim last.
    package fileprivate(set) var device: PeerName
    /// Rises with every claim that is made, from 1 on: applications are told which one an event is about.
    package let number: UInt64
    var offer: OfferID
    package fileprivate(set) var kept: W.Kept
    package fileprivate(set) var state = State.waiting
    /// When its lease is over; nil while its holder is there.
    fileprivate(set) var awayUntil: Instant?

    /// Whether the holder is not there at the moment.
    package var isAway: Bool { awayUntil != nil }
    /// Whether the holder has the activity.
    var isGiven: Bool { state != .waiting && state != .asked }
    /// Whether it is not known yet what becomes of it.
    package var isUnsettled: Bool { !isGiven || state == .open || state == .interrupted }
}

package enum ClaimBounds {
    /// Claims at once: 128. Each keeps at most one payload of 64 KiB, so 8 MiB at the worst. One more is refused.
    package static let claims = 128
    /// Claims of one device: 32, so that none uses up those of the others. One more ends the device's oldest, which was
    /// forgotten, since no device continues so many activities at once.
    package static let ofOneDevice = 32
    /// How long a claim outlives the connection on which its holder presented it last: 30 s.
    package static let lease = Duration.seconds(30)
    /// The same for a holder whose transfer was cut or cancelled: 10 min, for which it tries to go on.
    package static let patience = Duration.seconds(600)
}
