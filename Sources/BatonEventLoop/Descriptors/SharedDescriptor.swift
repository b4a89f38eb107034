/// A descriptor that several event sources watch: closed when the last of its holders lets go.
///
/// Epoll forbids closing a descriptor that a source still watches. Each source's cancel handler holds this object, and
/// Dispatch drops that handler after it ran, so the descriptor closes when the last source has let go of it, and not
/// before.
final class SharedDescriptor: Sendable {
    private let owned: OwnedDescriptor

    init(_ owned: consuming OwnedDescriptor) {
        self.owned = owned
    }

    /// The number of the descriptor, for system calls.
    var rawValue: Int32 { owned.rawValue }
}
