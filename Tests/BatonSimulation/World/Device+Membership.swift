// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonProtocol

/// The revocation lists and the keys that a device has. It stands for `AccountState`, without signatures.
struct Lists {
    struct List: Hashable {
        let number: UInt32
        let revoked: Set<DeviceID>
        let generation: GenerationID

        init(number: UInt32, revoked: Set<DeviceID>) {
            (self.number, self.revoked) = (number, revoked)
            let digest = revoked.map(\.number).sorted().reduce(UInt64(number)) { Chance.mixed($0, UInt64($1)) }
            generation = GenerationID(number: number, list: ListDigest(rawValue: digest))
        }
    }

    /// The highest number that a list may have.
    private static let bound = 63

    /// The highest number first.
    private var lists: [List] = []
    private(set) var keys: Set<GenerationID> = [GenerationID(number: 0, list: nil)]

    var number: UInt32 { lists.first?.number ?? 0 }
    var isApart: Bool { lists.count > 1 }
    var revoked: Set<DeviceID> { lists.reduce(into: []) { $0.formUnion($1.revoked) } }
    /// The keys that the device seals with.
    var generation: GenerationID { lists.first?.generation ?? GenerationID(number: 0, list: nil) }

    var revision: UInt64 {
        let hash = lists.compactMap(\.generation.list?.rawValue).reduce(0) { Chance.mixed($0, $1) }
        return lists.isEmpty ? 0 : UInt64(number) << 32 | hash >> 32
    }

    func isRevoked(_ device: DeviceID) -> Bool { lists.contains { $0.revoked.contains(device) } }

    /// - Returns: whether anything was new.
    mutating func merge(_ others: Lists) -> Bool {
        let all = Set(lists + others.lists).sorted { $0.generation.precedes($1.generation) }
        let top = all.first?.number
        let kept = all.filter { list in
            let higher = all.filter { $0.number > list.number }.flatMap(\.revoked)
            return list.number == top || !list.revoked.isSubset(of: higher)
        }
        guard kept != lists else { return false }
        lists = kept
        for list in kept where list.number == top { keys.insert(list.generation) }
        return true
    }

    /// Signs another list.
    mutating func revoke(_ device: DeviceID) {
        guard number < Self.bound else { return }
        var next = Lists()
        next.lists = [List(number: number + 1, revoked: revoked.union([device]))]
        _ = merge(next)
    }
}

/// The driver of `Membership`, as the node's `StateExchange`.
extension Device {
    private static let listsDeadline = Duration.seconds(5)
    private static let catchUpDeadline = Duration.seconds(5)
    static let storingPause = Duration.seconds(15)

    @discardableResult
    func decideMembership<Value>(_ body: (inout Membership) -> Value) -> Value {
        membership.advance(to: now.instant)
        let value = body(&membership)
        for effect in membership.takeEffects() where burn() { carryOut(effect) }
        schedule(membership.nextDeadline, \.membershipTimer) { [unowned self] in decideMembership { _ in } }
        return value
    }

    private func carryOut(_ effect: Membership.Effect) {
        switch effect {
        case .tell(let text, let isNews):
            // Not within the decision that orders it.
            after(.zero) { [unowned self] in
                tell(text, isWanted: isNews) { [unowned self] isPresent in
                    decideMembership { $0.told(text, isPresent: isPresent) }
                }
            }
        case .said(let text, let revision, let isCurrent):
            if let device = DeviceID(text) { peers.table.note(revision, of: device) }
            guard isCurrent else { return }
            let woken = service.behind.filter { $0.wire.peer(of: self).id == text }
            service.behind.removeAll { $0.wire.peer(of: self).id == text }
            for request in woken { after(.zero, request.serve) }
        case .store: store { _ in }
        }
    }

    /// Connects to a device that may lack lists, and asks it.
    private func tell(_ text: String, isWanted: Bool, then: @escaping (_ isPresent: Bool) -> Void) {
        let isConnected = wires.contains { $0.peer(of: self).id == text }
        guard let device = DeviceID(text), !lists.isRevoked(device), isConnected || known(device)?.isPresent == true
        else { return then(false) }
        connect(to: device, isWanted: isWanted) { [unowned self] result in
            guard case .success(let wire) = result, membership.lacksWord(of: text) else { return then(true) }
            askLists(wire) { then(true) }
        }
    }

