// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonProtocol

/// One machine: the driver of its cores, with its clock and its disk. Its applications are in `Device+Applications`.
final class Device {
    enum Phase: Equatable {
        case running
        case asleep
        /// The node does not run.
        case down
    }

    /// Offers of one device; one more is refused.
    static let offerBound = 8

    unowned let world: SimulatedWorld
    let index: Int
    private(set) var phase = Phase.down
    /// Rises with each start of the node.
    private(set) var incarnation = 0
    /// Rises if the user joins again, after the device was revoked.
    private var identity = 0
    var chance: Chance

    /// Seconds by which the user has set the clock.
    var offset = 0.0
    private let rate: Double

    // A node has these in memory.
    private(set) var own: OwnActivities<Contents>
    private(set) var handoffs: Handoffs<Contents>
    var membership = Membership()
    var directory = Directory()
    var parties: [HandoffID: Party] = [:]
    var wires: [Wire] = []
    private var dials: [Int: [(Result<Wire, Contents.Failure>) -> Void]] = [:]
    private var asks: [Int: Ask] = [:]
    var service = Service()
    private var lastNumber = 0
    private var ownTimer: Instant?
    /// When it woke or started last, by its own clock.
    private(set) var awakeSince = Instant(nanoseconds: 0)
    private var handoffTimer: Instant?
    /// Events that wait until it wakes.
    var deferred: [SimulatedWorld.Event] = []
    /// The node is killed after so many effects.
    private var fuse: (effects: Int, away: Duration)?

    // These stay when the node ends.
    var windows: [Int: Window] = [:]
    var disk = Membership()
    var isHandoffOn = true

    init(_ index: Int, in world: SimulatedWorld) {
        (self.index, self.world) = (index, world)
        chance = Chance(world.plan.seed, 3, UInt64(index))
        rate = 1 + (chance.fraction() - 0.5) * world.plan.noise.drift
        own = OwnActivities(bound: Self.offerBound, lease: ClaimBounds.lease)
        handoffs = Handoffs()
    }

    var name: String { letters(index) }
    var peer: PeerName { PeerName(id: "\(name)#\(identity)", name: name) }

    /// The device's clocks: they drift, and the user sets one of them.
    var now: Moment {
        let elapsed = Double(world.time.nanoseconds) * rate
        return Moment(
            instant: Instant(nanoseconds: 1_000_000_000 + UInt64(elapsed)), unixTime: 1.7e9 + elapsed / 1e9 + offset)
    }

    func note(_ text: @autoclosure () -> String) { world.note(index, text()) }

    func after(_ delay: Duration, _ body: @escaping () -> Void) { world.after(delay, of: self, body) }

    func nextNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    // MARK: Life

    /// Starts the node with what is on disk.
    func start() {
        guard phase == .down else { return }
        phase = .running
        incarnation += 1
        own = OwnActivities(bound: Self.offerBound, lease: ClaimBounds.lease)
        handoffs = Handoffs()
        (membership, directory, parties, wires, dials, asks) = (disk, Directory(), [:], [], [:], [:])
        (service, ownTimer, handoffTimer, fuse) = (Service(), nil, nil, nil)
        if incarnation > 1 { note("the node starts") }
        // A revoked device is no more use to its user, who makes it join again.
        if membership.isRevoked(peer.id) { identity += 1 }
        directory.version = world.time.nanoseconds
        decide { $0.setSwitch(HandoffSwitch(isOn: isHandoffOn)) }
        world.announce(self)
        after(chance.seconds(50, 60)) { [unowned self] in announceAgain() }
        reconnectApplications()
    }

    /// Keeps the device's records alive, and stands for the queries of a responder.
    private func announceAgain() {
        world.announce(self)
        after(chance.seconds(50, 60)) { [unowned self] in announceAgain() }
    }

    func crash(after effects: Int, for away: Duration) {
        guard phase == .running else { return }
        fuse = (effects, away)
        // It is killed in any case.
        after(.seconds(2)) { [unowned self] in if fuse != nil { die(for: away) } }
    }

    private func die(for away: Duration) {
        note("FAULT: the node dies")
        world.statistics.crashes += 1
        end(for: away)
    }

