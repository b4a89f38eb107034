// SPDX-License-Identifier: Apache-2.0

/// Reduces the many answers that a query gives for one instance to one record. A pure value.
///
/// Avahi reports each TXT record once per interface and address family, without the family. It adds a new text a second
/// before it removes the old one. The current text is the one that was added last, from its first addition to its last
/// removal.
struct TextHistory {
    /// A text and the interface that it was first seen on.
    struct Record: Hashable {
        var text: [UInt8]
        var interfaceIndex: UInt32
    }

    /// The effect of a change on the current record.
    enum Outcome: Hashable {
        case unchanged
        case current(Record)
        case gone
    }

    /// One text on one interface, with the number of address families.
    private struct Sighting {
        var record: Record
        var count: Int
    }

    /// The most texts that are kept. If a peer changes its text faster than old ones expire, the oldest are dropped.
    static let capacity = 16

    /// Oldest first.
    private var sightings: [Sighting] = []

    /// The current record, nil when there is none.
    private(set) var current: Record?

    /// Notes an added record.
    mutating func add(_ text: [UInt8], interfaceIndex: UInt32) -> Outcome {
        let record = Record(text: text, interfaceIndex: interfaceIndex)
        if let index = sightings.firstIndex(where: { $0.record == record }) {
            sightings[index].count += 1
        } else {
            if sightings.count == Self.capacity { sightings.removeFirst() }
            sightings.append(Sighting(record: record, count: 1))
        }
        return settle()
    }

    /// Notes a removed record. A record that was never added is ignored.
    mutating func remove(_ text: [UInt8], interfaceIndex: UInt32) -> Outcome {
        let record = Record(text: text, interfaceIndex: interfaceIndex)
        guard let index = sightings.firstIndex(where: { $0.record == record }) else { return .unchanged }
        sightings[index].count -= 1
        if sightings[index].count == 0 { sightings.remove(at: index) }
        return settle()
    }

    private mutating func settle() -> Outcome {
        let newest = sightings.last?.record.text
        let next = sightings.first { $0.record.text == newest }?.record
        guard next != current else { return .unchanged }
        current = next
        return next.map(Outcome.current) ?? .gone
    }
}
