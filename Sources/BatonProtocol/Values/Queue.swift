// SPDX-License-Identifier: Apache-2.0

/// A first-in first-out ring that keeps its memory, so that a steady flow allocates nothing.
///
/// The standard library has no double-ended queue, and this module imports nothing.
struct Queue<Element> {
    private var slots: ContiguousArray<Element?> = []
    private var head = 0
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    var first: Element? {
        count == 0 ? nil : slots[head]
    }

    mutating func append(_ element: Element) {
        if count == slots.count { grow() }
        slots[(head + count) & (slots.count - 1)] = element
        count += 1
    }

    @discardableResult
    mutating func popFirst() -> Element? {
        guard count > 0 else { return nil }
        let element = slots[head].take()
        head = (head + 1) & (slots.count - 1)
        count -= 1
        return element
    }

    /// Keeps, in order, the elements for which `isKept` holds. O(count).
    mutating func keep(where isKept: (Element) -> Bool) {
        for _ in 0..<count {
            if let element = popFirst(), isKept(element) { append(element) }
        }
    }

    /// Empties the queue and gives its memory back.
    mutating func removeAll() {
        self = Queue()
    }

    /// Doubles the ring; its size is always a power of two so that an index wraps by a mask.
    private mutating func grow() {
        var larger = ContiguousArray<Element?>()
        larger.reserveCapacity(max(8, slots.count * 2))
        for offset in 0..<count { larger.append(slots[(head + offset) & (slots.count - 1)]) }
        while larger.count < max(8, slots.count * 2) { larger.append(nil) }
        slots = larger
        head = 0
    }
}
