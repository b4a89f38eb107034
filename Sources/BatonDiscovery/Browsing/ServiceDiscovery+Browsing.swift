// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// An open query for the TXT record of one instance.
struct Query {
    var slot: ServiceDiscovery.SlotID
    var history = TextHistory()
    /// The record that the owner was told last.
    var told: TextHistory.Record?
}

extension ServiceDiscovery {
    /// The browse shows or no longer shows an instance, on one interface and in one address family.
    func see(_ name: String, _ domain: String, isAdded: Bool) {
        guard domain == "local.", InstanceName.isPlausible(name), !ownNames.contains(name) else { return }
        if isAdded {
            if let count = presence[name] {
                presence[name] = count + 1
            } else {
                if let forgotten = budget.appear(name, now: Self.now) { forget(forgotten) }
                guard budget.isTracking(name) else { return }
                presence[name] = 1
                pump()
            }
        } else if let count = presence[name] {
            presence[name] = count - 1
            guard count == 1 else { return }
            budget.disappear(name)
            forget(name)
            pump()
        }
    }

    /// A query shows or no longer shows a record.
    func read(_ text: [UInt8], of name: String, on interface: UInt32, isAdded: Bool) {
        guard var query = queries[name] else { return }
        // Nobody here can have written a longer one: it is refused like an empty one, and waits nowhere until then.
        let text = text.count > TextRecord.maximumLength ? [] : text
        let outcome =
            isAdded
            ? query.history.add(text, interfaceIndex: interface)
            : query.history.remove(text, interfaceIndex: interface)
        queries[name] = query
        switch outcome {
        case .unchanged: break
        case .current(let record):
            // Until somebody says that it matters, an instance gets to say one thing: it may be anybody's.
            guard query.told == nil || budget.isHeard(name) else { return }
            tell(record, of: name)
        case .gone:
            if told.remove(name) != nil { sink.yield(.removed(instance: name)) }
        }
    }

    /// The verdict: worth a lasting query.
    func keepQuery(_ name: String) {
        budget.keep(name, now: Self.now)
        tellAnew(name)
    }

    /// The verdict: worth its turns.
    func followQuery(_ name: String) {
        budget.follow(name, now: Self.now)
        tellAnew(name)
    }

    /// What came before the verdict counts as well.
    private func tellAnew(_ name: String) {
        if let query = queries[name], let record = query.history.current, record != query.told {
            tell(record, of: name)
        }
        pump()
    }

    /// The verdict: not worth one.
    func rejectQuery(_ name: String) {
        told.remove(name)
        budget.reject(name, now: Self.now)
        pump()
    }

    /// The rejected are probed again.
    func reconsiderQueries() {
        budget.reconsider(now: Self.now)
        pump()
    }

    /// A query failed by itself; when the responder is the reason, the browse says so as well.
    func loseQuery(_ name: String) {
        closeQuery(name)
        budget.fail(name, now: Self.now)
        pump()
    }

    /// Opens or closes the next query, one at a time: a published record waits for one D-Bus call, not for sixteen.
    func pump() {
        guard responder == .running, !isPumpQueued else { return }
        let now = Self.now
        guard let action = budget.nextAction(now: now) else {
            if let deadline = budget.deadline(now: now) {
                budgeting?.schedule(after: deadline - now)
            } else {
                budgeting?.cancel()
            }
            return
        }
        switch action {
        case .open(let name): openQuery(name)
        case .close(let name): closeQuery(name)
        }
        isPumpQueued = true
        submit {
            $0.isPumpQueued = false
            $0.pump()
        }
    }

    /// Says which instances did not come back after the responder did.
    func forgetLost() {
        for name in told where presence[name] == nil { forget(name) }
    }

    private func openQuery(_ name: String) {
        let type = configuration.serviceType
        do throws(ResponderFault) {
            let slot = try open(.query(name)) { () throws(ResponderFault) in
                try ServiceReference.queryText(name: name, type: type)
            }
            queries[name] = Query(slot: slot)
        } catch {
            budget.fail(name, now: Self.now)
        }
    }

    private func closeQuery(_ name: String) {
        if let query = queries.removeValue(forKey: name) { closeSlot(query.slot) }
    }

    private func forget(_ name: String) {
        presence[name] = nil
        if told.remove(name) != nil { sink.yield(.removed(instance: name)) }
    }

    private func tell(_ record: TextHistory.Record, of name: String) {
        queries[name]?.told = record
        told.insert(name)
        sink.yield(.record(instance: name, interfaceIndex: record.interfaceIndex, txt: record.text))
    }
}