    private func end(for away: Duration) {
        phase = .down
        fuse = nil
        deferred = []
        world.ledger.forget(self)
        for wire in wires {
            wire.isOpen[wire.side(of: self)] = false
            world.cut(wire)
        }
        disconnectApplications()
        incarnation += 1
        world.after(away) { [unowned self] in start() }
    }

    /// The user stops the node.
    func stop(for away: Duration) {
        decideHandoffs {
            $0.stop(because: .isStopping)
            $0.cancelAll(because: .isStopping)
        }
        decide { $0.stop() }
        world.announce(self, isGoodbye: true)
        after(chance.seconds(0.01, 3)) { [unowned self] in end(for: away) }
    }

    func sleep(for time: Duration) {
        guard phase == .running else { return }
        phase = .asleep
        let began = incarnation
        if time > .seconds(Network.patience) {
            world.after(.seconds(Network.patience)) { [unowned self] in
                if phase == .asleep, incarnation == began { for wire in wires { world.cut(wire) } }
            }
        }
        world.after(time) { [unowned self] in if incarnation == began { wake() } }
    }

    func wake() {
        guard phase == .asleep else { return }
        phase = .running
        awakeSince = now.instant
        note("wakes")
        world.resume(deferred)
        deferred = []
        world.announce(self)
    }

    // MARK: The cores

    @discardableResult
    func decide<Value>(_ body: (inout OwnActivities<Contents>) -> Value) -> Value {
        own.advance(to: now)
        let value = body(&own)
        for effect in own.takeEffects() where burn() { carryOut(effect) }
        schedule(own.nextDeadline, \.ownTimer) { [unowned self] in decide { _ in } }
        return value
    }

    @discardableResult
    func decideHandoffs<Value>(_ body: (inout Handoffs<Contents>) -> Value) -> Value {
        handoffs.advance(to: now.instant)
        let value = body(&handoffs)
        for effect in handoffs.takeEffects() where burn() { carryOut(effect) }
        schedule(handoffs.nextDeadline, \.handoffTimer) { [unowned self] in decideHandoffs { _ in } }
        return value
    }

    /// Whether the next effect is carried out. A crash may come before any of them.
    private func burn() -> Bool {
        guard phase == .running else { return false }
        guard let (effects, away) = fuse else { return true }
        fuse = (effects - 1, away)
        if effects <= 0 { die(for: away) }
        return effects > 0
    }

    private func schedule(
        _ deadline: Instant?, _ timer: ReferenceWritableKeyPath<Device, Instant?>, _ body: @escaping () -> Void
    ) {
        guard let deadline, phase == .running else {
            self[keyPath: timer] = nil
            return
        }
        let delay = (deadline - now.instant) / rate
        let time = world.time + max(delay, .nanoseconds(1))
        if let set = self[keyPath: timer], set <= time { return }
        self[keyPath: timer] = time
        after(time - world.time) { [unowned self] in
            if self[keyPath: timer] == time { self[keyPath: timer] = nil }
            body()
        }
    }

    private func carryOut(_ effect: OwnActivities<Contents>.Effect) {
        switch effect {
        case .changed(.offered), .changed(.withdrawn):
            directory.version = max(directory.version + 1, world.time.nanoseconds)
            world.announce(self)
        case .changed(.continued): break
        case .tell(let offer, let told, let claim): hear(told, of: offer, claim)
        case .endEvents(let offer):
            note("offer \(offer.number & 0xffff_ffff): no more events")
            world.ledger.endEvents(of: offer, on: self)
        case .askToSave(let offer, let device): askToSave(offer, for: device)
        case .answer(let claim, let answer): give(claim, answer)
        case .graceEnded: answerLists()
        }
    }

    // MARK: Connections

    /// A request whose answer has not come.
    struct Ask {
        let wire: Wire
        let then: (Result<Answer, Contents.Failure>) -> Void
    }

