// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol

/// One registered instance of this device.
struct Registration {
    var name: String
    var slot: ServiceDiscovery.SlotID
    var isEstablished = false
}

extension ServiceDiscovery {
    /// Takes a new record, and sends it when the update rule allows it.
    func publish(_ record: PublishedRecord, as change: RecordChange) {
        self.record = record
        guard current != nil else { return advertise() }
        pacer.change(change)
        sendIfDue()
    }

    /// Sends the latest record, or waits until it may.
    ///
    /// While one name takes the place of another, it is sent under the new one only: a record under both names would
    /// link them.
    ///
    /// Nothing is sent while the responder still probes for the name. Avahi 0.8 sometimes takes a record that changes
    /// meanwhile for a conflict, and renames it "name #2".
    func sendIfDue() {
        guard let latest = successor ?? current, latest.isEstablished else { return }
        let now = Instant(nanoseconds: MonotonicClock.nanoseconds())
        if let change = pacer.takeIfDue(now: now), let text = record?.text(isRationed: pacer.isRationed(now: now)) {
            do throws(ResponderFault) {
                try reference(latest.slot)?.update(text: text)
                // Nobody waits for a renewal.
                if change > .renewal { hasten() }
            } catch {
                lose(error)
            }
        } else if let deadline = pacer.deadline {
            pacing?.schedule(at: deadline.nanoseconds)
        }
    }

    /// Has the responder send a changed record soon, by asking the network for it.
    ///
    /// Avahi announces a change after two random delays, of up to 250 ms and of 20 to 120 ms. A question for a unique
    /// record has it multicast at once (RFC 6762, section 6), also if this host asks, and a question leaves after
    /// 100 ms. The reference lives only until then.
    private func hasten() {
        endHastening()
        guard let current, current.isEstablished, successor == nil else { return }
        let type = configuration.serviceType
        // Without it the announcement comes by itself, only later.
        hastening = try? open(.hastening) { () throws(ResponderFault) in
            try ServiceReference.queryText(name: current.name, type: type)
        }
        hastened?.schedule(after: .milliseconds(250))
    }

    func endHastening() {
        hastening.map { closeSlot($0) }
        hastening = nil
    }

    /// Registers this device if its period has no name yet, as soon as there is a responder and a record.
    func advertise() {
        guard responder == .running, current == nil, record != nil, !isNamed else { return }
        do throws(ResponderFault) {
            current = try register()
        } catch {
            lose(error)
        }
    }

    /// Registers the record under a new name beside the old one.
    func rotate(_ record: PublishedRecord) {
        self.record = record
        isNamed = false
        guard let current, responder == .running else { return advertise() }
        do throws(ResponderFault) {
            if current.isEstablished {
                // A successor that is not established was not seen yet.
                successor.map { closeSlot($0.slot) }
                successor = try register()
            } else {
                closeSlot(current.slot)
                self.current = try register()
            }
        } catch {
            lose(error)
        }
    }

    /// Tells the owner that this device needs another name, again and again until it answers.
    func announceRotation() {
        sink.yield(.rotationDue)
        rotating?.schedule(after: configuration.nextRotation)
    }

    /// Notes that a registration is on the network, maybe under another name than it asked for.
    func establish(_ slot: SlotID, as name: String) {
        guard var registration = current?.slot == slot ? current : successor, registration.slot == slot else { return }
        guard registration.name == name else {
            // Another host has that name, and the library chose "name #2". Only a random name tells nothing.
            withdraw()
            return announceRotation()
        }
        guard !registration.isEstablished else { return }
        registration.isEstablished = true
        if let current, current.slot != slot { closeSlot(current.slot) }
        (current, successor) = (registration, nil)
        rotating?.schedule(after: configuration.nextRotation)
        sink.yield(.registered(instance: name))
        // The record may have changed meanwhile.
        sendIfDue()
    }

    /// Takes this device off the network.
    func withdraw() {
        for registration in [current, successor] { registration.map { closeSlot($0.slot) } }
        (current, successor) = (nil, nil)
    }

    /// - Returns: nil before the first record.
    private func register() throws(ResponderFault) -> Registration? {
        let now = Instant(nanoseconds: MonotonicClock.nanoseconds())
        guard let text = record?.text(isRationed: pacer.isRationed(now: now)) else { return nil }
        isNamed = true
        let name = InstanceName.random()
        // Before the call, because the browse may show it before the call returns.
        ownNames.append(name)
        // A removed name is shown for a second more, and a rotation takes longer.
        if ownNames.count > 16 { ownNames.removeFirst() }
        let configuration = configuration
        let slot = try open(.registration) { () throws(ResponderFault) in
            try ServiceReference.register(
                name: name, type: configuration.serviceType, text: text)
        }
        // The registration carries the latest record.
        pacer.satisfy()
        return Registration(name: name, slot: slot)
    }
}
