// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol

/// An open query for the TXT record of one instance.
struct Query {
    var slot: ServiceDiscovery.SlotID
    /// Whether a record of it was told.
    var hasTold = false
    /// The last record that came while the query was open, in answer to it or as an announcement.
    var last: SeenText?
}

/// A TXT record and the interface that it was seen on.
struct SeenText: Hashable {
    var text: [UInt8]
    var interfaceIndex: UInt32
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
                if let forgotten = budget.appear(name) { forget(forgotten) }
                guard budget.isTracking(name) else { return }
                presence[name] = 1
                pump()
            }
        } else if let count = presence[name] {
            presence[name] = count - 1
            guard count == 1 else { return }
            budget.disappear(name)
            closeQuery(name)
            forget(name)
            pump()
        }
    }

    /// Takes a record that a query shows: once for each interface and address family.
    func read(_ text: [UInt8], of name: String, on interface: UInt32) {
        guard let query = queries[name] else { return }
        // No device writes a longer record. An empty one is rejected in its place and costs no memory until then.
        let record = SeenText(text: text.count > TextRecord.maximumLength ? [] : text, interfaceIndex: interface)
        // Without a verdict one record is told, because the instance may be anyone's.
        if query.hasTold { hear(record, of: name) } else { tell(record, of: name) }
    }

    /// Takes a record from an announcement of any instance.
    func hear(_ record: SeenText, of name: String) {
        if budget.isHeard(name) {
            if told[name]?.text != record.text { tell(record, of: name) }
        } else {
            queries[name]?.last = record
        }
    }

    /// Takes the verdict to keep or follow an instance. Tells what came before it, and what comes from now on.
    func listen(for name: String, isKept: Bool) {
        budget.hear(name, isKept: isKept)
        if let last = queries[name]?.last, last.text != told[name]?.text { tell(last, of: name) }
        closeQuery(name)
        pump()
    }

    /// Takes the verdict to reject an instance.
    func rejectQuery(_ name: String) {
        told[name] = nil
        budget.reject(name, now: Self.now)
        closeQuery(name)
        pump()
    }

    /// Queries rejected instances again.
    func reconsiderQueries() {
        budget.reconsider()
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
            if let deadline = budget.deadline {
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
        } catch {
            budget.fail(name, now: Self.now)
        }
    }

    private func closeQuery(_ name: String) {
        if let query = queries.removeValue(forKey: name) { closeSlot(query.slot) }
    }

    private func forget(_ name: String) {
        presence[name] = nil
        if told.removeValue(forKey: name) != nil { sink.yield(.removed(instance: name)) }
    }

    private func tell(_ record: SeenText, of name: String) {
        told[name] = record
        queries[name]?.hasTold = true
        sink.yield(.record(instance: name, interfaceIndex: record.interfaceIndex, txt: record.text))
    }
}
