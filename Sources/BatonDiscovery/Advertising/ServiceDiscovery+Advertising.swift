// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// One registered instance of this device.
struct Registration {
    var name: String
    var slot: ServiceDiscovery.SlotID
    var isEstablished = false
}

/// What has become of the period that the published record is of. It gets one name: two names with one record, or with
/// two that share what is drawn for a period, are known to be of one device.
enum NamePeriod {
    /// No name was registered in it.
    case unnamed
    /// A name was registered, and maybe seen.
    case named
    /// That name is lost, and the owner was asked to begin another period.
    case over
}

extension ServiceDiscovery {
    /// Takes a new record, and sends it when the update rule says so.
    func publish(_ record: PublishedRecord, as change: UpdatePacer.Change) {
        self.record = record
        guard current != nil else { return advertise() }
        pacer.change(change)
        sendIfDue()
    }

    /// Sends the latest record, or waits until it may.
    ///
    /// While a name follows another, under the next one alone: a record that is seen under both ties them together for
    /// whoever has captured no more than the two periods.
    ///
    /// Nothing while the owner is asked for another period: the name of one that is over may be that of its successor.
    /// And nothing while the responder still asks whether somebody has the name: a record that changes meanwhile is in
    /// its own questions twice, which Avahi 0.8 takes for somebody else's now and then, and calls the name "name #2".
    func sendIfDue() {
        guard let latest = successor ?? current, latest.isEstablished, period != .over else { return }
        if pacer.takeIfDue(now: Self.now), let text = chosenText() {
            do throws(ResponderFault) {
                try reference(latest.slot)?.update(text: text)
                hasten()
            } catch {
                lose(error)
            }
        } else if let deadline = pacer.deadline() {
            pacing?.schedule(after: deadline - Self.now)
        }
    }

    /// Has the responder send a changed record soon, by asking the network for it.
    ///
    /// Avahi announces a change after two random delays, of up to 250 ms and of 20 to 120 ms; but whoever asks for a
    /// unique record, this host itself included, has it multicast at once (RFC 6762, section 6), and a question leaves
    /// after 100 ms. The reference lives only until then.
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

    /// Registers this device where it is not, as soon as there is a responder and something to say.
    func advertise() {
        guard responder == .running, current == nil, record != nil else { return }
        switch period {
        case .unnamed:
            do throws(ResponderFault) {
                current = try register()
            } catch {
                lose(error)
            }
        case .named: endPeriod()
        case .over: break
        }
    }

    /// The name of the period is lost: asks for another one, with another name.
    private func endPeriod() {
        period = .over
        announceRotation()
    }

    /// Registers the record under a new name beside the old one.
    func rotate(_ record: PublishedRecord) {
        self.record = record
        period = .unnamed
        guard let current, responder == .running else { return advertise() }
        do throws(ResponderFault) {
            if current.isEstablished {
                // One that is still on its way has been seen by nobody.
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

    /// Says that this device is to have another name, and says so again while nobody answers.
    func announceRotation() {
        sink.yield(.rotationDue)
        rotating?.schedule(after: nextRotation())
    }

    /// A registration is seen by the network, maybe under another name than it asked for.
    func establish(_ slot: SlotID, as name: String) {
        if var registration = current, registration.slot == slot {
            guard registration.name == name else {
                // Somebody has that name, and the library took "name #2" instead: only a random name says nothing.
                closeSlot(slot)
                current = nil
                return endPeriod()
            }
            guard !registration.isEstablished else { return }
            registration.isEstablished = true
            current = registration
        } else if var registration = successor, registration.slot == slot {
            guard registration.name == name else {
                closeSlot(slot)
                successor = nil
                return endPeriod()
            }
            registration.isEstablished = true
            current.map { closeSlot($0.slot) }
            current = registration
            successor = nil
        } else {
            return
        }
        rotating?.schedule(after: nextRotation())
        sink.yield(.registered(instance: name))
        // What has changed meanwhile.
        sendIfDue()
    }

    private func nextRotation() -> Duration {
        var generator = SystemRandomNumberGenerator()
        return configuration.nextRotation(using: &generator)
    }

    /// What is said from now on; nil before there is anything to say.
    private func chosenText() -> [UInt8]? {
        record?.text(isRationed: pacer.isRationed(now: Self.now))
    }

    /// - Returns: nil before there is anything to say.
    private func register() throws(ResponderFault) -> Registration? {
        guard let text = chosenText() else { return nil }
        period = .named
        let name = InstanceName.random()
        // Before the call, because the browse may show it before the call returns.
        ownNames.append(name)
        // One that was removed is shown for a second more; a rotation takes longer than that.
        if ownNames.count > 16 { ownNames.removeFirst() }
        let configuration = configuration
        let slot = try open(.registration) { () throws(ResponderFault) in
            try ServiceReference.register(
                name: name, type: configuration.serviceType, port: configuration.port, text: text)
        }
        // It carries the latest record, whatever was waiting.
        pacer.satisfy()
        return Registration(name: name, slot: slot)
    }
}
