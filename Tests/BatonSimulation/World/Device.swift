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
    /// Rises each time that the user joins the account anew.
    private var joinings = 0
    private(set) var id: DeviceID
    private(set) var peer: PeerName
    var chance: Chance

    /// Seconds by which the user has set the clock.
    var offset = 0.0
    private let rate: Double

    // A node has these in memory.
    private(set) var own: OwnActivities<Contents>
    private(set) var handoffs: Handoffs<Contents>
    var membership = Membership(revision: 0, storingPause: storingPause)
    var peers = Peers()
    var lists = Lists()
    /// What the device announces.
    var shown: Announcement?
    var (epoch, sequence, period): (UInt64, UInt64, Int) = (0, 0, 0)
    var parties: [HandoffID: Party] = [:]
    var links: Links<Wire, Int>
    /// All connections, with those that are not proved yet.
    var wires: [Wire] = []
    private var dials: [DeviceID: [(Result<Wire, Contents.Failure>) -> Void]] = [:]
    private var asks: [Int: Ask] = [:]
    var service = Service()
    private var lastNumber = 0
    private var ownTimer, handoffTimer: Instant?
    var peerTimer, membershipTimer: Instant?
    /// When it woke or started last, in the time of the world.
    private(set) var awakeSince = Instant(nanoseconds: 0)
    /// When its node last read all that the responder remembers, in the time of the world: what is old counts anew.
    var lastReading = Instant(nanoseconds: 0)
    /// Events that wait until it wakes.
    var deferred: [SimulatedWorld.Event] = []
    /// The node is killed after so many effects.
    private var fuse: (effects: Int, away: Duration)?

    // These stay when the node ends.
    var windows: [Int: Window] = [:]
    var disk: (lists: Lists, peers: [Peer], sightings: Sightings) = (Lists(), [], Sightings())
    /// Until when nothing can be stored.
    var diskFull = Instant(nanoseconds: 0)
    /// The records that the responder of the machine remembers.
    var cache: [String: HeardAdvertisement] = [:]
    var isHandoffOn = true
    /// Whether it joins the account anew when it starts.
    var isJoining = false

    init(_ index: Int, in world: SimulatedWorld) {
        (self.index, self.world) = (index, world)
        chance = Chance(world.plan.seed, 3, UInt64(index))
        rate = 1 + (chance.fraction() - 0.5) * world.plan.noise.drift
        own = OwnActivities(bound: Self.offerBound, lease: ClaimBounds.lease)
        handoffs = Handoffs()
        links = Links(world.plan.links)
        id = DeviceID(machine: index, joining: 0)
        peer = PeerName(id: id.description, name: letters(index))
    }

    var name: String { letters(index) }

    /// The device's clocks: they drift, and the user sets one of them.
    var now: Moment {
        // No machine lets the clock be set to a time before 1970.
        let unixTime = max(0, 1.7e9 + Double(world.time.nanoseconds) * rate / 1e9 + offset)
        return Moment(instant: instant(at: world.time), unixTime: unixTime)
    }

    /// The device's clock at a time of the world.
    func instant(at time: Instant) -> Instant {
        Instant(nanoseconds: 1_000_000_000 + UInt64(Double(time.nanoseconds) * rate))
    }

    /// Whether it has run for so long without sleep.
    func isAwake(for time: Duration) -> Bool { phase == .running && world.time - awakeSince >= time }

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
        if isJoining {
            joinings += 1
            id = DeviceID(machine: index, joining: joinings)
            peer = PeerName(id: id.description, name: name)
            (disk, isJoining) = ((Lists(), [], Sightings()), false)
        }
        (parties, wires, dials, asks, service, fuse) = ([:], [], [:], [:], Service(), nil)
        links = Links(world.plan.links)
        (ownTimer, handoffTimer, peerTimer, membershipTimer) = (nil, nil, nil, nil)
        (epoch, sequence, period, shown, awakeSince) = (epoch + 1, 0, period + 1, nil, world.time)
        (peers, lists) = (Peers(), disk.lists)
        peers.table = PeerTable(known: disk.peers.filter { !lists.isRevoked($0.device) })
        peers.sightings = disk.sightings
        membership = Membership(revision: lists.revision, storingPause: Self.storingPause)
        world.ledger.learn(lists.revoked, device: self)
        if incarnation > 1 { note("the node starts") }
        decide { $0.setSwitch(HandoffSwitch(isOn: isHandoffOn)) }
        hearAgain(cache.keys)
        announce()
        world.query(self)
        saveAgain()
        reconnectApplications()
    }

    /// Saves what was seen of other devices, now and then.
    private func saveAgain() {
        disk.sightings = peers.sightings.stored
        after(.seconds(30)) { [unowned self] in saveAgain() }
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
        (fuse, lists) = (nil, disk.lists)
        deferred = []
        world.ledger.forget(self)
        for wire in wires {
            wire.isOpen[wire.side(of: self)] = false
            world.cut(wire)
        }
        disconnectApplications()
        incarnation += 1
        world.after(world.isQuiet ? .seconds(1) : away) { [unowned self] in start() }
    }

    /// The user stops the node.
    func stop(for away: Duration) {
        decideHandoffs {
            $0.stop(because: .isStopping)
            $0.cancelAll(because: .isStopping)
        }
        decide { $0.stop() }
        withdraw()
        disk.sightings = peers.sightings.stored
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
        awakeSince = world.time
        note("wakes")
        world.resume(deferred)
        deferred = []
        decidePeers { _ in }
        announce()
        world.query(self)
    }

    /// The user leaves the account, and joins it anew.
    ///
    /// - Parameter isKilled: whether the node ends at once, and tells nobody of its lists any more.
    func join(isKilled: Bool = false) {
        isJoining = true
        if isKilled, phase != .down { end(for: .seconds(1)) } else if phase == .running { stop(for: .seconds(1)) }
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
    func burn() -> Bool {
        guard phase == .running else { return false }
        guard let (effects, away) = fuse else { return true }
        fuse = (effects - 1, away)
        if effects <= 0 { die(for: away) }
        return effects > 0
    }

    func schedule(
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
        case .changed:
            world.ledger.show(own.visible.map(\.activity.id), by: self)
            if !own.isAwaitingReplacement { announce() }
        case .tell(let offer, let told, let claim): hear(told, of: offer, claim)
        case .endEvents(let offer):
            note("offer \(offer.number & 0xffff_ffff): no more events")
            world.ledger.endEvents(of: offer, on: self)
        case .askToSave(let offer, let device): askToSave(offer, for: device)
        case .answer(let claim, let answer): give(claim, answer)
        case .graceEnded:
            announce()
            answerLists()
        }
    }

    // MARK: Connections

    /// A request whose answer has not come.
    struct Ask {
        let wire: Wire
        let then: (Result<Answer, Contents.Failure>) -> Void
    }

    /// Finds an open connection to a device, if possible a certain one, or makes one.
    ///
    /// - Parameter isWanted: whether a user has named the device.
    func connect(
        to other: DeviceID, over held: Wire? = nil, isWanted: Bool,
        then: @escaping (Result<Wire, Contents.Failure>) -> Void
    ) {
        let text = other.description
        let open = ([held].compactMap(\.self) + links.lines(to: text)).first {
            $0.isOpen(for: self) && $0.device(of: self) == other
        }
        if let open { return then(.success(open)) }
        let peer = known(other)
        guard
            let isBrief = try? links.dial(
                text, isProved: peer?.isProved == true, isWanted: isWanted, at: [other.machine])
        else {
            note("may not dial \(letters(other.machine)) now")
            return after(.zero) { then(.failure(.noPlace)) }
        }
        dials[other, default: []].append(then)
        guard dials[other]?.count == 1 else { return }
        func end(_ result: Result<Wire, Contents.Failure>) {
            links.endDial(of: text)
            if case .failure(let failure) = result { note("does not reach \(letters(other.machine)): \(failure)") }
            for then in dials.removeValue(forKey: other) ?? [] { then(result) }
        }
        guard let record = peer?.record, lists.keys.contains(record.generation), !lists.isRevoked(other) else {
            return after(.zero) { end(.failure(.unreachable)) }
        }
        let patience = Duration.seconds(isBrief ? 3 : 5)
        world.dial(self, record.advertisement, patience: patience) { [unowned self] first in
            // A device that is crowded lets one in a moment later.
            guard case .failure(.connectionLost) = first else { return enter(first) }
            world.dial(self, record.advertisement, patience: patience, then: enter)
        }
        func enter(_ result: Result<Wire, Contents.Failure>) {
            guard case .success(let wire) = result else { return end(result) }
            // It gets what it lacks before it asks for anything: the other side serves nothing else until then.
            greet(wire) { end(result) }
        }
    }

    /// Both ends of a connection have proved who they are.
    ///
    /// - Returns: whether the connection has a place.
    func adopt(_ wire: Wire, isDialled: Bool) -> Bool {
        let peer = wire.peer(of: self).id
        do throws(LinkRefusal) {
            let displaced = try links.add(wire, of: peer, isDialled: isDialled)
            if let displaced { close(displaced) }
        } catch {
            close(wire)
            return false
        }
        closeWhenIdle(wire)
        return true
    }

    /// Closes a connection when nothing has been asked on it for a while.
    private func closeWhenIdle(_ wire: Wire) {
        after(world.plan.links.idleLife / 4) { [unowned self] in
            guard wire.isOpen(for: self) else { return }
            let hasClaim = decide { $0.holdsClaim(wire.peer(of: self).id) }
            let isIdle = !hasClaim && !asks.values.contains { $0.wire === wire } && !service.isBusy(wire)
            if links.note(wire, isIdle: isIdle, now: now.instant) { close(wire) } else { closeWhenIdle(wire) }
        }
    }

    /// A connection is there, on which each side says which lists it has.
    func greet(_ wire: Wire, then: @escaping () -> Void = {}) {
        prove(wire.device(of: self))
        meet(wire, having: wire.revision(of: self), then: then)
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
        links.endHandshake(on: wire)
        links.remove(wire)
        if !world.isQuiet { note("loses its connection with \(wire.peer(of: self).name)") }
        for number in asks.keys.sorted() {
            guard let ask = asks[number], ask.wire === wire else { continue }
            asks[number] = nil
            ask.then(.failure(.connectionLost))
        }
        endService(on: wire)
    }

    func close(_ wire: Wire) {
        world.close(wire, by: self)
        lose(wire)
    }
}
