// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// An open query for the TXT record of one instance.
struct Query {
    var slot: ServiceDiscovery.SlotID
    var history = TextHistory()
    /// Whether a record of it was told.
    var hasTold = false
    /// The last record that was heard from an announcement while the query was open.
    var heard: TextHistory.Record?
}

extension ServiceDiscovery {
    /// Counts an instance that the browse shows or no longer shows, on one interface and in one address family.
    func see(_ name: String, _ domain: String, on interface: UInt32, isAdded: Bool) {
        guard domain == "local.", InstanceName.isPlausible(name), !ownNames.contains(name) else { return }
        if isAdded {
            do throws(ResponderFault) {
                try listener?.join(interface)
            } catch {
                return lose(error)
            }
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

    /// Takes a record that a query shows or no longer shows.
    func read(_ text: [UInt8], of name: String, on interface: UInt32, isAdded: Bool) {
        guard var query = queries[name] else { return }
        // No device writes a longer record. An empty one is rejected in its place and costs no memory until then.
        let text = text.count > TextRecord.maximumLength ? [] : text
        let outcome =
            isAdded
            ? query.history.add(text, interfaceIndex: interface)
            : query.history.remove(text, interfaceIndex: interface)
        queries[name] = query
        switch outcome {
        case .unchanged: break
        case .current(let record):
            // Without a verdict one record is told, because the instance may be anyone's.
            guard !query.hasTold || budget.isHeard(name) else { return }
            tell(record, of: name)
        case .gone:
            if told.removeValue(forKey: name) != nil { sink.yield(.removed(instance: name)) }
        }
    }

    /// Takes a text from an announcement.
    func hear(_ text: [UInt8], of name: String, on interface: UInt32) {
        let record = TextHistory.Record(text: text, interfaceIndex: interface)
        if budget.isHeard(name) {
            if told[name]?.text != text { tell(record, of: name) }
        } else {
            queries[name]?.heard = record
        }
    }

    /// Takes the verdict to keep or follow an instance. Tells what came before it, and what comes from now on.
    func listen(for name: String, isKept: Bool) {
        budget.hear(name, isKept: isKept)
        if let query = queries[name] {
            for record in [query.history.current, query.heard] {
                if let record, record.text != told[name]?.text { tell(record, of: name) }
            }
        }
        if budget.isHeard(name) { listener?.listen(for: name, after: told[name]?.text) }
        pump()
    }

    /// Takes the verdict to reject an instance.
    func rejectQuery(_ name: String) {
        told[name] = nil
        listener?.ignore(name)
        budget.reject(name, now: Self.now)
        pump()
    }

    /// Queries rejected instances again.
    func reconsiderQueries() {
        budget.reconsider(now: Self.now)
        pump()
    }

    /// Drops a query that failed. If the responder is the reason, the browse fails as well.
    func loseQuery(_ name: String) {
        closeQuery(name)
        budget.fail(name, now: Self.now)
        pump()
    }

    /// Opens or closes the next query. One at a time, so that a published record waits for one D-Bus call only.
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

    /// Tells which instances did not come back after the responder did.
    func forgetLost() {
        for name in told.keys where presence[name] == nil { forget(name) }
    }

    private func openQuery(_ name: String) {
        let type = configuration.serviceType
        do throws(ResponderFault) {
            let slot = try open(.query(name)) { () throws(ResponderFault) in
                try ServiceReference.queryText(name: name, type: type)
            }
            queries[name] = Query(slot: slot)
            listener?.listen(for: name)
        } catch {
            budget.fail(name, now: Self.now)
        }
    }

    private func closeQuery(_ name: String) {
        if let query = queries.removeValue(forKey: name) { closeSlot(query.slot) }
    }

    private func forget(_ name: String) {
        presence[name] = nil
        listener?.ignore(name)
        if told.removeValue(forKey: name) != nil { sink.yield(.removed(instance: name)) }
    }

    private func tell(_ record: TextHistory.Record, of name: String) {
        told[name] = record
        queries[name]?.hasTold = true
        listener?.listen(for: name, after: record.text)
        sink.yield(.record(instance: name, interfaceIndex: record.interfaceIndex, txt: record.text))
    }
}
