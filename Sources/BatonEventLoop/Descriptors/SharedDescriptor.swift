// SPDX-License-Identifier: Apache-2.0

/// A descriptor that several event sources watch, closed when the last of them releases it.
///
/// A watched descriptor must not be closed, because its number may be used again at once. So each source holds this
/// object until it stops watching.
final class SharedDescriptor: Sendable {
    private let owned: OwnedDescriptor

    init(_ owned: consuming OwnedDescriptor) {
        self.owned = owned
    }

    /// The number of the descriptor, for system calls.
    var rawValue: Int32 { owned.rawValue }
}
