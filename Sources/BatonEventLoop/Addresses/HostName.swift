// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The system's resolver of host names.
package enum HostName {
    /// Returns the addresses of a host, one at least, in the order in which to try them (RFC 6724).
    ///
    /// Blocks, possibly for many seconds: see getaddrinfo(3). So it is not for an event loop.
    ///
    /// - Throws: `unreachable`, with the reason in words, if the name has none.
    package static func addresses(of host: String, port: UInt16) throws(SocketError) -> [SocketAddress] {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var first: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, String(port), &hints, &first)
        guard status == 0 else {
            let reason = gai_strerror(status).map { String(cString: $0) } ?? "error \(status)"
            throw SocketError(.unreachable, while: "looking up \(host) (\(reason))")
        }
        defer { freeaddrinfo(first) }
        var addresses: [SocketAddress] = []
        var next = first
        while let info = next {
            if let system = info.pointee.ai_addr, let address = SocketAddress(system) { addresses.append(address) }
            next = info.pointee.ai_next
        }
        guard !addresses.isEmpty else { throw SocketError(.unreachable, while: "looking up \(host)") }
        return addresses
    }
}
