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

    /// How long the world is quiet at the end, before it is looked whether everything came to rest: a transfer that was
    /// cut may go on for 10 minutes, and the lease of one may begin then.
    static let quietTime = Duration.seconds(1600)

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
        for device in devices {
            switch device.phase {
            case .asleep: device.wake()
            case .down: device.start()
            case .running: break
            }
            device.offset = 0
        }
    }

    /// Compares what is left with what may be left, once the world has been quiet for long enough.
    private func checkRest() {
        for device in devices {
            ledger.checkRest(of: device)
            let known = device.membership.isRevoked(device.peer.id)
            for other in devices where other.index != device.index {
                let isAdmitted =
                    !device.membership.isRevoked(other.peer.id) && !other.membership.isRevoked(device.peer.id)
                if !isAdmitted || known { continue }
                let (shown, offered) = (device.listed(of: other), other.own.visible.map(\.activity))
                if Set(shown) != Set(offered) {
                    let (lines, offers) = (shown.map(\.name), offered.map(\.name))
                    ledger.breach(.listing, "\(device.name) lists \(lines) of \(other.name), which offers \(offers)")
                }
            }
        }
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
        case .revoke(let index, let other): devices[index].revoke(other)
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
        mostRecords = max(mostRecords, device.directory.records.count)
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
