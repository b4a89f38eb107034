// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// One end of an `EndpointPair`: a session, what it reported, and what it received.
package final class Endpoint {
    /// The session under test.
    package var session: Session
    /// Every event so far, in order.
    package private(set) var events: [Event] = []
    /// The delivered bytes of each stream.
    package private(set) var received: [StreamID: [UInt8]] = [:]
    /// Delivered bytes of each stream that are not consumed yet.
    package private(set) var unconsumed: [StreamID: Int] = [:]
    /// Bytes delivered on all streams.
    package private(set) var deliveredBytes = 0
    /// Bytes written to the link.
    package fileprivate(set) var writtenBytes = 0
    /// The error that `receive` threw, if any.
    package private(set) var failure: ConnectionError?
    /// Whether delivered bytes count as consumed at once. Default true.
    package var consumesAtOnce = true
    /// Whether delivered bytes are kept in `received`. Default true; off for large amounts.
    package var keepsReceived = true
    /// Called for each event after it was recorded; may use `session`.
    package var onEvent: ((Endpoint, Event, Instant) -> Void)?

    // `#expect` cannot look into a session, which is not copyable.

    /// Whether the session has no stream.
    package var isIdle: Bool { session.isIdle }

    init(session: consuming Session) {
        self.session = session
    }

    /// Consumes up to `count` delivered bytes of a stream and returns how many those were.
    @discardableResult
    package func consume(_ id: StreamID, _ count: Int = .max, now: Instant) -> Int {
        let part = min(count, unconsumed[id] ?? 0)
        unconsumed[id, default: 0] -= part
        session.consumed(id, part, now: now)
        drainEvents(now: now)
        return part
    }

    /// Hands bytes to the session as a driver does, all of them unless it fails.
    package func receive(_ bytes: [UInt8], now: Instant) {
        bytes.withUnsafeBytes { whole in
            var rest = whole
            while !rest.isEmpty, failure == nil {
                var delivered: [(StreamID, Int)] = []
                do throws(ConnectionError) {
                    let taken = try session.receive(rest, now: now) { id, payload in
                        delivered.append((id, payload.count))
                        if keepsReceived { received[id, default: []].append(contentsOf: payload) }
                    }
                    rest = UnsafeRawBufferPointer(rebasing: rest[taken...])
                } catch {
                    failure = error
                }
                for (id, count) in delivered {
                    deliveredBytes += count
                    unconsumed[id, default: 0] += count
                    if consumesAtOnce { consume(id, now: now) }
                }
                drainEvents(now: now)
            }
        }
    }

    /// Takes all events that wait.
    package func drainEvents(now: Instant) {
        while let event = session.nextEvent() {
            events.append(event)
            if case .reset(let id, _) = event { unconsumed[id] = nil }
            onEvent?(self, event, now)
        }
    }
}

