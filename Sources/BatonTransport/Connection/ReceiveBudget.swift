// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop
import BatonProtocol

/// The bytes that the peers of a class of connections may make this process hold, whatever the number of connections.
///
/// Credit is a promise that cannot be taken back. So this counts credit and not received bytes: the sum of the
/// connections' greatest windows never exceeds the part of the ``BatonEventLoop/ByteBudget``. The reserve of the part
/// is divided into equal floors, which keep every connection going. A connection whose peer is known also gets half of
/// the bytes that are left, up to the greatest window, for as long as it lives.
///
/// So the first connection has a window for a long and fast link, and later ones still have more than a link of 100
/// MB/s at 2 ms needs. Unauthenticated peers get no share.
///
/// Safe to use from any thread.
package final class ReceiveBudget: Sendable {
    /// The bytes that every connection may hold, also before its peer is known.
    package let floor: Int
    /// The connection's window when it gets its share, in bytes, if the share is as large.
    let initialWindow: Int

    private let maximumWindow: Int
    private let part: ByteBudget.Part
    private let requests: ByteBudget.Part?
    /// Each connection's part of the reserve for requests.
    private let requestFloor: Int

    /// Makes a budget.
    ///
    /// - Parameters:
    ///   - part: for these connections only; its reserve becomes their floors.
    ///   - connections: the most connections at once, also those in their handshake. Their owner enforces it.
    ///   - initialWindow: a connection's window when it gets its share, if the share allows it.
    ///   - maximumWindow: the greatest share.
    ///   - requests: for requests of the peers and their answers, of these connections only; its reserve becomes equal
    ///     floors as well. Without one, the default, only the protocol bounds them.
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

    /// The budget of one connection for requests of its peer while their streams live: as received, as parsed, and
    /// their answers.
    func requestShare() -> ByteBudget.Part? { requests?.part(ofTaken: requestFloor) }

    /// The bytes above the floors that are left.
    var available: Int { part.available }

    /// The limits of a connection whose peer is not known yet.
    func limitingToFloor(_ limits: Limits) -> Limits {
        var limits = limits
        limits.initialConnectionWindow = min(limits.initialConnectionWindow, floor)
        limits.maximumConnectionWindow = limits.initialConnectionWindow
        return limits
    }

    /// A connection's share above its floor: half of the bytes that are left. They go back with the last reference.
    func share() -> ByteReservation { part.lease(atMost: max(0, maximumWindow - floor)) }
}
