// SPDX-License-Identifier: Apache-2.0

/// Values by key, at most ``bound`` of them. A further one evicts the one that was set longest ago.
struct RecentValues<Key: Equatable & Sendable, Value: Sendable>: Sendable {
    private let bound: Int
    /// The one that was set last is last.
    private(set) var entries: [(key: Key, value: Value)] = []

    init(bound: Int) {
        self.bound = bound
    }

    /// The value of a key; setting `nil` removes it.
    subscript(key: Key) -> Value? {
        get { entries.last { $0.key == key }?.value }
        set {
            entries.removeAll { $0.key == key }
            if let newValue { entries.append((key, newValue)) }
            if entries.count > bound { entries.removeFirst() }
        }
    }
}
