// SPDX-License-Identifier: Apache-2.0

/// The earlier names of a device, so that a renamed device is still found by the name that people know.
package struct FormerNames: Sendable, Equatable {
    /// The most names that are kept, 504 bytes in all. The first ones stay, so that renaming a device again and again
    /// cannot push out the names that people know.
    package static let bound = 8

    package private(set) var names: [String] = []

    /// No names.
    package init() {}

    /// Whether there is none.
    package var isEmpty: Bool { names.isEmpty }

    /// Adds a name that the device no longer has.
    package mutating func add(_ name: String) {
        guard names.count < Self.bound, !names.contains(name) else { return }
        names.append(name)
    }

    /// The names other than the current one. A device may have an old name again; that name stays stored for the next
    /// change.
    package func other(than name: String) -> [String] { names.filter { $0 != name } }
}
