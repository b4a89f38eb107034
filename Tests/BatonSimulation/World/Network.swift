// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonProtocol

/// A connection between two devices, each of which learns by itself that it has ended.
final class Wire: @unchecked Sendable {  // reason: a run has one thread
    /// The device that dialled comes first.
    let ends: [Int]
    private let identities: [PeerName]
    private let devices: [DeviceID]
    /// The revocation lists that each said it has.
    private let revisions: [UInt64]
    private let number: UInt
    var isOpen = [true, true]
    /// Whether nothing crosses it any more.
    var isCut = false
    /// A stream of bytes keeps the order of messages.
    var lastArrival = [Instant(nanoseconds: 0), Instant(nanoseconds: 0)]
    /// When somebody last sent something, in the time of the world.
    var lastUse: Instant

    init(_ dialler: Device, _ listener: Device) {
        ends = [dialler.index, listener.index]
        identities = [dialler.peer, listener.peer]
        devices = [dialler.id, listener.id]
        revisions = [dialler.lists.revision, listener.lists.revision]
        lastUse = dialler.world.time
        number = UInt(dialler.index) << 32 | UInt(dialler.nextNumber())
    }

    func side(of device: Device) -> Int { ends[0] == device.index ? 0 : 1 }
    func isOpen(for device: Device) -> Bool { isOpen[side(of: device)] }
    /// The device at the other end.
    func device(of device: Device) -> DeviceID { devices[1 - side(of: device)] }
    func peer(of device: Device) -> PeerName { identities[1 - side(of: device)] }
    func revision(of device: Device) -> UInt64 { revisions[1 - side(of: device)] }

    /// The other device as it asks on this connection.
    func asker(of device: Device) -> PeerName {
        let peer = peer(of: device)
        return PeerName(id: peer.id, name: peer.name, connection: number)
    }
}

/// A message on a connection. Its number names the request that it belongs to.
enum Message {
    case request(Int, Request)
    case answer(Int, Result<Answer, Contents.Failure>)
    /// The device that asked has read the answer.
    case taken(Int)
    /// The device that asked does not wait any longer, or has no use for the answer.
    case abort(Int, Contents.Failure)
}

enum Request {
    case list
    case claim(ActivityID)
    case present(ClaimID)
    case piece(ClaimID, Int)
    case commit(ClaimID)
    case release(ClaimID, Contents.Failure?)
    /// Asks for the revocation lists, and says which the device has.
    case lists(revision: UInt64)
}

enum Answer {
    case list([Item])
    case lists(Lists)
    case payload(ClaimID, Item)
    case done
}

/// Which devices reach which, and how fast and how well.
struct Network {
    /// How long a device believes in a connection on which nothing comes: 15 s until it asks, and 10 s for the answer.
    static let patience = 25.0

    private let devices: Int
    private(set) var noise: Plan.Noise
    /// How many faults block a direction at the moment.
    private var blocks: [Int]
    private var chances: [Chance]

    init(_ plan: Plan) {
        devices = plan.devices
        noise = plan.noise
        blocks = Array(repeating: 0, count: devices * devices)
        chances = (0..<devices * devices).map { Chance(plan.seed, 2, UInt64($0)) }
    }

    func isOpen(from: Int, to: Int) -> Bool { blocks[from * devices + to] == 0 }

    /// Whether two devices reach each other.
    func isWhole(_ one: Int, _ other: Int) -> Bool { isOpen(from: one, to: other) && isOpen(from: other, to: one) }

    mutating func block(_ isBlocked: (Int, Int) -> Bool) -> [Int] {
        let pairs = (0..<devices * devices).filter { isBlocked($0 / devices, $0 % devices) }
        for pair in pairs { blocks[pair] += 1 }
        return pairs
    }

    mutating func unblock(_ pairs: [Int]) {
        for pair in pairs { blocks[pair] = max(0, blocks[pair] - 1) }
    }

    mutating func calm() {
        blocks = blocks.map { _ in 0 }
        noise = Plan.Noise()
    }

    mutating func choose<Value>(from: Int, to: Int, _ body: (inout Chance) -> Value) -> Value {
        body(&chances[from * devices + to])
    }

    mutating func delay(from: Int, to: Int) -> Duration {
        let most = noise.delay
        return choose(from: from, to: to) { $0.seconds(0.000_1, $0.happens(0.9) ? min(most, 0.01) : most) }
    }
}

