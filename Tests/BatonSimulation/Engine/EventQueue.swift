// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// Later events, in the order of time. Events of one time keep the order in which they were added.
struct EventQueue<Event> {
    private struct Entry {
        let time: Instant
        let number: UInt64
        let event: Event

        func comes(before other: Entry) -> Bool { (time, number) < (other.time, other.number) }
    }

    /// A binary heap with the next event first.
    private var heap: [Entry] = []
    private var lastNumber: UInt64 = 0

    var nextTime: Instant? { heap.first?.time }

    mutating func add(_ event: Event, at time: Instant) {
        lastNumber += 1
        heap.append(Entry(time: time, number: lastNumber, event: event))
        var child = heap.count - 1
        while child > 0, heap[child].comes(before: heap[(child - 1) / 2]) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func next() -> (time: Instant, event: Event)? {
        guard let first = heap.first else { return nil }
        let last = heap.removeLast()
        guard !heap.isEmpty else { return (first.time, first.event) }
        heap[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && heap[child].comes(before: heap[least]) {
                least = child
            }
            if least == parent { return (first.time, first.event) }
            heap.swapAt(least, parent)
            parent = least
        }
    }
}
