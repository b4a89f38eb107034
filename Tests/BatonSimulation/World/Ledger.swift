// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonProtocol

/// What must always hold.
package enum Invariant: String, Sendable {
    /// An exclusive activity has one holder at most, and is delivered once at most.
    case exclusive
    /// A handoff ends in exactly one of *continued* and *failed*, on each side.
    case outcome
    /// No payload leaves before an accept.
    case payload
    /// A revoked device gets nothing from a device that knows.
    case revoked
    /// Every table stays within its limit.
    case bounds
    /// A withdrawn activity disappears everywhere within its bound.
    case withdrawn
    /// Once the network is quiet for a while, each device lists exactly what the devices that it reaches offer.
    case listing
    /// Once the network is quiet for a while, all devices have the same revocation lists.
    case membership
    /// Nothing waits for ever.
    case waiting
}

package struct Violation: Sendable, CustomStringConvertible {
    package let invariant: Invariant
    package let text: String

    package var description: String { "\(invariant): \(text)" }
}

/// An account of what the devices did. It is kept apart from them, and compared with the invariants after every step.
struct Ledger {
    /// The application of an origin knows this of a claim.
    private enum Known {
        case open
        case failed
        case continued
    }

    private enum Stage {
        case accepted
        case finished
    }

    private struct Told {
        let device: Int
        let activity: ActivityID
        var known: Known
    }

    private struct Begun {
        let device: Int
        let activity: ActivityID
    }

    /// The life of an advertisement, and what a slow network and two clocks add.
    private static let withdrawalBound = Duration.seconds(Int(Advertisement.maximumTimeToLive) + 15)
    /// How long a device may know a change and others not.
    private static let changeBound = Duration.seconds(15)

    /// How long a device of a quiet network may be so crowded that another one cannot ask it.
    private static let silenceBound = Duration.seconds(100)

    private(set) var violation: Violation?
    /// When an activity was offered first.
    private(set) var offered: [ActivityID: Instant] = [:]
    /// Offers whose applications still hear of them.
    private var offers: [OfferID: Begun] = [:]
    private var claims: [ClaimID: Told] = [:]
    private var committed: Set<ClaimID> = []
    private var delivered: Set<ActivityID> = []
    private var handoffs: [HandoffID: (device: Int, stage: Stage)] = [:]
    /// The activities that each device has accepted.
    private var accepted: [String: Set<ActivityID>] = [:]
    /// The revoked devices that each device knows of.
    private var known: [Int: Set<String>] = [:]
    /// The activities that each device offers, and when they changed.
    private var shown: [Int: (items: Set<ActivityID>, since: Instant)] = [:]
    /// When activities went that are offered no more.
    private var gone: [ActivityID: Instant] = [:]

    mutating func breach(_ invariant: Invariant, _ text: @autoclosure () -> String) {
        if violation == nil { violation = Violation(invariant: invariant, text: text()) }
    }

    // MARK: The origin

    mutating func begin(offer: OfferID, _ item: Item, at time: Instant) {
        offers[offer] = Begun(device: item.device, activity: item.id)
        if offered[item.id] == nil { offered[item.id] = time }
    }

    mutating func refuse(offer: OfferID) { offers[offer] = nil }

    mutating func tell(
        _ told: BatonCore.Told<Contents>, of offer: OfferID, _ claim: Claim<Contents>?, on device: Device
    ) {
        if offers[offer] == nil {
            breach(.outcome, "the application of \(device.name) hears “\(told.words)” after the end of its offer")
        }
        guard let claim else { return }
        let name = "claim \(claim.number) of \(claim.device.name) at \(device.name)"
        switch (told, claims[claim.id]?.known) {
        case (.taken, nil):
            claims[claim.id] = Told(device: device.index, activity: claim.kept.item.id, known: .open)
        case (.taken, _?): breach(.outcome, "\(name) is taken twice")
        case (_, .continued?): breach(.outcome, "\(name) was continued, and now it is “\(told.words)”")
        case (.continued, _): claims[claim.id]?.known = .continued
        case (.failed, .failed?): breach(.outcome, "\(name) has failed twice")
        case (.failed, .open?): claims[claim.id]?.known = .failed
        case (.progress, .failed?), (.interrupted, .failed?):
            breach(.outcome, "\(name) has failed, and now it is “\(told.words)”")
        // A device may fail before it has the activity.
        case (.failed, nil), (.progress, _), (.interrupted, _), (.withdrawn, _): break
        }
    }

