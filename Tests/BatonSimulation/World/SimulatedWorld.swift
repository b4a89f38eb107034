// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonProtocol

/// All devices, the network between them, and the time: one run from a plan.
final class SimulatedWorld {
    /// Something that happens later. An event of a device is void if the device's node has been started anew since, and
    /// waits while the device sleeps.
    struct Event {
        let device: Int?
        let incarnation: Int
        let body: () -> Void
    }

    /// How long the world is quiet before everything has to be at rest. A transfer that was cut may go on for 10
    /// minutes, and the lease of one may begin then.
    static let quietTime = Duration.seconds(1600)
    /// How long a quiet network takes until each device lists what the others offer, and has their revocation lists.
    static let listingBound = Duration.seconds(400)

    let plan: Plan
    private(set) var time = Instant(nanoseconds: 0)
    private var queue = EventQueue<Event>()
    var trace: Trace
    var ledger = Ledger()
    var statistics = Statistics()
    var network: Network
    private(set) var devices: [Device] = []
    /// Whether users and faults have ended.
    private(set) var isQuiet = false
    private var calmSince: Instant?

    init(_ plan: Plan, isTraced: Bool) {
        self.plan = plan
        trace = Trace(isOn: isTraced)
        network = Network(plan)
        devices = (0..<plan.devices).map { Device($0, in: self) }
    }

    // MARK: Time

    func after(_ delay: Duration, _ body: @escaping () -> Void) {
        queue.add(Event(device: nil, incarnation: 0, body: body), at: time + delay)
    }

    func after(_ delay: Duration, of device: Device, _ body: @escaping () -> Void) {
        queue.add(Event(device: device.index, incarnation: device.incarnation, body: body), at: time + delay)
    }

    func note(_ device: Int?, _ text: @autoclosure () -> String) {
        trace.add(time, device.map { letters($0) } ?? "", text())
    }

    /// Runs to the end, or to the first violation.
    func run() {
        for device in devices { device.start() }
        checkListings()
        for entry in plan.entries { after(entry.time) { [unowned self] in happen(entry.act) } }
        advance(to: time + plan.length)
        if ledger.violation == nil {
            calm()
            advance(to: time + Self.quietTime)
        }
        if ledger.violation == nil { checkRest() }
        statistics.simulated = time - Instant(nanoseconds: 0)
        // Devices and their events refer to each other.
        queue = EventQueue()
        devices = []
    }

    private func advance(to end: Instant) {
        while ledger.violation == nil, let next = queue.nextTime, next <= end, let (moment, event) = queue.next() {
            time = moment
            statistics.events += 1
            guard let index = event.device else {
                event.body()
                continue
            }
            let device = devices[index]
            guard device.incarnation == event.incarnation else { continue }
            if case .asleep = device.phase {
                device.deferred.append(event)
                continue
            }
            event.body()
            ledger.check(device)
            statistics.note(device)
        }
        if ledger.violation == nil { time = end }
    }

    /// Does what a device could not do while it slept.
    func resume(_ events: [Event]) {
        for event in events { queue.add(event, at: time) }
    }

    // MARK: The end

    private func calm() {
        isQuiet = true
        network.calm()
        note(nil, "quiet: users and faults have ended")
        // Users make devices join anew that are revoked, or that may find the others no more.
        let revoked = devices.reduce(into: Set()) { $0.formUnion($1.lists.revoked) }
        let newest = devices.filter { !revoked.contains($0.id) && !$0.isJoining }
            .min { $0.lists.generation.precedes($1.lists.generation) }
        for device in devices {
            device.offset = 0
            device.disk.lists = device.lists
            if revoked.contains(device.id) || newest.map(device.isApart) == true { device.join(isKilled: true) }
        }
        for device in devices {
            device.wake()
            device.start()
        }
        calmSince = time
    }

    /// Compares what is left with what may be left, once the world has been quiet for long enough.
    private func checkRest() {
        for device in devices {
            ledger.checkRest(of: device)
        }
    }

    /// Looks every 10 s whether devices list what has long gone, or do not list what they should have found by then.
    private func checkListings() {
        for device in devices where device.isAwake(for: .seconds(1)) {
            ledger.checkTold(of: device)
            for (origin, item) in device.listing {
                ledger.check(item, of: origin, on: device)
            }
            guard let calmSince, time - calmSince > Self.listingBound, device.isAwake(for: Self.listingBound) else {
                continue
            }
            for other in devices where other !== device && other.isAwake(for: Self.listingBound) {
                ledger.compare(device, other)
            }
        }
        after(.seconds(10)) { [unowned self] in checkListings() }
    }

