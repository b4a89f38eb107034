// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// The activities that applications of this device offer, and the claims of other devices on them: a value that decides
/// and is told the time.
///
/// The newest offer is the current one, which is advertised. The driver calls ``advance(to:)`` before every other call,
/// and carries out what ``takeEffects()`` returns after it.
package struct OwnActivities<W: World>: Sendable {
    /// How long others are not told of a withdrawal: 100 ms. An offer in this time takes the place of what was
    /// withdrawn, such as another tab of the same application.
    private static var replacementGrace: Duration { .milliseconds(100) }
    /// How often expiries are checked at least, in seconds. The user can set the clock that they are read by.
    private static var expiryCheck: Double { 30 }
    /// How long an expiry is waited for at least, in seconds. The two clocks differ by what rounding takes.
    private static var leastWait: Double { 0.001 }

    package enum Effect: Sendable {
        /// There is a change of what others may know of.
        case changed
        /// Tells the application of an offer what happens to it, or to a claim on it.
        case tell(OfferID, Told<W>, Claim<W>?)
        /// Nothing more is told of this offer.
        case endEvents(OfferID)
        /// Asks the application what the state is now, for a device that takes the activity over;
        /// ``OwnActivities/saved(_:_:)`` takes the answer.
        case askToSave(Offer<W>, for: PeerName)
        /// Answers ``OwnActivities/claim(_:as:by:)``.
        case answer(ClaimID, Result<W.Activity.Payload, W.Failure>)
        /// ``OwnActivities/isAwaitingReplacement`` is false again.
        case graceEnded
    }

    /// Activities offered at once: one more is refused.
    private let bound: Int
    /// How long a claim outlives the connection on which its holder presented it last.
    let lease: Duration
    private(set) var now = Moment(instant: Instant(nanoseconds: 0), unixTime: 0)
    /// The oldest first: what is offered, and what was withdrawn while devices hold claims on it.
    var offers: [Offer<W>] = []
    /// The oldest first.
    package internal(set) var claims: [Claim<W>] = []
    var lastNumber: UInt64 = 0
    /// An offer of an application that is off stays, and no device is told of it.
    private var handoffSwitch = HandoffSwitch()
    private var graceEnd: Instant?
    private var isStopping = false
    var effects: [Effect] = []

    package init(bound: Int, lease: Duration) {
        self.bound = bound
        self.lease = lease
    }

    // MARK: Time

    /// Moves the clocks on, and does what is due.
    package mutating func advance(to now: Moment) {
        self.now = now
        if let graceEnd, graceEnd <= now.instant { endGrace() }
        for offer in offered where offer.activity.expires.map({ $0 <= now.unixTime }) ?? false { withdraw(offer.id) }
        for claim in claims where claim.awayUntil.map({ $0 <= now.instant }) ?? false {
            drop(claim.id, because: W.failure(.lapsed(wasInterrupted: claim.state == .interrupted)))
        }
    }

    /// When ``advance(to:)`` has to be called at the latest.
    package var nextDeadline: Instant? {
        let expiry = offered.compactMap(\.activity.expires).min().map { time in
            // Bounded before the conversion: `Duration` traps on seconds from 1.8e20.
            now.instant + .seconds(min(max(Self.leastWait, time - now.unixTime), Self.expiryCheck))
        }
        return [graceEnd, claims.compactMap(\.awayUntil).min(), expiry].compactMap(\.self).min()
    }

    /// The orders since this was called last, the oldest first.
    package mutating func takeEffects() -> [Effect] {
        settle()
        defer { effects = [] }
        return effects
    }

    // MARK: Offers

    /// The offers that were not withdrawn, the oldest first.
    package var offered: [Offer<W>] { offers.filter(\.isOffered) }

    /// The offers that other devices may know of, the oldest first.
    package var visible: [Offer<W>] { offered.filter(isOn) }

    /// Whether Handoff is on for an offer's application.
    package func isOn(_ offer: Offer<W>) -> Bool { handoffSwitch.isOn(for: offer.activity.application) }

    /// Why nothing is offered any more; nil while the node runs.
    package var stopped: W.Failure? { isStopping ? W.failure(.stopping) : nil }

    /// Takes an activity on and makes it current.
    ///
    /// - Parameter id: a new one. It names this offer until ``Effect/endEvents(_:)``.
    /// - Returns: why not; nil if it is offered now.
    package mutating func offer(
        _ activity: W.Activity, from application: W.Application, as id: OfferID
    ) -> W.Failure? {
        if let stopped { return stopped }
        guard offered.count < bound else { return W.failure(.tooManyOffers(bound)) }
        guard !offered.contains(where: { $0.activity.id == activity.id }) else { return W.failure(.alreadyOffered) }
        // From now on this offer's application hears what becomes of the claims on earlier ones.
        let earlier = Set(offers.filter { $0.activity.id == activity.id }.map(\.id))
        for index in claims.indices where claims[index].isGiven && earlier.contains(claims[index].offer) {
            claims[index].offer = id
        }
        changeOffers { $0.offers.append(Offer(id: id, activity: activity, application: application)) }
        return nil
    }

    /// Replaces the activity of an offer. Does nothing after the offer was withdrawn.
    ///
    /// - Parameter becomesCurrent: whether it becomes the newest of this device.
    package mutating func update(_ id: OfferID, to activity: W.Activity, becomesCurrent: Bool) {
        guard let index = offers.firstIndex(where: { $0.id == id && $0.isOffered }) else { return }
        changeOffers {
            $0.offers[index].activity = activity
            if becomesCurrent { $0.offers.append($0.offers.remove(at: index)) }
        }
    }

    /// Ends an offer for other devices, because its exclusive activity has moved to one. Its application serves that
    /// device, and hears of the end when the claim ends.
    mutating func move(_ id: OfferID) {
        guard let index = offers.firstIndex(where: { $0.id == id && $0.isOffered }) else { return }
        changeOffers { $0.offers[index].stage = .moved }
    }

    /// Ends an offer. A later offer of the same activity stays, and so does the claim of a device that took it over.
    package mutating func withdraw(_ id: OfferID) {
        guard let index = offers.firstIndex(where: { $0.id == id && ($0.isOffered || $0.stage == .moved) }) else {
            return
        }
        changeOffers { $0.offers[index].stage = .departed }
        effects.append(.tell(id, .withdrawn, nil))
    }

    /// Withdraws everything, because the node stops, and takes nothing more.
    package mutating func stop() {
        isStopping = true
        for offer in offered {
            fail(offer.id, because: W.failure(.stopping))
            withdraw(offer.id)
        }
    }

    /// Follows what the user has switched on and off.
    package mutating func setSwitch(_ state: HandoffSwitch) { changeOffers { $0.handoffSwitch = state } }

    /// Tells the application that its offer has failed.
    package mutating func fail(_ id: OfferID, because failure: W.Failure) {
        effects.append(.tell(id, .failed(failure), nil))
    }

    /// Changes the offers, and refuses devices that wait for one which is hidden now. A device for which the
    /// application is asked waits for the answer, which may say better why it gets nothing.
    ///
    /// It is a change for others only if a summary changed: they do not know the user info before they take an activity
    /// over.
    private mutating func changeOffers(_ body: (inout Self) -> Void) {
        let before = visible.map(\.activity.summary)
        body(&self)
        let visible = self.visible
        let refused: [Claim<W>.State] = isStopping ? [.waiting, .asked] : [.waiting]
        for claim in claims where refused.contains(claim.state) && !visible.contains(where: { $0.id == claim.offer }) {
            drop(claim.id, because: W.failure(.notOffered))
        }
        guard visible.map(\.activity.summary) != before else { return }
        let isLess = visible.count < before.count
        if isLess { graceEnd = graceEnd ?? now.instant + Self.replacementGrace } else { endGrace() }
        effects.append(.changed)
    }

    // MARK: Replacement

    /// Whether something was withdrawn within the last 100 ms and nothing was offered since.
    package var isAwaitingReplacement: Bool { graceEnd != nil }

    private mutating func endGrace() {
        guard graceEnd != nil else { return }
        graceEnd = nil
        effects.append(.graceEnded)
    }

    // MARK: The end of an offer

    /// Ends the events of a withdrawn offer once it is known what becomes of the claims on it. The offer is forgotten
    /// with its last claim: until then the holder may open streams to its application.
    private mutating func settle() {
        for offer in offers where offer.stage == .moved {
            if isStopping || !claims.contains(where: { $0.offer == offer.id }) { withdraw(offer.id) }
        }
        for index in offers.indices where offers[index].stage == .departed {
            let id = offers[index].id
            guard isStopping || !claims.contains(where: { $0.offer == id && $0.isUnsettled }) else { continue }
            offers[index].stage = .closed
            effects.append(.endEvents(id))
        }
        offers.removeAll { offer in offer.stage == .closed && !claims.contains { $0.offer == offer.id } }
    }
}

/// One offer of an activity.
package struct Offer<W: World>: Sendable {
    enum Stage: Sendable {
        case offered
        /// Its exclusive activity has moved to a device, which holds a claim on it.
        case moved
        /// It was withdrawn, and its application hears what becomes of the claims on it.
        case departed
        /// Its application hears nothing more.
        case closed
    }

    package let id: OfferID
    package fileprivate(set) var activity: W.Activity
    package let application: W.Application
    fileprivate(set) var stage = Stage.offered
    /// Whether its application is at a question, perhaps for devices that have gone since.
    var isAsked = false

    package var isOffered: Bool { stage == .offered }
    var isClosed: Bool { stage == .closed }
}

/// News for the application of an offer.
package enum Told<W: World>: Sendable {
    case taken
    case progress(W.Progress)
    /// The transfer was cut, and the device goes on as soon as it can.
    case interrupted(W.Failure)
    case continued
    /// The device does not get it, or the offer itself has failed.
    case failed(W.Failure)
    case withdrawn
}
