// SPDX-License-Identifier: Apache-2.0

package import SystemPackage

/// The address of a stream socket: an IP address with a port, or a socket file.
package enum SocketAddress: Sendable, Hashable {
    /// TCP over IPv4 or IPv6.
    case ip(IPAddress, port: UInt16)
    /// A Unix-domain socket. The path is empty for a peer without a name, which is what clients are.
    case unix(FilePath)

    /// Reads `192.0.2.1:4000`, `[2001:db8::1]:4000`, `[fe80::1%eth0]:4000`, or an absolute path; nil for anything else.
    package init?(_ text: String) {
        if text.hasPrefix("/") {
            guard !text.utf8.contains(0) else { return nil }
            self = .unix(FilePath(text))
            return
        }
        guard let colon = text.lastIndex(of: ":"),
            let port = Self.port(text[text.index(after: colon)...])
        else { return nil }
        let host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            guard let address = IPAddress(host.dropFirst().dropLast()), host.contains(":") else { return nil }
            self = .ip(address, port: port)
        } else {
            guard let address = IPAddress(host), address.isIPv4, !host.contains(":") else { return nil }
            self = .ip(address, port: port)
        }
    }

    /// The IP address; nil for a socket file.
    package var ipAddress: IPAddress? {
        switch self {
        case .ip(let address, _): address
        case .unix: nil
        }
    }

    /// The port; nil for a socket file.
    package var port: UInt16? {
        switch self {
        case .ip(_, let port): port
        case .unix: nil
        }
    }

    /// Whether the address is valid on one link only, so that ``IPAddress/scopeID`` is needed to dial it.
    package var isLinkLocal: Bool { ipAddress?.isLinkLocal ?? false }

    /// Reads a port of 1 to 5 digits; `UInt16.init` would accept a sign as well.
    private static func port(_ text: Substring) -> UInt16? {
        guard (1...5).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return UInt16(text)
    }
}

extension SocketAddress: CustomStringConvertible {
    /// The address in the form that ``init(_:)`` reads; "a local process" for a peer without a name.
    package var description: String {
        switch self {
        case .ip(let address, let port): address.isIPv4 ? "\(address):\(port)" : "[\(address)]:\(port)"
        case .unix(let path): path.isEmpty ? "a local process" : path.string
        }
    }
}
