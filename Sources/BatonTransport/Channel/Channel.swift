// SPDX-License-Identifier: Apache-2.0

/// The verified identity at the other end of a channel.
package enum PeerIdentity: Sendable, Hashable {
    /// A device of the account, by the id in its verified certificate.
    case device(String)
    /// A process of this machine, by the user id that the kernel reports for a Unix-domain socket.
    case localUser(UInt32)
}

/// The layer between a socket and the protocol: TLS between nodes, nothing on the local socket.
///
/// A channel belongs to one connection and is used on that connection's event loop only. It never touches the socket.
package protocol Channel: AnyObject {
    /// The identity of the peer; `nil` until the channel has verified it.
    var peer: PeerIdentity? { get }

    /// Begins the handshake, if the channel has one and this side sends first.
    func start() throws(TransportError)

    /// Decodes bytes from the network and delivers the result, borrowed for the time of the call.
    ///
    /// - Parameters:
    ///   - destination: the place for the next decoded bytes, so that they need no copy. It is offered memory of the
    ///     channel, and returns a part of that or better memory, not empty. A channel that decodes nothing may deliver
    ///     bytes of `wire` without asking.
    ///   - deliver: gets the decoded bytes.
    func decode(
        _ wire: UnsafeRawBufferPointer,
        into destination: (UnsafeMutableRawBufferPointer) -> UnsafeMutableRawBufferPointer,
        deliver: (UnsafeRawBufferPointer) throws(TransportError) -> Void
    ) throws(TransportError)

    /// Fills `wire` with bytes for the network and returns their number; 0 means that there is nothing to send now.
    ///
    /// `next` writes the protocol's next bytes into the given space, and returns their number. It is not called before
    /// the handshake is over.
    func encode(
        into wire: UnsafeMutableRawBufferPointer,
        from next: (UnsafeMutableRawBufferPointer) -> Int
    ) throws(TransportError) -> Int

    /// Derives keys that only the two ends of this channel know.
    ///
    /// - Parameters:
    ///   - label: the purpose; each has a label of its own.
    ///   - target: is filled completely.
    /// - Throws: `protocolViolation` if the channel has no keys of its own, or the peer is not verified yet.
    func exportKeyingMaterial(_ label: String, into target: UnsafeMutableRawBufferPointer) throws(TransportError)

    /// Queues the channel's end of data, such as TLS's `close_notify`.
    func finish()
}

/// The channel of the local socket, which changes no bytes.
package final class PlainChannel: Channel {
    package let peer: PeerIdentity?

    /// Makes a channel.
    ///
    /// - Parameter peer: the identity that the kernel reports.
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

    /// Throws `protocolViolation`, because the local socket has no keys.
    package func exportKeyingMaterial(_: String, into _: UnsafeMutableRawBufferPointer) throws(TransportError) {
        throw TransportError(.protocolViolation, "the local socket has no keys")
    }

    package func finish() {}
}
