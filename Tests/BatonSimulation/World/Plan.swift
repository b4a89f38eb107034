// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonProtocol

/// Kinds of faults that a run may have.
package enum Fault: String, CaseIterable, Sendable {
    case loss
    case duplication
    case delay
    case cuts
    case partitions
    case oneway
    case sleep
    case crashes
    case clocks
    case applications
    case revocations
}

/// Something that a user does, or a fault of the world. Its target is chosen when it happens, so that it keeps its
/// sense if others are left out.
enum Act: Sendable, Hashable {
    case offer(Int, window: Int, Item.Manner)
    case update(Int, window: Int)
    case withdraw(Int, window: Int)
    case accept(Int, choice: Int)
    case cancel(Int, choice: Int)
    /// The user of the origin cancels what a device is sent.
    case cancelTransfer(Int, choice: Int)
    case letGo(Int, choice: Int)
    case setSwitch(Int, Bool)
    case leave(Int, Duration)
    case revoke(Int, of: Int)
    /// The user leaves the account and joins it anew.
    case join(Int)
    /// The node is killed after it has carried out so many more effects, and starts again.
    case crash(Int, afterEffects: Int, Duration)
    case sleep(Int, Duration)
    case cut(Int, Int)
    /// The devices are in two groups, by the bits of a number.
    case partition(UInt64, Duration)
    case block(from: Int, to: Int, Duration)
    case setClock(Int, Double)

    var isFault: Bool {
        switch self {
        case .crash, .sleep, .cut, .partition, .block, .setClock: true
        case .offer, .update, .withdraw, .accept, .cancel, .cancelTransfer, .letGo, .setSwitch, .leave, .revoke, .join:
            false
        }
    }
}

/// A world's size, its noise, and what happens in it: with the seed, all that decides a run.
package struct Plan: Sendable {
    /// How the network and the applications behave in a run. It changes from run to run (swarm testing).
    struct Noise: Sendable {
        var loss = 0.0
        var duplication = 0.0
        /// The chance that a connection is cut before or after a message.
        var cuts = 0.0
        /// The longest delay of a message, in seconds.
        var delay = 0.005
        /// The chance that an application fails or takes its time.
        var failures = 0.0
        /// How much faster or slower the clock of a device may run.
        var drift = 0.0
    }

    struct Entry: Sendable {
        let time: Duration
        let act: Act
    }

    package let seed: UInt64
    let devices: Int
    /// How long users act; the world comes to rest after it.
    let length: Duration
    var noise: Noise
    /// Places of connections: in half of the runs so few that some have to wait.
    let links: LinkLimits
    var entries: [Entry]
    /// The kinds of faults that this run has.
    package let faults: [Fault]

    /// - Parameter allowed: the faults that may be chosen for the run.
    package init(seed: UInt64, devices: Int, length: Duration, faults allowed: Set<Fault>) {
        var chance = Chance(seed, 1)
        // Each kind is on in about half of the runs, and some runs have none.
        let isCalm = chance.happens(0.05)
        faults = Fault.allCases.filter { fault in
            let isChosen = chance.happens(0.5)
            return allowed.contains(fault) && isChosen && !isCalm
        }
        (self.seed, self.devices, self.length) = (seed, devices, length)
        noise = Noise()
        if faults.contains(.loss) { noise.loss = 0.3 * chance.fraction() }
        if faults.contains(.duplication) { noise.duplication = 0.3 * chance.fraction() }
        if faults.contains(.cuts) { noise.cuts = 0.1 * chance.fraction() * chance.fraction() }
        if faults.contains(.delay) { noise.delay = [0.05, 0.5, 4][chance.below(3)] }
        if faults.contains(.applications) { noise.failures = 0.3 * chance.fraction() }
        if faults.contains(.clocks) { noise.drift = 0.01 * chance.fraction() }
        var links = LinkLimits()
        var bounds = Chance(seed, 4)
        if devices > links.connections / 2 || bounds.happens(0.5) {
            links.connections = 2 * devices
            links.connectionsPerDevice = 2
            (links.dials, links.unprovedDials) = (4, 2)
            (links.handshakes, links.handshakesPerAddress) = (devices / 2 + 1, 2)
        }
        self.links = links
        entries = []
        addActs(&chance)
        entries.sort { $0.time < $1.time }
    }

    private mutating func addActs(_ chance: inout Chance) {
        let pace = [0.3, 1, 4][chance.below(3)]
        let devices = self.devices
        // Few windows and devices meet more often.
        let windows = 1 + chance.below(6)
        let isSaving = chance.fraction()
        let isExclusive = chance.fraction()
        let isDocument = chance.fraction()
        add(every: 6 * pace, &chance) { chance in
            let manner = Item.Manner(
                isExclusive: chance.happens(isExclusive), needsSave: chance.happens(isSaving),
                pieces: chance.happens(isDocument) ? 1 + chance.below(6) : 0,
                lifetime: chance.happens(0.1) ? [0.5, 20, 300][chance.below(3)] : nil)
            return .offer(chance.below(devices), window: chance.below(windows), manner)
        }
        add(every: 15 * pace, &chance) { .update($0.below(devices), window: $0.below(windows)) }
        add(every: 12 * pace, &chance) { .withdraw($0.below(devices), window: $0.below(windows)) }
        add(every: 1.5 * pace, &chance) { .accept($0.below(devices), choice: $0.below(1 << 20)) }
        add(every: 20 * pace, &chance) { .cancel($0.below(devices), choice: $0.below(1 << 20)) }
        add(every: 30 * pace, &chance) { .cancelTransfer($0.below(devices), choice: $0.below(1 << 20)) }
        add(every: 10 * pace, &chance) { .letGo($0.below(devices), choice: $0.below(1 << 20)) }
        add(every: 300 * pace, &chance) { .setSwitch($0.below(devices), false) }
        add(every: 60 * pace, &chance) { .setSwitch($0.below(devices), true) }
        add(every: 400 * pace, &chance) { .leave($0.below(devices), $0.seconds(0.1, 100)) }
        add(every: 900 * pace, &chance) { .join($0.below(devices)) }
        addFaults(&chance)
    }

    private mutating func addFaults(_ chance: inout Chance) {
        let devices = self.devices
        let often = [20.0, 60, 200][chance.below(3)]
        if faults.contains(.crashes) {
            add(every: often, &chance) { chance in
                // Most crashes leave the claims' leases time; some are longer than any lease.
                let away = chance.happens(0.7) ? chance.seconds(0.05, 5) : chance.seconds(5, 900)
                return .crash(chance.below(devices), afterEffects: chance.below(12), away)
            }
        }
        if faults.contains(.sleep) {
            add(every: often, &chance) { chance in
                let time = chance.happens(0.7) ? chance.seconds(0.1, 40) : chance.seconds(40, 900)
                return .sleep(chance.below(devices), time)
            }
        }
        if faults.contains(.cuts) { add(every: often / 4, &chance) { .cut($0.below(devices), $0.below(devices)) } }
        if faults.contains(.partitions) {
            add(every: 3 * often, &chance) { .partition($0.next(), $0.seconds(1, $0.happens(0.7) ? 35 : 700)) }
        }
        if faults.contains(.oneway) {
            add(every: often, &chance) {
                .block(from: $0.below(devices), to: $0.below(devices), $0.seconds(1, $0.happens(0.7) ? 35 : 700))
            }
        }
        if faults.contains(.clocks) {
            add(every: often, &chance) {
                .setClock($0.below(devices), ($0.fraction() - 0.5) * ($0.happens(0.5) ? 60 : 1e9))
            }
        }
        if faults.contains(.revocations) {
            add(every: 3 * often, &chance) { .revoke($0.below(devices), of: $0.below(devices)) }
        }
    }

    /// - Parameter mean: the mean time between two acts of this kind of one device, in seconds.
    private mutating func add(every mean: Double, _ chance: inout Chance, _ make: (inout Chance) -> Act) {
        let pause = mean / Double(devices)
        var time = chance.interval(mean: pause)
        while .seconds(time) < length {
            entries.append(Entry(time: .seconds(time), act: make(&chance)))
            time += chance.interval(mean: pause)
        }
    }
}

