// SPDX-License-Identifier: Apache-2.0

/// A dictionary of bounded size: the entry that was inserted longest ago makes room for a new one.
package struct BoundedMap<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// The most entries.
    package let bound: Int
    private var entries: [Key: (value: Value, order: UInt64)] = [:]
    private var lastOrder: UInt64 = 0

    package init(bound: Int) {
        self.bound = bound
    }

    package var count: Int { entries.count }

    /// The keys in the order of insertion.
    package var keys: [Key] { entries.sorted { $0.value.order < $1.value.order }.map(\.key) }

    package subscript(key: Key) -> Value? { entries[key]?.value }

    /// Adds or replaces a value, which is the newest from now on.
    package mutating func insert(_ value: Value, for key: Key) {
        lastOrder += 1
        entries[key] = (value, lastOrder)
        guard entries.count > bound, let oldest = entries.min(by: { $0.value.order < $1.value.order }) else { return }
        entries[oldest.key] = nil
    }

    package mutating func remove(_ key: Key) { entries[key] = nil }
}
