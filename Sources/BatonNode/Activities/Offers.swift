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
    /// Activities offered at once; one more is refused. Each keeps at most one payload (64 KiB).
    static let bound = 64
    /// Events that wait for an application that does not read; the oldest progress is lost beyond it.
    private static let eventBound = 1024
    /// How long an application may take to save.
    static let saveDeadline = Duration.seconds(5)

    /// What changed, for whoever advertises.
    enum Change: Sendable {
        case offered
        case withdrawn
    }

    /// An activity and the application that stands behind it.
    private struct Offer {
        let activity: OfferedActivity
        let application: Connection
        let events: AsyncStream<WireOfferEvent>.Continuation
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Oldest first.
    private var offers: [Offer] = []
    private var claims: ClaimTable
    private let checks: ClaimChecks
    /// Events of withdrawn activities still reach their application while it is there.
    private let changed: @Sendable (Change) -> Void

    /// - Parameters:
    ///   - checks: what a claim is looked at for.
    ///   - changed: called on the loop after each change of what is offered.
    init(on loop: EventLoop, checks: ClaimChecks = .all, changed: @escaping @Sendable (Change) -> Void) {
        self.loop = loop
        self.checks = checks
        claims = ClaimTable(checks: checks)
        self.changed = changed
    }

    /// The activity that is advertised, and how many there are besides.
    var current: (activity: OfferedActivity, others: Int)? {
        offers.last.map { ($0.activity, offers.count - 1) }
    }

    var count: Int { offers.count }

    /// All that is offered, the current one first.
    var summaries: [WireActivitySummary] {
        offers.reversed().map(\.activity.summary)
    }

    // MARK: The application's side

    /// Takes an activity on and makes it current.
    ///
    /// - Returns: the activity, and its events, which end when it is withdrawn.
    func offer(
        _ activity: OfferedActivity, from application: Connection
    ) throws(HandoffError) -> AsyncStream<WireOfferEvent> {
        guard offers.count < Self.bound else {
            throw HandoffError(
                .limitExceeded, "\(Self.bound) activities are offered already: withdraw one with `baton withdraw ID`")
        }
        let (events, continuation) = AsyncStream<WireOfferEvent>.makeStream(
            bufferingPolicy: .bufferingNewest(Self.eventBound))
        offers.append(Offer(activity: activity, application: application, events: continuation))
        changed(.offered)
        return events
    }

    /// Stops offering an activity. Who accepted it before keeps the claim.
    func withdraw(_ id: ActivityID) {
        guard let index = offers.firstIndex(where: { $0.activity.id == id }) else { return }
        let offer = offers.remove(at: index)
        offer.events.yield(.with { $0.withdrawn = .init() })
        offer.events.finish()
        changed(.withdrawn)
    }

    /// Withdraws everything, because the node stops.
    func withdrawAll() {
        let stopping = HandoffError(.nodeStopping, "the node was stopped, so nothing is offered any more")
        for offer in offers {
            offer.events.yield(.with { $0.failed = stopping.failure })
            withdraw(offer.activity.id)
        }
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
    func report(_ event: WireOfferEvent.OneOf_Kind, of id: ActivityID) {
        offers.first { $0.activity.id == id }?.events.yield(.with { $0.kind = event })
    }

    // MARK: The continuing device's side

    /// Gives a device the activity as it is now, and a claim on it.
    ///
    /// The application is asked to save first. Where that fails no claim stays, and the activity remains available.
    func claim(
        _ id: ActivityID, by device: PeerName
    ) async throws(HandoffError) -> (claim: ClaimID, payload: WireActivityPayload) {
        let offer = try offer(id)
        try refuseIfHeld(offer.activity, for: device)
        let claim: ClaimID
        do {
            claim = try claims.claim(offer.activity, by: device, now: .now)
        } catch {
            throw refusal(error)
        }
        do {
            let payload = try await savedPayload(of: offer, for: device)
            offer.events.yield(.with { $0.taken = device.taken(bytes: 0) })
            return (claim, payload)
        } catch {
            claims.release(claim, by: device)
            offer.events.yield(.with { $0.failed = error.concerning(device).failure })
            // The application may have said where the document was; that is for this device's user alone.
            guard error.code != .documentUnreadable else {
                throw HandoffError(.documentUnreadable, "the document can no longer be read on the other device")
            }
            throw error
        }
    }

    /// The claim that a device presents.
    func claim(_ id: ClaimID, of device: PeerName) throws(HandoffError) -> Claim {
        if let claim = claims.present(id, by: device, now: .now) { return claim }
        guard !checks.contains(.given), let activity = offers.last?.activity else {
            throw HandoffError(.noSuchClaim, "the activity is not claimed by this device, or the claim has lapsed")
        }
        return Claim(activity: activity, device: device, number: 0, document: activity.document)
    }

    /// Notes what a claim's holder was told of the document: that, and nothing else, is what it is then sent.
    func setDocument(_ document: DocumentSource, of id: ClaimID) {
        claims.setDocument(document, of: id)
    }

    /// The holder has taken the activity over, and may go on using its claim.
    func setContinued(_ id: ClaimID, by device: PeerName) throws(HandoffError) {
        let claim = try claim(id, of: device)
        claims.setContinued(id)
        report(.continued(device.taken(bytes: claim.document?.size ?? 0)), of: claim.activity.id)
    }

    /// What a claim was made for has failed: its application is told once, however many things fail.
    func fail(_ id: ClaimID, by device: PeerName, with error: HandoffError) {
        guard let claim = claims.setFailed(id, by: device) else { return }
        report(.failed(error.concerning(device).failure), of: claim.activity.id)
    }

    /// Lets a claim go. An application whose activity was not taken over after all is told so.
    func release(_ id: ClaimID, by device: PeerName) {
        fail(id, by: device, with: HandoffError(.cancelled, "it was let go without being continued"))
        claims.release(id, by: device)
    }

    /// Whether a device holds a claim.
    func holdsClaim(_ device: String) -> Bool { claims.isHolder(device, now: .now) }

    /// The last connection to a device ended.
    func connectionsEnded(of device: String) {
        claims.connectionsEnded(of: device, now: .now)
    }

    /// The application behind a claimed activity, for a continuation stream.
    func application(of activity: OfferedActivity) throws(HandoffError) -> Connection {
        guard activity.supportsContinuationStreams else {
            throw HandoffError(.streamsUnsupported, "the activity “\(activity.title)” has no continuation streams")
        }
        guard let offer = offers.first(where: { $0.activity.id == activity.id }) else {
            throw HandoffError(.applicationGone, "the application that offered “\(activity.title)” has gone")
        }
        return offer.application
    }

    private func offer(_ id: ActivityID) throws(HandoffError) -> Offer {
        guard let offer = offers.first(where: { $0.activity.id == id }) else {
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

    /// What the application says that the state is now.
    private func savedPayload(of offer: Offer, for device: PeerName) async throws(HandoffError) -> WireActivityPayload {
        var payload = offer.activity.payload
        guard offer.activity.needsSave else { return payload }
        let application = offer.application
        let activityID = Data(offer.activity.id.bytes)
        let saved = try await withDeadline(Self.saveDeadline, "the application that offers it did not save") {
            let (response, stream) = try await application.request(
                .willSave(
                    .with {
                        $0.activityID = activityID
                        $0.device = device.name
                    }))
            await stream.finish()
            return response
        }
        guard case .willSave(let state) = saved else {
            throw HandoffError(.internal, "the application that offers it gave an answer that cannot be read")
        }
        try OfferedActivity.requireFitting(state.userInfo)
        guard state.webPageURL.isEmpty || OfferedActivity.isWebPage(state.webPageURL) else {
            throw HandoffError(.invalidRequest, "the application that offers it gave a URL that is no web page's")
        }
        payload.userInfo = state.userInfo
        if !state.webPageURL.isEmpty { payload.webPageURL = state.webPageURL }
        return payload
    }
}

extension HandoffError {
    /// The same, told of a device.
    fileprivate func concerning(_ device: PeerName) -> HandoffError {
        HandoffError(code, message, device: device.name)
    }
}

/// A device as people and logs know it.
struct PeerName: Sendable, Hashable {
    /// The verified identifier.
    let id: String
    /// The name that it advertises, or the beginning of its identifier.
    let name: String

    func taken(bytes: UInt64) -> WireOfferEvent.Taken {
        .with {
            $0.device = name
            $0.deviceID = id
            $0.bytes = bytes
        }
    }
}
