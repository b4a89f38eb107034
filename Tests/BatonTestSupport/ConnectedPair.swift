public import BatonEventLoop
public import BatonProtocol
public import BatonTransport

/// Two connections over a socket pair, plain as on the local socket: the one that accepted, on `loop`, and the one that
/// dialled, on a loop of its own.
///
/// - Parameter limits: of the end that dialled.
public func connectedPair(on loop: EventLoop, limits: Limits = Limits()) async throws -> (Connection, Connection) {
    let other = EventLoop(name: "other end")
    let (first, second) = try Socket.pair(on: loop, other)
    let ends = (
        Connection(socket: first, channel: PlainChannel(peer: .localUser(0)), role: .acceptor, on: loop),
        Connection(socket: second, channel: PlainChannel(peer: .localUser(0)), role: .dialer, limits: limits, on: other)
    )
    await ends.0.start()
    await ends.1.start()
    try await ends.1.ready()
    return ends
}
