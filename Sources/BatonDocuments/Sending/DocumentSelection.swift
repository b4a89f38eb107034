// SPDX-License-Identifier: Apache-2.0

/// The part of a folder that is offered: all of it, or some of the entries directly in it.
package struct DocumentSelection: Sendable, Hashable {
    /// The most names: 1,000. It bounds what a node keeps for one offer.
    package static let nameLimit = 1000
    /// The most bytes of all names: 32 KiB, half of what a message holds.
    package static let byteLimit = 32 << 10
    /// All of the folder; the only selection of a file.
    package static let all = DocumentSelection(sorted: [])

    /// The names of the entries in the order of a manifest, each once; empty: all of the folder.
    package let names: [[UInt8]]

    package var isAll: Bool { names.isEmpty }

    private init(sorted names: [[UInt8]]) {
        self.names = names
    }

    /// A selection of entries; all of the folder for no names.
    ///
    /// - Returns: nil for more than ``nameLimit`` names or ``byteLimit`` bytes.
    package init?(_ names: [DocumentLabel]) {
        let names = Set(names.map(\.bytes))
        guard names.count <= Self.nameLimit, names.reduce(0, { $0 + $1.count }) <= Self.byteLimit else { return nil }
        self.init(sorted: names.sorted { $0.lexicographicallyPrecedes($1) })
    }
}
