// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// The bounds of connections with other devices.
package struct LinkLimits: Sendable {
    /// Connections at once, in both directions, with those that are being dialled. One more is closed unread, or after
    /// its handshake if others came first meanwhile. Each costs at most 1 MiB and its share of the buffers. Default 32.
    package var connections = 32
    /// Live connections with one device, so that none uses up those of the others. Default 4.
    package var connectionsPerDevice = 4
    /// A connection without a stream, on which nobody holds a claim, is closed after this time. Default 60 s.
    package var idleLife = Duration.seconds(60)
    /// Devices that are dialled at once, so that other connections always find a place. At most half of them may be
    /// devices that no connection has proved. If a revocation is to be told to more, they have their turn a little
    /// later. Default 16.
    package var dials = 16
    /// Devices that are dialled at once although the user did not name them and no connection has proved them. A member
    /// of the account can announce devices that do not exist. Half of the places may be of one host. Default 4.
    package var unprovedDials = 4
    /// Connections of others that have not shown yet who they are. Default 16.
    package var handshakes = 16
    /// The same from one address, so that a silent device keeps no other out. In an IPv6 network a device can make
    /// itself several addresses. Default 4.
    package var handshakesPerAddress = 4

    package init() {}
}

/// The connections to other devices: which there may be, and how long an idle one stays. A value that is told the time.
///
/// - Parameters:
///   - Line: a connection.
///   - Host: an address without a port.
package struct Links<Line: AnyObject & Sendable, Host: Hashable & Sendable>: Sendable {
    private struct Link {
        let line: Line
        let device: String
        var idleSince: Instant?
        /// So many handoffs of this device hold a claim of the other's.
        var holders = 0
    }

    private let limits: LinkLimits
    private var links: [Link] = []
    /// Each takes the place of its connection.
    private var dials: [String: (isBrief: Bool, isProved: Bool)] = [:]
    private var briefDials: Places<String, Host>
    private var handshakes: Places<ObjectIdentifier, Host>

    package init(_ limits: LinkLimits) {
        self.limits = limits
        briefDials = Places(bound: limits.unprovedDials, boundPerHost: limits.unprovedDials / 2)
        handshakes = Places(bound: limits.handshakes, boundPerHost: limits.handshakesPerAddress)
    }

    /// The number of connections.
    package var count: Int { links.count }
    /// The connections and those to come.
    private var places: Int { count + dials.count }
    /// The devices that a connection leads to.
    package var devices: Set<String> { Set(links.map(\.device)) }
    package var lines: [Line] { links.map(\.line) }

    /// The connections with a device, the oldest first.
    package func lines(to device: String) -> [Line] { links.filter { $0.device == device }.map(\.line) }

    // MARK: Dialling

    /// A connection to a device is wanted, and no present one serves: it is dialled until ``endDial(of:)``, if it is
    /// not dialled already.
    ///
    /// - Parameters:
    ///   - isProved: whether a connection has proved the device.
    ///   - isWanted: whether a user has named it.
    ///   - hosts: where it would be dialled.
    /// - Returns: whether the dial, which may be an earlier one, takes only the time for devices that no connection has
    ///   proved.
    package mutating func dial(
        _ device: String, isProved: Bool, isWanted: Bool, at hosts: [Host]
    ) throws(LinkRefusal) -> Bool {
        if let running = dials[device] { return running.isBrief }
        guard places < limits.connections else { throw .tooManyConnections }
        let unproved = dials.values.count { !$0.isProved }
        guard dials.count < limits.dials, isProved || unproved < limits.dials / 2 else { throw .tooManyDials }
        let isBrief = !isProved && !isWanted
        guard !isBrief || briefDials.enter(device, of: hosts) else { throw .tooManyUnproved }
        dials[device] = (isBrief, isProved)
        return isBrief
    }

    package mutating func endDial(of device: String) {
        dials[device] = nil
        briefDials.leave(device)
    }

    // MARK: Connections

    /// A device has connected that has not shown yet which one it is. It has a place until ``endHandshake(on:)``.
    package mutating func beginHandshake(on line: Line, from host: Host?) -> Bool {
        places < limits.connections && handshakes.enter(ObjectIdentifier(line), of: host.map { [$0] } ?? [])
    }

    package mutating func endHandshake(on line: Line) { handshakes.leave(ObjectIdentifier(line)) }

    /// A device has proved its identity on a connection, which counts until ``remove(_:)``.
    ///
    /// - Parameter isDialled: whether this device has dialled: the connection takes the place of the dial.
    /// - Returns: an older connection that makes room. None of the older ones leads to where the device is, or it had
    ///   not been dialled.
    package mutating func add(_ line: Line, of device: String, isDialled: Bool) throws(LinkRefusal) -> Line? {
        if isDialled { endDial(of: device) }
        guard places < limits.connections else { throw .tooManyConnections }
        var displaced: Line?
        let own = links.indices.filter { links[$0].device == device }
        if own.count >= limits.connectionsPerDevice {
            guard isDialled, let oldest = own.first else { throw .tooManyOfDevice }
            displaced = links.remove(at: own.first { links[$0].holders == 0 } ?? oldest).line
        }
        links.append(Link(line: line, device: device))
        return displaced
    }

    /// A connection has ended.
    package mutating func remove(_ line: Line) { links.removeAll { $0.line === line } }

    /// A handoff holds a claim on a connection, with or without streams.
    package mutating func hold(_ line: Line) { index(of: line).map { links[$0].holders += 1 } }

    /// A handoff has let its claim go.
    package mutating func letGo(of line: Line) {
        index(of: line).map { links[$0].holders = max(0, links[$0].holders - 1) }
    }

    private func index(of line: Line) -> Int? { links.firstIndex { $0.line === line } }

    /// It was looked whether a connection is used.
    ///
    /// - Returns: whether it is to be closed.
    package mutating func note(_ line: Line, isIdle: Bool, now: Instant) -> Bool {
        guard let index = index(of: line) else { return false }
        let since = isIdle && links[index].holders == 0 ? links[index].idleSince ?? now : nil
        links[index].idleSince = since
        return since.map { now - $0 >= limits.idleLife } ?? false
    }
}

/// Why there can be no further connection.
package enum LinkRefusal: Error, Hashable {
    case tooManyConnections
    case tooManyOfDevice
    case tooManyDials
    /// Of devices that no connection has proved and that no user has named.
    case tooManyUnproved
}