    /// A claim that has failed goes on, and its application hears of it if it still hears of its offer.
    mutating func goOn(_ claim: Claim<Contents>) {
        let isHeard = offers.values.contains { $0.activity == claim.kept.item.id }
        if isHeard, claims[claim.id]?.known == .failed { claims[claim.id]?.known = .open }
    }

    mutating func endEvents(of offer: OfferID, on device: Device) {
        guard let ended = offers.removeValue(forKey: offer) else {
            return breach(.outcome, "the events of an offer of \(device.name) end twice")
        }
        let isStopping = device.own.stopped != nil
        let isHeard = offers.values.contains { $0.activity == ended.activity }
        let isOpen = claims.values.contains { $0.activity == ended.activity && $0.known == .open }
        if isOpen, !isStopping, !isHeard {
            breach(.outcome, "the application of \(device.name) never hears what became of a claim")
        }
    }

    mutating func commit(_ claim: ClaimID) { committed.insert(claim) }

    mutating func give(_ item: Item, to peer: PeerName) {
        if accepted[peer.id]?.contains(item.id) != true {
            breach(.payload, "\(peer.name) gets “\(item.name)”, which it has not accepted")
        }
    }

    mutating func serve(_ peer: PeerName, by device: Device) {
        if known[device.index]?.contains(peer.id) == true {
            breach(.revoked, "\(device.name) serves \(peer.name), which it knows to be revoked")
        }
    }

    mutating func learn(_ revoked: Set<DeviceID>, device: Device) {
        known[device.index] = Set(revoked.map(\.description))
    }

    // MARK: Listings

    /// A device offers other activities than before.
    mutating func show(_ items: [ActivityID], by device: Device) {
        let time = device.world.time
        for item in shown[device.index]?.items.subtracting(items) ?? [] { gone[item] = time }
        for item in items { gone[item] = nil }
        shown[device.index] = (Set(items), time)
    }

    /// Checks an activity that a device lists.
    mutating func check(_ item: Item, of origin: DeviceID, on device: Device) {
        if let time = gone[item.id], device.world.time - max(time, device.lastReading) > Self.withdrawalBound {
            breach(.withdrawn, "\(device.name) lists “\(item.name)”, which has gone \(device.world.time - time) ago")
        }
        if known[device.index]?.contains(origin.description) == true {
            breach(.revoked, "\(device.name) lists “\(item.name)” of a device that it knows to be revoked")
        }
    }

    /// Who watches is told differences alone, and knows by them what is listed.
    mutating func checkTold(of device: Device) {
        if Set(device.peers.known.values) != Set(device.lines) {
            breach(.listing, "who watches \(device.name) was told of something else than it lists")
        }
    }

    /// Compares two devices that have had a quiet network for long enough.
    mutating func compare(_ device: Device, _ other: Device) {
        if device.lists.revision != other.lists.revision {
            breach(.membership, "\(device.name) and \(other.name) have different revocation lists")
        }
        if let since = shown[other.index]?.since, device.world.time - since < Self.changeBound { return }
        let answer = device.peers.answers[other.id]
        if let since = answer?.silentSince, device.world.time - since < Self.silenceBound { return }
        let listed = answer?.items ?? []
        let offered = other.own.visible.map(\.activity)
        if Set(listed.map { [$0.name, "\($0.version)"] }) != Set(offered.map { [$0.name, "\($0.version)"] }) {
            let (lines, offers) = (listed.map(\.name), offered.map(\.name))
            breach(.listing, "\(device.name) lists \(lines) of \(other.name), which offers \(offers)")
        }
    }

    // MARK: The continuing device

    mutating func accept(_ id: HandoffID, _ item: Item, on device: Device) {
        handoffs[id] = (device.index, .accepted)
        accepted[device.peer.id, default: []].insert(item.id)
    }

