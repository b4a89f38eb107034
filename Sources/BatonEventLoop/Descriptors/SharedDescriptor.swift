// SPDX-License-Identifier: Apache-2.0

/// A descriptor that several event sources watch: closed when the last of its holders lets go.
///
/// A descriptor that is still watched must not be closed, because its number may be another's at once. Each source
/// holds this object until it watches no more, so the descriptor closes when the last source has let go of it, and not
/// before.
final class SharedDescriptor: Sendable {
    private let owned: OwnedDescriptor

    init(_ owned: consuming OwnedDescriptor) {
        self.owned = owned
    }

    /// The number of the descriptor, for system calls.
    var rawValue: Int32 { owned.rawValue }
}
