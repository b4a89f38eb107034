// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop
import BatonProtocol

/// What the peers of a class of connections together may make this process hold, whatever the number of connections.
///
/// Credit is a promise that cannot be taken back, so it is what counts here, and not what has come: the sum of the
/// connections' greatest windows never exceeds the part of the ``BatonEventLoop/ByteBudget``. What is reserved in it is
/// the connections' in equal floors, which keep each going however many there are; when its peer is known it gets,
/// above the floor, half of what is left, up to the most that a window may grow to, and keeps that until it is gone. So
/// the first has a window for a long and fast link, and those after it still more than a link of 100 MB/s at 2 ms has
/// under way. Strangers, whose handshake does not succeed, get no share.
///
/// Safe to use from any thread.
package final class ReceiveBudget: Sendable {
    /// Bytes that every connection may hold, also before its peer is known.
    package let floor: Int
    /// The connection window, in bytes, that a share begins with, if it is as large.
    let initialWindow: Int

    private let maximumWindow: Int
    private let part: ByteBudget.Part
    private let requests: ByteBudget.Part?
    /// Of what is reserved for requests, each connection's.
    private let requestFloor: Int

    /// - Parameters:
    ///   - part: of these connections alone; what is reserved in it is their floors.
    ///   - connections: the most that there are at once, those in their handshake included. Their owner sees to that.
    ///   - initialWindow: what a connection's window begins with, where its share allows it.
    ///   - maximumWindow: the greatest share.
    ///   - requests: for what the peers ask and are answered, of these connections alone; what is reserved in it is
    ///     theirs in equal floors as well. Without one, the default, only the protocol bounds that.
    package init(
        part: ByteBudget.Part, connections: Int, initialWindow: Int, maximumWindow: Int,
        requests: ByteBudget.Part? = nil
    ) {
        precondition(connections > 0 && part.reserved >= connections, "every connection has a floor")
        self.part = part
        floor = part.reserved / connections
        self.initialWindow = initialWindow
        self.maximumWindow = maximumWindow
        let isThere = part.take(connections * floor)
        precondition(isThere, "nobody else uses the part")
        self.requests = requests
        requestFloor = (requests?.reserved ?? 0) / connections
        let isThereToo = requests?.take(connections * requestFloor) ?? true
        precondition(isThereToo, "nobody else uses the part")
    }

    /// What one connection's requests may hold, its floor included.
    func requestShare() -> RequestShare? {
        requests.map { RequestShare(floor: requestFloor, above: $0) }
    }

    /// Bytes that are left above the floors of all connections.
    var available: Int { part.available }

    /// The limits of a connection whose peer is not known yet.
    func limitingToFloor(_ limits: Limits) -> Limits {
        var limits = limits
        limits.initialConnectionWindow = min(limits.initialConnectionWindow, floor)
        limits.maximumConnectionWindow = limits.initialConnectionWindow
        return limits
    }

    /// A connection's share: its floor and half of what is left. It goes back with the last reference.
    func share() -> ReceiveShare {
        ReceiveShare(floor: floor, above: part.lease(atMost: max(0, maximumWindow - floor)))
    }
}

/// What one connection may hold of what its peer sends.
final class ReceiveShare: Sendable {
    /// The floor of every connection included.
    let bytes: Int
    private let lease: ByteBudget.Lease

    fileprivate init(floor: Int, above lease: ByteBudget.Lease) {
        bytes = floor + lease.bytes
        self.lease = lease
    }
}
