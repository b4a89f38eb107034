// SPDX-License-Identifier: Apache-2.0

/// The name of a document in its destination.
package struct DocumentNaming: Sendable, Hashable {
    /// The highest number that a document gets because its name is taken: 99.
    static let highestNumber = 99

    /// As its origin calls it. If that name is taken, the document does not arrive.
    package static let own = DocumentNaming(label: nil, renames: false)

    /// The user's own name for it; nil: as its origin calls it.
    package let label: DocumentLabel?
    /// If the name is taken when the document is put in place, it gets a number, as in `film (2).bin`.
    package let renames: Bool

    /// - Parameters:
    ///   - label: the user's own name for it; nil: as its origin calls it.
    ///   - renames: whether a number is appended to a name that is taken.
    package init(label: DocumentLabel?, renames: Bool) {
        self.label = label
        self.renames = renames
    }
}
