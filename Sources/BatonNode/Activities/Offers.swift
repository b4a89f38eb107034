// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// The activities that applications of this device offer, and the claims of other devices on them.
///
/// The newest is the current one, which is advertised. Lives on the node's control loop.
actor Offers {
    /// Events that wait for an application that does not read; the oldest progress is lost beyond it.
    static let eventBound = 1024
    /// How long what was withdrawn is waited for to be replaced, such as by another tab of the same application, before
    /// others are told: for them nothing was missing then.
    private static let replacementGrace = Duration.milliseconds(100)

    /// What changed, for whoever advertises.
    enum Change: Sendable {
        case offered
        case withdrawn
        /// A device has taken an activity over; what is advertised stays.
        case continued(title: String, device: String)
    }

    /// One offer of an activity. An application may offer the same activity again after the first offer ended.
    struct OfferID: Hashable, Sendable {
        private let value = UUID()
    }

    /// An activity and the application that stands behind it.
    struct Offer {
        let id: OfferID
        var activity: OfferedActivity
        let application: Connection
        let events: AsyncStream<WireOfferEvent>.Continuation
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Oldest first.
    var offers: [Offer] = []
    var claims: ClaimTable
    let checks: ClaimChecks
    private let bound: Int
    let descriptions: SharedPart?
    /// The applications behind activities that were withdrawn while devices hold claims on them: these may still open
    /// streams. As many as there are claims at the most.
    var applicationsOfClaimed: [ActivityID: Connection] = [:]
    /// Offers whose applications are saving for devices, and the number of those devices.
    private var savesUnderWay: [OfferID: Int] = [:]
    /// Activities whose applications are being asked for the state, and the claims that wait for it.
    var saves: [ActivityID: AwaitedSaves] = [:]
    /// How long an application may take to save.
    let saveDeadline: Duration
    /// The 5 s of the application's code, and half a second for its library.
    static let saveDeadline = Duration.milliseconds(5500)
    /// Offers that were withdrawn during a save. Their events end when the application knows the outcome of the save.
    private var endings: [OfferID: Offer] = [:]
    /// What was withdrawn while devices were taking it over: its events go on until that is settled. As many as there
    /// are claims at the most.
    var departed: [ActivityID: Offer] = [:]
    /// The applications of these whose connections' ends are waited for.
    var departing: Set<ObjectIdentifier> = []
    /// Armed for the next claim that lapses.
    var lapse: BatonEventLoop.Timer?
    /// What the user has switched off is kept, and neither told nor given to anybody.
    private(set) var handoffSwitch = HandoffSwitch()
    let files: SharedFiles
    let changed: @Sendable (Change) -> Void
    /// How often something has changed.
    private(set) var changeCount: UInt64 = 0
    /// Armed while what was withdrawn may be replaced.
    private var grace: BatonEventLoop.Timer?
    private var awaitingReplacement: [CheckedContinuation<Void, Never>] = []
    private var expiry: BatonEventLoop.Timer?
    /// Nothing is offered from now on.
    private var isStopping = false
    /// How often expiries are checked at least, in seconds: the clock that they are read by can be set.
    private static let expiryCheck = 30.0

    /// - Parameters:
    ///   - files: what the files of this device are for others.
    ///   - checks: what a claim is looked at for.
    ///   - bound: see ``NodeLimits/offers``.
    ///   - descriptions: where the memory of looking at a document is counted; `nil` counts it nowhere.
    ///   - lapse: how long a claim outlives the connection of its holder.
    ///   - saveDeadline: how long an application may take to save.
    ///   - changed: called on the loop after each change of what is offered.
    init(
        on loop: EventLoop, files: SharedFiles, checks: ClaimChecks = .all, bound: Int = NodeLimits().offers,
        descriptions: SharedPart? = nil, lapse: Duration = ClaimTable.lapse,
        saveDeadline: Duration = Offers.saveDeadline, changed: @escaping @Sendable (Change) -> Void
    ) {
        self.loop = loop
        self.files = files
        self.checks = checks
        self.bound = bound
        self.descriptions = descriptions
        self.saveDeadline = saveDeadline
        claims = ClaimTable(checks: checks, lapse: lapse)
        self.changed = changed
    }

    /// What others may know of, oldest first.
    var visible: [OfferedActivity] {
        offers.map(\.activity).filter { !$0.isExpired() && handoffSwitch.isOn(for: $0.application) }
    }

    /// The activity that is advertised.
    var current: OfferedActivity? { visible.last }

    var count: Int { visible.count }

    /// All that is offered, the current one first.
    var summaries: [WireActivitySummary] {
        visible.reversed().map(\.summary)
    }

    /// Returns when something was offered in place of what was withdrawn last, or will not be so soon; at once where
    /// nothing was withdrawn within the last 100 ms.
    func replaced() async {
        guard grace?.isScheduled == true else { return }
        await withCheckedContinuation { awaitingReplacement.append($0) }
    }

    // MARK: The application's side

    /// - Throws: `nodeStopping` where nothing is offered any more.
    func requireRunning() throws(HandoffError) {
        guard !isStopping else { throw Self.stopping }
    }

    /// Takes an activity on and makes it current.
    ///
    /// - Parameter id: names this offer in ``update(_:to:becomesCurrent:)``, ``fail(_:because:)`` and
    ///   ``withdraw(offer:)``.
    /// - Returns: its events. They end when it is withdrawn, or, where devices are taking it over then, when it is
    ///   known of each what becomes of that.
    func offer(
        _ activity: OfferedActivity, from application: Connection, as id: OfferID = OfferID()
    ) throws(HandoffError) -> AsyncStream<WireOfferEvent> {
        try requireRunning()
        guard offers.count < bound else {
            throw HandoffError(
                .limitExceeded, "\(bound) activities are offered already: withdraw one with `baton withdraw ID`")
        }
        guard !offers.contains(where: { $0.activity.id == activity.id }) else {
            throw HandoffError(.invalidRequest, "an activity with this id is offered already")
        }
        let (events, continuation) = AsyncStream<WireOfferEvent>.makeStream(
            bufferingPolicy: .bufferingNewest(Self.eventBound))
        offers.append(Offer(id: id, activity: activity, application: application, events: continuation))
        applicationsOfClaimed[activity.id] = nil
        departed.removeValue(forKey: activity.id)?.events.finish()
        awaitExpiry()
        note(.offered)
        return events
    }

    /// Replaces the activity of an offer. Does nothing after the offer was withdrawn.
    ///
    /// - Parameter becomesCurrent: it becomes the newest of this device.
    func update(_ id: OfferID, to activity: OfferedActivity, becomesCurrent: Bool) {
        guard let index = offers.firstIndex(where: { $0.id == id }) else { return }
        let before = summaries
        offers[index].activity = activity
        if becomesCurrent { offers.append(offers.remove(at: index)) }
        awaitExpiry()
        // The user info is nobody's before it is asked for: that it changed is not told either.
        if before != summaries { note(.offered) }
    }

    /// Stops offering an activity, whichever offer it is of. A device that accepted it before keeps the claim.
    func withdraw(_ id: ActivityID) {
        guard let offer = offers.first(where: { $0.activity.id == id }) else { return }
        withdraw(offer: offer.id)
    }

    /// Ends one offer. A later offer of the same activity stays.
    func withdraw(offer id: OfferID) {
        guard let index = offers.firstIndex(where: { $0.id == id }) else { return }
        let offer = offers.remove(at: index)
        let activity = offer.activity.id
        if claims.isClaimed(activity, now: .now) { applicationsOfClaimed[activity] = offer.application }
        if savesUnderWay[id] == nil { depart(offer) } else { endings[id] = offer }
        note(.withdrawn)
    }

    /// An application is asked for the state, and may withdraw the activity because of what that is.
    func saveBegins(_ id: OfferID) {
        savesUnderWay[id, default: 0] += 1
    }

    /// It has been told what became of it.
    func saveEnded(_ id: OfferID) {
        guard let count = savesUnderWay[id] else { return }
        savesUnderWay[id] = count > 1 ? count - 1 : nil
        if count == 1, let offer = endings.removeValue(forKey: id) { depart(offer) }
    }

    private static let stopping = HandoffError(.nodeStopping, "the node was stopped, so nothing is offered any more")

    /// Withdraws everything, because the node stops, and takes nothing more.
    func withdrawAll() {
        isStopping = true
        for offer in offers {
            offer.events.yield(.with { $0.failed = Self.stopping.failure })
            withdraw(offer: offer.id)
        }
        for offer in departed.values { offer.events.finish() }
        departed = [:]
    }

    /// Keeps to what the user has switched on and off.
    func setSwitch(_ state: HandoffSwitch) {
        let before = summaries
        handoffSwitch = state
        guard before != summaries else { return }
        note(summaries.count < before.count ? .withdrawn : .offered)
    }

    private func note(_ change: Change) {
        changeCount += 1
        switch change {
        case .offered: endGrace()
        case .withdrawn: beginGrace()
        case .continued: break
        }
        changed(change)
    }

    private func beginGrace() {
        if grace == nil {
            grace = BatonEventLoop.Timer(on: loop) { [weak self] in self?.assumeIsolated { $0.endGrace() } }
        }
        if grace?.isScheduled == false { grace?.schedule(after: Self.replacementGrace) }
    }

    private func endGrace() {
        grace?.cancel()
        for waiting in awaitingReplacement { waiting.resume() }
        awaitingReplacement = []
    }

    private func awaitExpiry() {
        guard let next = offers.compactMap(\.activity.expires).min() else {
            expiry?.cancel()
            return
        }
        if expiry == nil {
            expiry = BatonEventLoop.Timer(on: loop) { [weak self] in self?.assumeIsolated { $0.expire() } }
        }
        // Bounded before the conversion: `Duration` traps on seconds from 1.8e20.
        expiry?.schedule(after: .seconds(min(max(0, next.timeIntervalSinceNow), Self.expiryCheck)))
    }

    private func expire() {
        for offer in offers where offer.activity.isExpired() { withdraw(offer: offer.id) }
        awaitExpiry()
    }

    /// The one activity whose identifier begins so.
    func activity(withPrefix prefix: String) throws(HandoffError) -> OfferedActivity {
        let matching = offers.map(\.activity).filter { $0.id.description.hasPrefix(prefix.lowercased()) }
        guard let first = matching.first else {
            throw HandoffError(.noSuchActivity, "this device offers no activity with the id \(prefix)")
        }
        guard matching.count == 1 else {
            throw HandoffError(.ambiguousActivity, "\(matching.count) activities begin with \(prefix): give more of it")
        }
        return first
    }

    /// Tells the application what became of its activity on another device.
    ///
    /// - Parameter claim: the number of that device's claim; 0 where it is about none.
    func report(_ event: WireOfferEvent.OneOf_Kind, of id: ActivityID, claim: UInt64 = 0) {
        let offer =
            offers.first { $0.activity.id == id } ?? endings.values.first { $0.activity.id == id } ?? departed[id]
        offer?.events.yield(
            .with {
                $0.kind = event
                $0.claim = claim
            })
    }

    /// Tells the application that its offer has failed.
    func fail(_ id: OfferID, because error: HandoffError) {
        let offer = offers.first { $0.id == id } ?? endings[id] ?? departed.values.first { $0.id == id }
        offer?.events.yield(.with { $0.failed = error.failure })
    }

    /// Tells the application of a claimed activity what becomes of that claim.
    func report(_ event: WireOfferEvent.OneOf_Kind, of claim: Claim) {
        if case .progress(let report) = event { claims.note(report, of: claim.number, now: .now) }
        report(event, of: claim.activity.id, claim: claim.number)
    }
}

/// A device as people and logs know it.
struct PeerName: Sendable, Hashable {
    /// The verified identifier.
    let id: String
    /// The name that it advertises, or the beginning of its identifier.
    let name: String

    func taken(bytes: UInt64 = 0, state: UInt64 = 0) -> WireOfferEvent.Taken {
        .with {
            $0.device = name
            $0.deviceID = id
            $0.bytes = bytes
            $0.state = state
        }
    }
}
