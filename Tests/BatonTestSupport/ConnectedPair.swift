// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop
package import BatonProtocol
package import BatonTransport

/// Two connections over a socket pair: the one that accepted, on `loop`, and the one that dialled, on a loop of its
/// own.
///
/// - Parameters:
///   - limits: of the end that dialled, apart from the deadline of a hello.
///   - accepting: makes the channel of the end that accepted; by default it is plain, as on the local socket.
///   - dialling: the same of the other end.
package func connectedPair(
    on loop: EventLoop, limits: Limits = Limits(), budget: ReceiveBudget? = nil,
    accepting: () throws -> sending any Channel = { PlainChannel(peer: .localUser(0)) },
    dialling: () throws -> sending any Channel = { PlainChannel(peer: .localUser(0)) }
) async throws -> (Connection, Connection) {
    let other = EventLoop(name: "other end")
    let (first, second) = try Socket.pair(on: loop, other)
    // Other tests may hold all threads of tasks for longer than a hello may take.
    var (near, far) = (Limits(), limits)
    near.helloDeadline = .seconds(60)
    far.helloDeadline = .seconds(60)
    let ends = (
        Connection(socket: first, channel: try accepting(), role: .acceptor, limits: near, on: loop),
        Connection(socket: second, channel: try dialling(), role: .dialer, limits: far, budget: budget, on: other)
    )
    await ends.0.start()
    await ends.1.start()
    try await ends.0.ready()
    try await ends.1.ready()
    return ends
}
