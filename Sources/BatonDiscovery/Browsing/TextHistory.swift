// SPDX-License-Identifier: Apache-2.0

/// Makes one record of the many answers that a query gives for one instance. A pure value.
///
/// Avahi reports each TXT record once per interface and per address family, adds the new text a second before it takes
/// the old one away, and never says which family it means. What is current is the text that was added last; it holds
/// from its first addition to its last removal.
struct TextHistory {
    /// A text and the interface that it was first seen on.
    struct Record: Hashable {
        var text: [UInt8]
        var interfaceIndex: UInt32
    }

    /// What a change means for whoever looks at the instance.
    enum Outcome: Hashable {
        case unchanged
        case current(Record)
        case gone
    }

    /// One text on one interface; the count is that of address families.
    private struct Sighting {
        var record: Record
        var count: Int
    }

    /// The most texts that are kept: a peer that changes its text faster than old ones expire is not believed longer.
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

    /// Notes a removed record. One that was never added is ignored.
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
