// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// The connections to other devices: which there may be, and how long an idle one stays. A value that is told the time.
///
/// - Parameters:
///   - Line: a connection.
///   - Host: an address without a port.
package struct Links<Line: AnyObject & Sendable, Host: Hashable & Sendable>: Sendable {
    /// The bounds of connections.
    package struct Bounds: Sendable {
        let connections, connectionsPerDevice: Int
        let dials, unprovedDials: Int
        let handshakes, handshakesPerHost: Int
        let idleLife: Duration

        package init(
            connections: Int, connectionsPerDevice: Int, dials: Int, unprovedDials: Int, handshakes: Int,
            handshakesPerHost: Int, idleLife: Duration
        ) {
            (self.connections, self.connectionsPerDevice) = (connections, connectionsPerDevice)
            (self.dials, self.unprovedDials) = (dials, unprovedDials)
            (self.handshakes, self.handshakesPerHost) = (handshakes, handshakesPerHost)
            self.idleLife = idleLife
        }
    }

    package enum Refusal: Error, Hashable {
        case tooManyConnections
        case tooManyOfDevice
        case tooManyDials
        /// Of devices that no connection has proved and that no user has named.
        case tooManyUnproved
    }

    /// How a wanted device is reached.
    package enum Dial: Sendable, Hashable {
        /// It is being dialled.
        ///
        /// - Parameter endsEarly: whether the dial takes less time than this one may.
        case shared(endsEarly: Bool)
        /// It has to be dialled, until ``Links/endDial(of:)``.
        ///
        /// - Parameter isBrief: whether in the time for devices that no connection has proved.
        case new(isBrief: Bool)
    }

    private enum Use {
        case busy
        case idle(since: Instant)
        /// So many handoffs of this device hold a claim of the other's.
        case held(Int)
    }

    private struct Link {
        let line: Line
        let device: String
        var use = Use.busy

        var isHeld: Bool {
            if case .held = use { true } else { false }
        }
    }

    private enum Dialling {
        /// The dial takes the place of its connection.
        case running(isBrief: Bool, isProved: Bool)
        /// Its connection has the place.
        case arrived(isBrief: Bool, isProved: Bool)

        var isBrief: Bool {
            switch self {
            case .running(let isBrief, _), .arrived(let isBrief, _): isBrief
            }
        }

        var isProved: Bool {
            switch self {
            case .running(_, let isProved), .arrived(_, let isProved): isProved
            }
        }

        var takesPlace: Bool {
            switch self {
            case .running: true
            case .arrived: false
            }
        }
    }

    private let bounds: Bounds
    private var links: [Link] = []
    private var dials: [String: Dialling] = [:]
    /// Dials of devices that no connection has proved and that no user has named. Half of the places may be of one
    /// host, so that a member of the account who invents devices at its own address keeps others from no place.
    private var briefDials: Places<String, Host>
    private var handshakes: Places<ObjectIdentifier, Host>

    package init(_ bounds: Bounds) {
        self.bounds = bounds
        briefDials = Places(bound: bounds.unprovedDials, boundPerHost: bounds.unprovedDials / 2)
        handshakes = Places(bound: bounds.handshakes, boundPerHost: bounds.handshakesPerHost)
    }

    /// The number of connections.
    package var count: Int { links.count }
    /// The connections and those to come.
    private var places: Int { count + dials.values.count(where: \.takesPlace) }
    /// The devices that a connection leads to.
    package var devices: Set<String> { Set(links.map(\.device)) }
    package var lines: [Line] { links.map(\.line) }

    /// The connections with a device, the oldest first.
    package func lines(to device: String) -> [Line] { links.filter { $0.device == device }.map(\.line) }

    // MARK: Dialling

    /// A connection to a device is wanted, and no present one serves.
    ///
    /// - Parameters:
    ///   - isProved: whether a connection has proved the device.
    ///   - isWanted: whether a user has named it.
    ///   - hosts: where it would be dialled.
    package mutating func dial(
        _ device: String, isProved: Bool, isWanted: Bool, at hosts: [Host]
    ) throws(Refusal) -> Dial {
        let isBrief = !isProved && !isWanted
        if let running = dials[device] { return .shared(endsEarly: running.isBrief && !isBrief) }
        guard places < bounds.connections else { throw .tooManyConnections }
        // Half of the dials are for proved devices, whatever a member of the account invents.
        let unproved = dials.values.count { !$0.isProved }
        guard dials.count < bounds.dials, isProved || unproved < bounds.dials / 2 else { throw .tooManyDials }
        guard !isBrief || briefDials.enter(device, of: hosts) else { throw .tooManyUnproved }
        dials[device] = .running(isBrief: isBrief, isProved: isProved)
        return .new(isBrief: isBrief)
    }

    package mutating func endDial(of device: String) {
        dials[device] = nil
        briefDials.leave(device)
    }

    // MARK: Connections

    /// A device has connected that has not shown yet which one it is. It has a place until ``endHandshake(on:)``.
    package mutating func beginHandshake(on line: Line, from host: Host?) -> Bool {
        places < bounds.connections && handshakes.enter(ObjectIdentifier(line), of: host.map { [$0] } ?? [])
    }

    package mutating func endHandshake(on line: Line) { handshakes.leave(ObjectIdentifier(line)) }

    /// A device has proved its identity on a connection, which counts until ``remove(_:)``.
    ///
    /// - Parameter isDialled: whether this device has dialled, and the connection has a place already.
    /// - Returns: an older connection that makes room. None of the older ones leads to where the device is, or it had
    ///   not been dialled.
    package mutating func add(_ line: Line, of device: String, isDialled: Bool) throws(Refusal) -> Line? {
        guard places - (isDialled ? 1 : 0) < bounds.connections else { throw .tooManyConnections }
        var displaced: Line?
        let own = links.indices.filter { links[$0].device == device }
        if own.count >= bounds.connectionsPerDevice {
            guard isDialled, let oldest = own.first else { throw .tooManyOfDevice }
            displaced = links.remove(at: own.first { !links[$0].isHeld } ?? oldest).line
        }
        links.append(Link(line: line, device: device))
        if isDialled, let dial = dials[device] {
            dials[device] = .arrived(isBrief: dial.isBrief, isProved: dial.isProved)
        }
        return displaced
    }

    /// A connection has ended.
    package mutating func remove(_ line: Line) { links.removeAll { $0.line === line } }

    /// A handoff holds a claim on a connection, with or without streams.
    package mutating func hold(_ line: Line) { changeHolders(of: line, by: 1) }

    /// A handoff has let its claim go.
    package mutating func letGo(of line: Line) { changeHolders(of: line, by: -1) }

    private mutating func changeHolders(of line: Line, by number: Int) {
        guard let index = links.firstIndex(where: { $0.line === line }) else { return }
        let holders = if case .held(let holders) = links[index].use { holders + number } else { number }
        links[index].use = holders > 0 ? .held(holders) : .busy
    }

    /// It was looked whether a connection is used.
    ///
    /// - Returns: whether it is to be closed.
    package mutating func note(_ line: Line, isIdle: Bool, now: Instant) -> Bool {
        guard let index = links.firstIndex(where: { $0.line === line }) else { return false }
        switch links[index].use {
        case .held: return false
        case .idle(let since) where isIdle: return now - since >= bounds.idleLife
        case .busy, .idle:
            links[index].use = isIdle ? .idle(since: now) : .busy
            return false
        }
    }
}