    /// A connection has been made: asks if the other side may have more.
    func meet(_ wire: Wire, having revision: UInt64, then: @escaping () -> Void) {
        guard decideMembership({ $0.meet(wire.peer(of: self).id, having: revision) }) else { return then() }
        askLists(wire, then: then)
    }

    private func askLists(_ wire: Wire, then: @escaping () -> Void) {
        let device = wire.peer(of: self).id
        func end(isAnswered: Bool) {
            decideMembership { $0.asked(device, isAnswered: isAnswered) }
            then()
        }
        question(wire) { [unowned self] theirs in
            guard let theirs else { return end(isAnswered: false) }
            decideMembership { $0.say(theirs.revision, of: device) }
            var all = lists
            _ = all.merge(theirs)
            adopt(all) { [unowned self] isNews in
                guard isNews else { return end(isAnswered: true) }
                question(wire) { _ in end(isAnswered: true) }
            }
        }
    }

    private func question(_ wire: Wire, then: @escaping (Lists?) -> Void) {
        ask(.lists(revision: lists.revision), on: wire, within: Self.listsDeadline) { answer in
            if case .success(.lists(let lists)) = answer { then(lists) } else { then(nil) }
        }
    }

    /// Serves a request when its device has the lists of this one.
    func whenCurrent(_ number: Int, on wire: Wire, _ serve: @escaping () -> Void) {
        guard decideMembership({ $0.isToWait(wire.peer(of: self).id) }) else { return serve() }
        service.behind.append((wire, number, serve))
        after(Self.catchUpDeadline) { [unowned self] in
            let before = service.behind.count
            service.behind.removeAll { $0.wire === wire && $0.number == number }
            if service.behind.count < before { answer(.failure(.notAdmitted), number, on: wire) }
        }
    }

    /// The user revokes a device. The command looks up which lists there are, by the account key.
    func revoke(_ device: DeviceID, knowing others: [Device]) {
        var next = lists
        for other in others { _ = next.merge(other.lists) }
        next.revoke(device)
        adopt(next) { _ in }
    }

    /// Whether a device with the newest lists cannot bring this one up to them. Their lists may have been signed apart.
    /// Or that device joined later, and lacks the keys under which this one announces itself.
    func isApart(from newest: Device) -> Bool {
        var all = newest.lists
        return all.merge(lists) || !newest.lists.keys.contains(lists.generation)
    }

    /// Takes lists over and obeys them from then on.
    ///
    /// - Parameter then: takes whether anything was new and is stored.
    private func adopt(_ new: Lists, then: @escaping (Bool) -> Void) {
        guard new.revision != lists.revision else {
            if membership.isStored { return then(false) }
            return store(then)
        }
        lists = new
        decideMembership { $0.adopted(new.revision) }
        note("has list \(new.number), which revokes \(new.revoked.map(\.number).sorted())")
        world.ledger.learn(new.revoked, device: self)
        for wire in wires where new.isRevoked(wire.device(of: self)) { close(wire) }
        let met = Set(peers.table.peers.values.filter(\.isPresent).map(\.device) + wires.map { $0.device(of: self) })
        for device in new.revoked { peers.outdated.remove(device) }
        decidePeers { table in
            for device in new.revoked { table.remove(device: device) }
            table.distrustUnproved(before: new.generation.number)
        }
        let again = peers.rejected
        peers.rejected = []
        hearAgain(again)
        rotate()
        for device in met.sorted(by: { $0.number < $1.number }) {
            decideMembership { $0.inform(device.description, isNews: true) }
        }
        store(then)
    }

    private func store(_ then: @escaping (Bool) -> Void) {
        if chance.happens(world.plan.noise.failures) { diskFull = world.time + chance.seconds(1, 60) }
        after(chance.seconds(0.001, 0.05)) { [unowned self] in
            let fails = world.time < diskFull && !world.isQuiet
            if !fails { disk.lists = lists }
            decideMembership { $0.stored(fails ? nil : lists.revision) }
            then(!fails)
        }
    }
}
