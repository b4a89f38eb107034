// SPDX-License-Identifier: Apache-2.0

/// Who is at the other end of a channel, as its own means have proved it.
package enum PeerIdentity: Sendable, Hashable {
    /// A device of the account, by the identifier that its verified certificate carries.
    case device(String)
    /// A process of this user, or of root, on this machine, as the kernel tells of a Unix-domain socket.
    case localUser(UInt32)
}

/// What turns the bytes of a socket into the bytes of the protocol, and back: TLS between nodes, nothing on the local
/// socket.
///
/// A channel belongs to one connection and is used on that connection's event loop only. It never touches the socket.
package protocol Channel: AnyObject {
    /// Who the peer is; `nil` until the channel has verified it.
    var peer: PeerIdentity? { get }

    /// Begins the handshake, if the channel has one and is the side that speaks first.
    func start() throws(TransportError)

    /// Takes bytes that came from the network and hands on what they decode to, borrowed for the time of the call.
    ///
    /// - Parameters:
    ///   - room: where the next bytes are wanted, so that they need not be copied there: is offered memory of the
    ///     channel's, and returns a part of that or better memory, not empty. A channel that decodes nothing may hand
    ///     on bytes as they lie in `wire` without asking.
    ///   - deliver: gets what was put there.
    func decode(
        _ wire: UnsafeRawBufferPointer,
        into room: (UnsafeMutableRawBufferPointer) -> UnsafeMutableRawBufferPointer,
        deliver: (UnsafeRawBufferPointer) throws(TransportError) -> Void
    ) throws(TransportError)

    /// Fills `wire` with bytes for the network and returns how many; 0 means that there is nothing to send now.
    ///
    /// `next` writes the protocol's next bytes into the space it is given, and returns how many; it is not called
    /// before the handshake is over.
    func encode(
        into wire: UnsafeMutableRawBufferPointer,
        from next: (UnsafeMutableRawBufferPointer) -> Int
    ) throws(TransportError) -> Int

    /// Derives keys that only the two ends of this channel know.
    ///
    /// - Parameters:
    ///   - label: what they are for; each purpose has its own.
    ///   - target: gets as many bytes as it has room for.
    /// - Throws: `protocolViolation` where the channel has no keys of its own, or the peer is not verified yet.
    func exportKeyingMaterial(_ label: String, into target: UnsafeMutableRawBufferPointer) throws(TransportError)

    /// Queues what tells the peer that no more bytes will come, such as TLS's `close_notify`.
    func finish()
}

/// The channel of the local socket: bytes as they are.
package final class PlainChannel: Channel {
    package let peer: PeerIdentity?

    /// - Parameter peer: who the kernel says is at the other end.
    package init(peer: PeerIdentity) {
        self.peer = peer
    }

    package func start() {}

    package func decode(
        _ wire: UnsafeRawBufferPointer,
        into _: (UnsafeMutableRawBufferPointer) -> UnsafeMutableRawBufferPointer,
        deliver: (UnsafeRawBufferPointer) throws(TransportError) -> Void
    ) throws(TransportError) {
        try deliver(wire)
    }

    package func encode(
        into wire: UnsafeMutableRawBufferPointer,
        from next: (UnsafeMutableRawBufferPointer) -> Int
    ) -> Int {
        next(wire)
    }

    /// Throws `protocolViolation`: there are none.
    package func exportKeyingMaterial(_: String, into _: UnsafeMutableRawBufferPointer) throws(TransportError) {
        throw TransportError(.protocolViolation, "the local socket has no keys")
    }

    package func finish() {}
}