/// Two sessions joined by a link in simulated time: latency, bandwidth, and pieces of random size, all from a seed.
///
/// The same seed gives the same run. Nothing here sleeps or reads a clock.
package final class EndpointPair {
    /// The effect of the link on bytes.
    package struct Link: Sendable {
        /// Time on the way, each direction. Default 1 ms.
        package var latency: Duration
        /// Bytes a second, each direction; nil has no limit. Default nil.
        package var bandwidth: Int?
        /// Whether bytes arrive cut at random places, in pieces from one byte on. Default true.
        package var fragments: Bool
        /// The most bytes that wait for the link in one direction, as in a socket's buffer. Default 1 MiB; means
        /// nothing on a link without a limit of bandwidth.
        package var capacity: Int

        /// A link with these properties.
        package init(
            latency: Duration = .milliseconds(1), bandwidth: Int? = nil, fragments: Bool = true,
            capacity: Int = 1 << 20
        ) {
            self.latency = latency
            self.bandwidth = bandwidth
            self.fragments = fragments
            self.capacity = capacity
        }
    }

    private struct Packet {
        var bytes: [UInt8]
        var arrival: Instant
    }

    private struct Direction {
        var packets: [Packet] = []
        var head = 0
        /// When the link has sent all that waits for it.
        var free: Instant
        var isCut = false

        var next: Packet? { head < packets.count ? packets[head] : nil }
    }

    /// The side that dialled.
    package let dialer: Endpoint
    /// The side that accepted.
    package let acceptor: Endpoint
    /// Simulated time.
    package private(set) var clock = ManualClock()
    /// The source of every random choice; tests may draw from it as well.
    package var generator: SeededGenerator
    /// The link's properties.
    package let link: Link
    /// The largest output buffer that sessions are given. Default 64 KiB; a random size up to it is used when the link
    /// fragments.
    package var outputBytes = 65_536

    private var toAcceptor: Direction
    private var toDialer: Direction

    /// Two fresh sessions whose HELLOs are not exchanged yet.
    package init(
        seed: UInt64 = 1, link: Link = Link(), dialerLimits: Limits = Limits(), acceptorLimits: Limits = Limits()
    ) {
        generator = SeededGenerator(seed: seed)
        self.link = link
        let now = clock.now
        dialer = Endpoint(session: Session(role: .dialer, limits: dialerLimits, now: now))
        acceptor = Endpoint(session: Session(role: .acceptor, limits: acceptorLimits, now: now))
        toAcceptor = Direction(free: now)
        toDialer = Direction(free: now)
    }

    /// The present.
    package var now: Instant { clock.now }

    /// Loses everything from now on, in both directions, without telling either side.
    package func cut() {
        toAcceptor.isCut = true
        toDialer.isCut = true
    }

    /// Does what is next: writes what sessions have, or moves time to the next arrival or timeout.
    ///
    /// - Parameter deadline: time does not move beyond it.
    /// - Returns: false when nothing is left to do before the deadline.
    package func step(until deadline: Instant) -> Bool {
        let wroteDialer = flush(dialer, into: &toAcceptor)
        let wroteAcceptor = flush(acceptor, into: &toDialer)
        if wroteDialer || wroteAcceptor { return true }
        var next: Instant?
        for candidate in [
            toAcceptor.next?.arrival, toDialer.next?.arrival, dialer.session.nextTimeout(),
            acceptor.session.nextTimeout(), dialer.session.hasOutput ? room(in: toAcceptor) : nil,
            acceptor.session.hasOutput ? room(in: toDialer) : nil,
        ] {
            if let candidate { next = min(next ?? candidate, candidate) }
        }
        guard let next, next <= deadline else { return false }
        clock.advance(to: next)
        for endpoint in [dialer, acceptor] {
            if let due = endpoint.session.nextTimeout(), due <= now {
                endpoint.session.handleTimeout(now: now)
                endpoint.drainEvents(now: now)
            }
        }
        arrive(from: &toAcceptor, at: acceptor)
        arrive(from: &toDialer, at: dialer)
        return true
    }

    /// Runs until `condition` holds or simulated time has moved by `limit`; returns whether it holds.
    @discardableResult
    package func run(for limit: Duration = .seconds(10), until condition: () -> Bool = { false }) -> Bool {
        let deadline = now + limit
        while !condition() {
            guard step(until: deadline) else {
                clock.advance(to: deadline)
                return condition()
            }
        }
        return true
    }

    /// Runs until nothing is written or under way any more, whatever the timers say.
    package func settle() {
        while flush(dialer, into: &toAcceptor) || flush(acceptor, into: &toDialer) || toAcceptor.next != nil
            || toDialer.next != nil
        {
            _ = step(until: Instant(nanoseconds: .max))
        }
    }

    /// When the link takes more bytes: now, or when what waits for it has shrunk below the capacity.
    private func room(in direction: Direction) -> Instant {
        guard let bandwidth = link.bandwidth else { return now }
        let full = Duration.nanoseconds(Int64(Double(link.capacity) / Double(bandwidth) * 1e9))
        return direction.free - now > full ? direction.free + (.zero - full) : now
    }

    private func flush(_ endpoint: Endpoint, into direction: inout Direction) -> Bool {
        endpoint.drainEvents(now: now)
        var wrote = false
        while endpoint.session.hasOutput, room(in: direction) <= now {
            var size = outputBytes
            if link.fragments, outputBytes > Session.minimumOutput {
                size = Int.random(in: Session.minimumOutput...outputBytes, using: &generator)
            }
            var count = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, initialized in
                count = endpoint.session.nextOutput(into: UnsafeMutableRawBufferPointer(buffer), now: now)
                initialized = count
            }
            endpoint.drainEvents(now: now)
            guard count > 0 else { break }
            wrote = true
            endpoint.writtenBytes += count
            guard !direction.isCut else { continue }
            direction.free = max(direction.free, now)
            if let bandwidth = link.bandwidth {
                direction.free = direction.free + .nanoseconds(Int64(count) * 1_000_000_000 / Int64(bandwidth))
            }
            direction.packets.append(Packet(bytes: bytes, arrival: direction.free + link.latency))
        }
        return wrote
    }

    private func arrive(from direction: inout Direction, at endpoint: Endpoint) {
        while let packet = direction.next, packet.arrival <= now {
            direction.head += 1
            if direction.head > 64, direction.head * 2 > direction.packets.count {
                direction.packets.removeFirst(direction.head)
                direction.head = 0
            }
            guard !direction.isCut else { continue }
            var rest = packet.bytes[...]
            while !rest.isEmpty {
                // Mostly large pieces, often tiny ones: a boundary at every place of a header sooner or later.
                let size =
                    !link.fragments
                    ? rest.count
                    : Bool.random(using: &generator)
                        ? Int.random(in: 1...rest.count, using: &generator)
                        : Int.random(in: 1...min(16, rest.count), using: &generator)
                endpoint.receive(Array(rest.prefix(size)), now: now)
                rest = rest.dropFirst(size)
            }
        }
    }
}
