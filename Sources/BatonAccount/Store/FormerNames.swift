// SPDX-License-Identifier: Apache-2.0

/// The names that a device had before the one that it has: who renames himself is found by the name that people know.
package struct FormerNames: Sendable, Equatable {
    /// The most names that are kept, the first ones: who renames himself again and again pushes out none that people
    /// know. 8 are 504 bytes.
    package static let bound = 8

    private var names: [String] = []

    /// No names.
    package init() {}

    /// Whether there is none.
    package var isEmpty: Bool { names.isEmpty }

    /// The device has this name no more.
    package mutating func add(_ name: String) {
        guard names.count < Self.bound, !names.contains(name) else { return }
        names.append(name)
    }

    /// The names without the one that the device has now: it may have taken an old one again, and will be known by that
    /// one still when it drops it.
    package func other(than name: String) -> [String] { names.filter { $0 != name } }
}

extension FormerNames: Codable {
    /// Reads names that were written; those that no device can have are passed over.
    package init(from decoder: any Decoder) throws {
        for name in try [String](from: decoder) where (try? DeviceName.validated(name)) == name { add(name) }
    }

    /// Writes the names.
    package func encode(to encoder: any Encoder) throws { try names.encode(to: encoder) }
}