extension SimulatedWorld {
    /// Connects a device with another one, which has to reach each other in both directions.
    ///
    /// - Parameter patience: how long the device waits for one that is silent.
    func dial(
        _ device: Device, _ announced: Advertisement, patience: Duration,
        then: @escaping (Result<Wire, Contents.Failure>) -> Void
    ) {
        let target = devices[announced.device.machine]
        let (from, to, began) = (device.index, target.index, device.incarnation)
        let delay = network.delay(from: from, to: to) + network.delay(from: to, to: from)
        after(delay) { [unowned self] in
            guard network.isWhole(from, to), target.phase == .running,
                target.id == announced.device, target.epoch == announced.epoch
            else {
                // Where no node listens, or another one by now, the machine refuses at once.
                let isRefused = target.phase != .asleep && network.isOpen(from: to, to: from)
                return after(isRefused ? .zero : patience, of: device) { then(.failure(.unreachable)) }
            }
            guard !target.lists.isRevoked(device.id), !device.lists.isRevoked(target.id) else {
                return after(.milliseconds(1), of: device) { then(.failure(.notAdmitted)) }
            }
            guard device.incarnation == began else { return }
            let wire = Wire(device, target)
            guard target.links.beginHandshake(on: wire, from: from) else {
                return after(network.delay(from: to, to: from), of: device) { then(.failure(.connectionLost)) }
            }
            device.wires.append(wire)
            target.wires.append(wire)
            let first = network.delay(from: to, to: from)
            after(first, of: device) {
                let isAdopted = wire.isOpen(for: device) && device.adopt(wire, isDialled: true)
                then(isAdopted ? .success(wire) : .failure(.connectionLost))
            }
            // The device that dialled shows last who it is, and asks for nothing before.
            let last = first + network.delay(from: from, to: to)
            wire.lastArrival[0] = time + last
            after(last, of: target) {
                guard wire.isOpen(for: target) else { return }
                target.links.endHandshake(on: wire)
                if target.adopt(wire, isDialled: false) { target.greet(wire) }
            }
        }
    }

    func send(_ message: Message, on wire: Wire, from sender: Device) {
        let side = wire.side(of: sender)
        guard wire.isOpen[side] else { return }
        let receiver = devices[wire.ends[1 - side]]
        let (from, to) = (sender.index, receiver.index)
        wire.lastUse = time
        statistics.messages += 1
        statistics.bytes += message.size
        let cuts = network.noise.cuts
        let (isLost, isCutAfter) = network.choose(from: from, to: to) { chance in
            (chance.happens(cuts / 2), chance.happens(cuts / 2))
        }
        if wire.isCut || isLost || !network.isOpen(from: from, to: to) { return cut(wire) }
        let arrival = max(time + network.delay(from: from, to: to), wire.lastArrival[side])
        wire.lastArrival[side] = arrival
        after(arrival - time, of: receiver) {
            guard !wire.isCut, wire.isOpen[1 - side] else { return }
            receiver.receive(message, on: wire)
        }
        if isCutAfter { after(arrival - time) { [unowned self] in cut(wire) } }
    }

    /// Closes a connection. The other end learns of it if the network lets it.
    func close(_ wire: Wire, by device: Device) {
        let (from, to) = (device.index, wire.ends[1 - wire.side(of: device)])
        guard !wire.isCut, network.isOpen(from: from, to: to) else { return cut(wire) }
        wire.isCut = true
        let other = devices[to]
        after(network.delay(from: from, to: to), of: other) { other.lose(wire) }
    }

    /// Cuts a connection. Each end learns of it at once, or when nothing has come for a while.
    func cut(_ wire: Wire) {
        guard !wire.isCut else { return }
        wire.isCut = true
        statistics.cuts += 1
        for side in 0...1 where wire.isOpen[side] {
            let device = devices[wire.ends[side]]
            let delay = network.choose(from: wire.ends[1 - side], to: wire.ends[side]) {
                $0.seconds(0.000_1, $0.happens(0.5) ? 0.05 : Network.patience)
            }
            after(isQuiet ? .milliseconds(1) : delay, of: device) { device.lose(wire) }
        }
    }

    /// Sends what a device shows to all others: twice, as DNS-SD does.
    func announce(_ device: Device) {
        guard let announcement = device.shown else { return }
        announce(announcement, from: device.index)
        after(.seconds(1), of: device) { [unowned self] in
            // Another text has taken its place by now, or no other does.
            if device.sequence == announcement.record?.advertisement.sequence, device.shown != nil {
                announce(announcement, from: device.index)
            }
        }
    }

    /// Sends one packet to all other devices.
    func announce(_ announcement: Announcement, from index: Int) {
        statistics.announcements += 1
        for other in devices where other.index != index { deliver(announcement, from: index, to: other) }
    }

    /// Asks all others what they show, as a machine does that has found the network. Each machine answers for itself.
    func query(_ device: Device) {
        for pause in [Duration.zero, .seconds(1)] {
            after(pause, of: device) { [unowned self] in
                for other in devices where other.index != device.index {
                    guard network.isOpen(from: device.index, to: other.index), other.phase == .running else { continue }
                    if let announcement = other.shown { deliver(announcement, from: other.index, to: device) }
                }
            }
        }
    }

    private func deliver(_ announcement: Announcement, from: Int, to other: Device) {
        let to = other.index
        guard network.isOpen(from: from, to: to) else { return }
        let noise = network.noise
        let copies = network.choose(from: from, to: to) {
            $0.happens(noise.loss) ? 0 : $0.happens(noise.duplication) ? 2 : 1
        }
        for _ in 0..<copies {
            // A packet may come later than a newer one, and a machine that sleeps never gets it.
            after(network.delay(from: from, to: to)) { [unowned self] in
                guard other.phase != .asleep else { return }
                other.hear(announcement)
                ledger.check(other)
            }
        }
    }
}

extension Message {
    /// Bytes on the network, with those of TLS and TCP.
    fileprivate var size: Int {
        switch self {
        case .request: 140
        case .answer(_, .success(.list(let items))): 120 + 130 * items.count
        case .answer(_, .success(.lists(let lists))): 320 + 20 * lists.revoked.count
        case .answer(_, .success(.payload)): 700
        case .answer: 120
        case .taken, .abort: 90
        }
    }
}
