// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// Items to be bought, items that were bought, and items that were removed.
///
/// Lists of two devices are merged item by item: the newer change of an item wins. So it does not matter which device
/// continues which, how often, or in which order. For that the list remembers removed items.
struct ShoppingList: Sendable, Hashable {
    struct Item: Sendable, Hashable {
        enum State: String, Sendable, CaseIterable {
            case wanted, bought, removed
        }

        let name: String
        var state: State
        /// In whole seconds, so that it stays the same wherever it is written.
        var changed: Date

        /// The key of the item: “Milk” and “ milk” are one item.
        var identity: String { Self.identity(of: name) }

        static func identity(of name: String) -> String {
            name.lowercased().split(whereSeparator: \.isWhitespace).joined(separator: " ")
        }

        /// Whether this change is newer. Both devices choose the same of two changes in one second.
        fileprivate func stands(against other: Item) -> Bool {
            func rank(_ item: Item) -> Int { State.allCases.firstIndex(of: item.state) ?? 0 }
            return (changed, rank(self), name) > (other.changed, rank(other), other.name)
        }
    }

    /// The most items, removed ones included. With names of ``nameBound`` they fit into an activity.
    static let bound = 200
    /// The most bytes of a name.
    static let nameBound = 100

    /// Each identity once, in the order of arrival.
    private(set) var items: [Item] = []

    /// The items that the user sees.
    var shown: [Item] { items.filter { $0.state != .removed } }

    /// The visible item of a name.
    func item(_ name: String) -> Item? {
        index(of: name).map { items[$0] }.flatMap { $0.state == .removed ? nil : $0 }
    }

    /// Puts an item on the list, or changes it.
    ///
    /// - Returns: whether there was room.
    @discardableResult
    mutating func set(_ name: String, to state: Item.State, now: Date = Date()) -> Bool {
        let words = name.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        guard !words.isEmpty, words.utf8.count <= Self.nameBound else { return false }
        var changed = Date(timeIntervalSince1970: now.timeIntervalSince1970.rounded(.down))
        if let index = index(of: words) {
            // Newer than the change that it replaces, also within a second or after the clock was set back.
            changed = max(changed, items[index].changed + 1)
            items[index] = Item(name: words, state: state, changed: changed)
            return true
        }
        return append(Item(name: words, state: state, changed: changed))
    }

    /// Merges another copy of the list.
    ///
    /// - Returns: how many visible items found no room.
    @discardableResult
    mutating func merge(_ other: ShoppingList) -> Int {
        other.items.count { !take($0) && $0.state != .removed }
    }

    /// Merges an item of another copy.
    ///
    /// - Returns: whether there was room.
    @discardableResult
    mutating func take(_ item: Item) -> Bool {
        guard let index = index(of: item.name) else { return append(item) }
        if item.stands(against: items[index]) { items[index] = item }
        return true
    }

    private func index(of name: String) -> Int? {
        let identity = Item.identity(of: name)
        return items.firstIndex { $0.identity == identity }
    }

    private mutating func append(_ item: Item) -> Bool {
        if items.count == Self.bound {
            // A full list forgets the item that was removed longest ago.
            let oldest = items.indices.filter { items[$0].state == .removed }
                .min { items[$0].changed < items[$1].changed }
            guard let oldest else { return false }
            items.remove(at: oldest)
        }
        items.append(item)
        return true
    }
}
