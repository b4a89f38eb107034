// SPDX-License-Identifier: Apache-2.0

/// A bounded number of places, of which each host may have some: a host that takes many keeps no other out.
package struct Places<Key: Hashable & Sendable, Host: Hashable & Sendable>: Sendable {
    private let bound, boundPerHost: Int
    private var taken: [Key: Set<Host>] = [:]

    package init(bound: Int, boundPerHost: Int) {
        self.bound = bound
        self.boundPerHost = boundPerHost
    }

    package var count: Int { taken.count }

    /// Takes a place, until ``leave(_:)``.
    ///
    /// - Parameter hosts: the hosts that share the place; none if they are not known.
    /// - Returns: whether there is one.
    package mutating func enter(_ key: Key, of hosts: [Host]) -> Bool {
        let isShared = hosts.contains { host in taken.values.count { $0.contains(host) } >= boundPerHost }
        guard taken.count < bound, !isShared else { return false }
        taken[key] = Set(hosts)
        return true
    }

    package mutating func leave(_ key: Key) { taken[key] = nil }
}
