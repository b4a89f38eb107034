// SPDX-License-Identifier: Apache-2.0

/// A set that remembers its newest elements. The oldest make room.
package struct RecentSet<Element: Hashable & Sendable>: Sendable {
    private let bound: Int
    private var elements: Set<Element> = []
    private var order: [Element] = []

    package init(bound: Int) {
        self.bound = bound
    }

    /// Adds an element.
    ///
    /// - Returns: whether it is new.
    package mutating func insert(_ element: Element) -> Bool {
        guard elements.insert(element).inserted else { return false }
        order.append(element)
        if order.count > bound { elements.remove(order.removeFirst()) }
        return true
    }

    package mutating func remove(_ element: Element) {
        guard elements.remove(element) != nil else { return }
        order.removeAll { $0 == element }
    }
}