    // MARK: Acts

    private func happen(_ act: Act) {
        if let index = act.device, !act.isFault, devices[index].phase != .running { return }
        note(act.device, "\(act)")
        switch act {
        case .offer(let index, let window, let manner): devices[index].show(window, manner)
        case .update(let index, let window): devices[index].change(window)
        case .withdraw(let index, let window): devices[index].close(window)
        case .accept(let index, let choice): devices[index].accept(choice)
        case .cancel(let index, let choice): devices[index].cancel(choice)
        case .cancelTransfer(let index, let choice): devices[index].cancelTransfer(choice)
        case .letGo(let index, let choice): devices[index].letGo(choice)
        case .setSwitch(let index, let isOn): devices[index].setSwitch(isOn)
        case .leave(let index, let time): devices[index].stop(for: time)
        case .revoke(let index, let other): revoke(other, by: devices[index])
        case .join(let index): devices[index].join()
        case .crash(let index, let effects, let time): devices[index].crash(after: effects, for: time)
        case .sleep(let index, let time): devices[index].sleep(for: time)
        case .cut(let index, let other):
            for wire in devices[index].wires where wire.ends.contains(other) { cut(wire) }
        case .setClock(let index, let seconds):
            devices[index].offset += seconds
            if devices[index].phase == .running { devices[index].decide { _ in } }
        case .partition(let sides, let time):
            block(for: time) { (sides >> UInt64($0 % 64)) & 1 != (sides >> UInt64($1 % 64)) & 1 }
        case .block(let from, let to, let time): block(for: time) { $0 == from && $1 == to }
        }
    }

    /// The user of a revoked device finds that in a while, and joins anew.
    private func revoke(_ index: Int, by device: Device) {
        guard device.index != index else { return }
        let (other, id) = (devices[index], devices[index].id)
        device.revoke(id, knowing: devices.filter { $0.phase == .running && network.isWhole(device.index, $0.index) })
        let pause = device.chance.seconds(1, 100)
        after(pause) { [unowned self] in if !isQuiet, other.id == id { other.join() } }
    }

    private func block(for duration: Duration, _ isBlocked: (Int, Int) -> Bool) {
        let pairs = network.block(isBlocked)
        after(duration) { [unowned self] in
            note(nil, "the network is whole again")
            network.unblock(pairs)
        }
    }
}

/// Counts of one run.
package struct Statistics: Sendable {
    package init() {}

    package var simulated = Duration.zero
    package var events = 0
    package var handoffs = 0
    package var continued = 0
    package var failed: [String: Int] = [:]
    package var messages = 0
    package var bytes = 0
    package var announcements = 0
    package var cuts = 0
    package var crashes = 0
    /// From accept to *continued*, in milliseconds.
    package var latencies: [Double] = []
    /// From an offer to its line on another device, in milliseconds.
    package var listings: [Double] = []
    /// The most that one device ever kept.
    package var mostClaims = 0
    package var mostHandoffs = 0
    package var mostRecords = 0

    fileprivate mutating func note(_ device: Device) {
        mostClaims = max(mostClaims, device.own.claims.count)
        mostHandoffs = max(mostHandoffs, device.parties.count)
        mostRecords = max(mostRecords, device.peers.table.peers.count)
    }

    package static func += (left: inout Statistics, right: Statistics) {
        left.simulated += right.simulated
        left.events += right.events
        left.handoffs += right.handoffs
        left.continued += right.continued
        left.failed.merge(right.failed) { $0 + $1 }
        left.messages += right.messages
        left.bytes += right.bytes
        left.announcements += right.announcements
        left.cuts += right.cuts
        left.crashes += right.crashes
        // Enough for a distribution.
        if left.latencies.count < 1_000_000 { left.latencies += right.latencies }
        if left.listings.count < 1_000_000 { left.listings += right.listings }
        left.mostClaims = max(left.mostClaims, right.mostClaims)
        left.mostHandoffs = max(left.mostHandoffs, right.mostHandoffs)
        left.mostRecords = max(left.mostRecords, right.mostRecords)
    }
}