    mutating func deliver(_ item: Item, _ claim: ClaimID?, to device: Device) {
        guard item.isExclusive else { return }
        if claim.map({ committed.contains($0) }) != true {
            breach(.exclusive, "“\(item.name)” is delivered on \(device.name), and its claim was not committed")
        }
        if !delivered.insert(item.id).inserted {
            breach(.exclusive, "“\(item.name)” is delivered on \(device.name), and was delivered before")
        }
    }

    mutating func finish(_ id: HandoffID, isContinued: Bool, on device: Device) {
        guard let handoff = handoffs[id], handoff.stage == .accepted else {
            let outcome = isContinued ? "continued" : "failed"
            return breach(.outcome, "a handoff of \(device.name) that has ended is \(outcome)")
        }
        handoffs[id] = (device.index, .finished)
    }

    mutating func end(_ id: HandoffID, on device: Device) {
        if handoffs.removeValue(forKey: id)?.stage != .finished {
            breach(.outcome, "a handoff of \(device.name) ends, and neither was it continued nor has it failed")
        }
    }

    // MARK: Devices

    /// The node of a device has ended, and nobody hears of it what was under way.
    mutating func forget(_ device: Device) {
        claims = claims.filter { $0.value.device != device.index }
        offers = offers.filter { $0.value.device != device.index }
        handoffs = handoffs.filter { $0.value.device != device.index }
        show([], by: device)
    }

    mutating func check(_ device: Device) {
        guard device.phase == .running else { return }
        let claims = device.own.claims
        if claims.count > ClaimBounds.claims { breach(.bounds, "\(device.name) has \(claims.count) claims") }
        if device.own.offered.count > Device.offerBound {
            breach(.bounds, "\(device.name) has \(device.own.offered.count) offers")
        }
        for (index, claim) in claims.enumerated() where claim.kept.item.isExclusive {
            let other = claims[..<index].first {
                $0.kept.item.id == claim.kept.item.id && $0.device.id != claim.device.id
            }
            if let other {
                let (first, second) = (other.device.name, claim.device.name)
                breach(.exclusive, "\(first) and \(second) hold “\(claim.kept.item.name)” of \(device.name)")
            }
        }
        let (links, limits) = (device.links, device.world.plan.links)
        if links.count > limits.connections { breach(.bounds, "\(device.name) has \(links.count) connections") }
        let known = device.peers.table.peers.count
        if known > PeerTable.bound { breach(.bounds, "\(device.name) knows \(known) devices") }
        let deadline = [
            device.own.nextDeadline, device.handoffs.nextDeadline, device.membership.nextDeadline,
            device.peers.table.nextExpiry,
        ].compactMap(\.self).min()
        if let deadline, max(deadline, device.instant(at: device.awakeSince)) + .seconds(1) < device.now.instant {
            breach(.waiting, "\(device.name) has missed its deadline")
        }
    }

    /// After a long time without users and faults.
    mutating func checkRest(of device: Device) {
        if !device.handoffs.isIdle || !device.parties.isEmpty {
            breach(.waiting, "\(device.parties.count) handoffs of \(device.name) have not ended")
        }
        if !device.service.waiting.isEmpty {
            breach(.waiting, "\(device.service.waiting.count) devices wait for an activity of \(device.name)")
        }
        if device.links.lines.contains(where: { !$0.isOpen(for: device) }) {
            breach(.waiting, "a connection of \(device.name) has ended and keeps its place")
        }
        let idleBound = device.world.plan.links.idleLife * 2
        if device.wires.contains(where: { device.world.time - $0.lastUse > idleBound }) {
            breach(.waiting, "a connection of \(device.name) is open, and nobody uses it")
        }
        if !device.membership.isStored { breach(.waiting, "\(device.name) has not stored its revocation lists") }
        if let claim = device.own.claims.first {
            breach(.waiting, "a claim of \(claim.device.name) is left on \(device.name)")
        }
        if handoffs.values.contains(where: { $0.device == device.index }) {
            breach(.waiting, "a handoff of \(device.name) has no end")
        }
        if claims.values.contains(where: { $0.device == device.index && $0.known == .open }) {
            breach(.waiting, "an application of \(device.name) never hears what became of a claim")
        }
    }
}
