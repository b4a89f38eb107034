/// Who is at the other end of a Unix-domain socket, as the kernel saw it at `connect` or `socketpair` (`SO_PEERCRED`).
///
/// The user id is what a decision may rest on. The process can have ended since, and its number can be another's.
public struct PeerCredentials: Sendable, Hashable {
    /// The process id.
    public let processID: Int32
    /// The effective user id.
    public let userID: UInt32
    /// The effective group id.
    public let groupID: UInt32
}