    /// Finds an open connection to a device, if possible a certain one, or makes one.
    func connect(to other: Int, over held: Wire? = nil, then: @escaping (Result<Wire, Contents.Failure>) -> Void) {
        if let wire = ([held].compactMap(\.self) + wires).first(where: {
            $0.isOpen(for: self) && $0.other(than: self) == other
        }) {
            return then(.success(wire))
        }
        dials[other, default: []].append(then)
        guard dials[other]?.count == 1 else { return }
        world.dial(self, world.devices[other]) { [unowned self] result in
            let waiting = dials.removeValue(forKey: other) ?? []
            if case .success(let wire) = result { greet(wire) }
            for then in waiting { then(result) }
        }
    }

    /// Tells the device at the other end of a new connection which devices are revoked.
    func greet(_ wire: Wire) {
        guard !membership.revoked.isEmpty else { return }
        ask(.membership(membership.revoked), on: wire, within: Self.answerDeadline) { _ in }
    }

    /// Sends a request.
    ///
    /// - Returns: its number.
    @discardableResult
    func ask(
        _ request: Request, on wire: Wire, within deadline: Duration,
        then: @escaping (Result<Answer, Contents.Failure>) -> Void
    ) -> Int {
        let number = nextNumber()
        guard wire.isOpen(for: self) else {
            after(.zero) { then(.failure(.connectionLost)) }
            return number
        }
        asks[number] = Ask(wire: wire, then: then)
        world.send(.request(number, request), on: wire, from: self)
        after(deadline) { [unowned self] in
            guard let ask = asks.removeValue(forKey: number) else { return }
            world.send(.abort(number, .timedOut), on: ask.wire, from: self)
            ask.then(.failure(.timedOut))
        }
        return number
    }

    /// Waits for an answer no longer.
    func giveUp(_ number: Int) {
        guard let ask = asks.removeValue(forKey: number) else { return }
        world.send(.abort(number, .cancelled), on: ask.wire, from: self)
    }

    func receive(_ message: Message, on wire: Wire) {
        switch message {
        case .request(let number, let request): serve(request, number, on: wire)
        case .answer(let number, let answer):
            guard let ask = asks.removeValue(forKey: number) else {
                return world.send(.abort(number, .cancelled), on: wire, from: self)
            }
            world.send(.taken(number), on: wire, from: self)
            ask.then(answer)
        case .taken(let number): service.given.removeAll { $0.wire === wire && $0.number == number }
        case .abort(let number, let failure): abort(number, on: wire, because: failure)
        }
    }

    /// A connection has ended, as this device sees it.
    func lose(_ wire: Wire) {
        guard wire.isOpen(for: self) else { return }
        wire.isOpen[wire.side(of: self)] = false
        wires.removeAll { $0 === wire }
        if !world.isQuiet { note("loses its connection with \(wire.peer(of: self).name)") }
        for number in asks.keys.sorted() {
            guard let ask = asks[number], ask.wire === wire else { continue }
            asks[number] = nil
            ask.then(.failure(.connectionLost))
        }
        endService(on: wire)
    }

    func close(_ wire: Wire) {
        world.cut(wire)
        lose(wire)
    }

    func revoke(_ other: Int) {
        guard other != index else { return }
        learn([world.devices[other].peer.id])
    }

    /// Stores revocations, and obeys them from then on.
    func learn(_ revoked: [String]) {
        guard membership.merge(revoked) else { return }
        let list = membership
        world.ledger.learn(list.revoked, device: self)
        for wire in wires where list.isRevoked(wire.peer(of: self).id) { close(wire) }
        directory.records = directory.records.filter { !list.isRevoked($0.value.identity) }
        after(chance.seconds(0.001, 0.05)) { [unowned self] in
            disk.merge(list.revoked)
            for wire in wires where wire.isOpen(for: self) { greet(wire) }
        }
        if list.isRevoked(peer.id) {
            note("learns that it is revoked, and joins again")
            after(.seconds(1)) { [unowned self] in stop(for: .seconds(1)) }
        }
    }
}

/// The revoked devices that a device knows of.
struct Membership {
    private(set) var revoked: [String] = []

    func isRevoked(_ identity: String) -> Bool { revoked.contains(identity) }

    /// - Returns: whether any of them is new.
    @discardableResult
    mutating func merge(_ others: [String]) -> Bool {
        let new = others.filter { !revoked.contains($0) }
        revoked = (revoked + new).sorted()
        return !new.isEmpty
    }
}