extension Act: CustomStringConvertible {
    var description: String {
        switch self {
        case .offer(_, let window, let manner):
            "user offers window \(window)\(manner.isExclusive ? ", exclusively" : "")\(manner.needsSave ? ", saving" : "")"
        case .update(_, let window): "user changes window \(window)"
        case .withdraw(_, let window): "user closes window \(window)"
        case .accept: "user accepts"
        case .cancel: "user cancels a handoff"
        case .cancelTransfer: "user of the origin cancels a transfer"
        case .letGo: "application lets an activity go"
        case .setSwitch(_, let isOn): "user switches Handoff \(isOn ? "on" : "off")"
        case .leave(_, let time): "user stops the node for \(time)"
        case .revoke(_, let other): "user revokes \(letters(other))"
        case .join: "user leaves the account and joins it anew"
        case .crash(_, let effects, let time): "FAULT: crash after \(effects) more effects, for \(time)"
        case .sleep(_, let time): "FAULT: sleep for \(time)"
        case .cut(_, let other): "FAULT: connections with \(letters(other)) are cut"
        case .partition(let sides, let time): "FAULT: partition \(String(sides & 0xffff, radix: 2)) for \(time)"
        case .block(_, let to, let time): "FAULT: nothing reaches \(letters(to)) for \(time)"
        case .setClock(_, let seconds): "FAULT: the clock jumps by \(Int(seconds)) s"
        }
    }

    /// The device that it concerns first.
    var device: Int? {
        switch self {
        case .offer(let device, _, _), .update(let device, _), .withdraw(let device, _), .accept(let device, _),
            .cancel(let device, _), .cancelTransfer(let device, _), .letGo(let device, _), .setSwitch(let device, _),
            .leave(let device, _), .revoke(let device, _), .join(let device), .crash(let device, _, _),
            .sleep(let device, _), .cut(let device, _), .block(let device, _, _), .setClock(let device, _):
            device
        case .partition: nil
        }
    }
}
