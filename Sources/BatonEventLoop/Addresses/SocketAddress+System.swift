// SPDX-License-Identifier: Apache-2.0

package import Glibc
import SystemPackage

// Conversion to and from the kernel's `sockaddr`.
extension SocketAddress {
    /// The length of a path in `sockaddr_un`, in bytes, without the terminating zero.
    package static let longestUnixPath = 107

    /// The family of its sockets: `AF_INET`, `AF_INET6` or `AF_UNIX`.
    var family: Int32 {
        switch self {
        case .ip(let address, _): address.isIPv4 ? AF_INET : AF_INET6
        case .unix: AF_UNIX
        }
    }

    /// Calls `body` with the address as a `sockaddr`.
    ///
    /// - Throws: `other` for an empty path, and one of more than 107 bytes.
    package func withSystemAddress<Value>(
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Value
    ) throws(SocketError) -> Value {
        var storage = sockaddr_storage()
        let length: Int
        switch self {
        case .ip(let address, let port) where address.isIPv4:
            var system = sockaddr_in()
            system.sin_family = sa_family_t(AF_INET)
            system.sin_port = port.bigEndian
            withUnsafeMutableBytes(of: &system.sin_addr) { $0.copyBytes(from: address.bytes) }
            length = MemoryLayout<sockaddr_in>.size
            withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: system, as: sockaddr_in.self) }
        case .ip(let address, let port):
            var system = sockaddr_in6()
            system.sin6_family = sa_family_t(AF_INET6)
            system.sin6_port = port.bigEndian
            system.sin6_scope_id = address.scopeID
            withUnsafeMutableBytes(of: &system.sin6_addr) { $0.copyBytes(from: address.bytes) }
            length = MemoryLayout<sockaddr_in6>.size
            withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: system, as: sockaddr_in6.self) }
        case .unix(let path):
            let bytes = path.withPlatformString { Array(UnsafeBufferPointer(start: $0, count: strlen($0))) }
            // An empty path would be a name without permissions (unix(7), abstract).
            guard (1...Self.longestUnixPath).contains(bytes.count) else {
                throw SocketError(.fileNameTooLong, while: "using the socket \(path) (at most 107 bytes)")
            }
            var system = sockaddr_un()
            system.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &system.sun_path) { $0.copyBytes(from: bytes.map(UInt8.init(bitPattern:))) }
            length = MemoryLayout<sockaddr_un>.size
            withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: system, as: sockaddr_un.self) }
        }
        return withUnsafePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(length)) }
        }
    }

    /// Reads an address that the kernel wrote into zeros; nil for a family other than IPv4, IPv6 and Unix.
    package init?(_ storage: sockaddr_storage) {
        let address: SocketAddress? = withUnsafeBytes(of: storage) { bytes in
            switch Int32(storage.ss_family) {
            case AF_INET:
                let system = bytes.load(as: sockaddr_in.self)
                let address = withUnsafeBytes(of: system.sin_addr) { IPAddress(bytes: Array($0)) }
                return address.map { .ip($0, port: UInt16(bigEndian: system.sin_port)) }
            case AF_INET6:
                let system = bytes.load(as: sockaddr_in6.self)
                let address = withUnsafeBytes(of: system.sin6_addr) {
                    IPAddress(bytes: Array($0), scopeID: system.sin6_scope_id)
                }
                return address.map { .ip($0, port: UInt16(bigEndian: system.sin6_port)) }
            case AF_UNIX:
                // A peer without a name has no path. In the abstract namespace, which Baton never uses, a path begins
                // with a zero.
                let path = bytes.dropFirst(MemoryLayout<sa_family_t>.size).prefix { $0 != 0 }
                return .unix(FilePath(platformString: path.map(CChar.init(bitPattern:)) + [0]))
            default:
                return nil
            }
        }
        guard let address else { return nil }
        self = address
    }

    /// Reads an IPv4 or IPv6 address of an interface list or another library; nil for any other family.
    package init?(_ pointer: UnsafePointer<sockaddr>) {
        let length: Int
        switch Int32(pointer.pointee.sa_family) {
        case AF_INET: length = MemoryLayout<sockaddr_in>.size
        case AF_INET6: length = MemoryLayout<sockaddr_in6>.size
        default: return nil
        }
        var storage = sockaddr_storage()
        let source = UnsafeRawBufferPointer(start: pointer, count: length)
        withUnsafeMutableBytes(of: &storage) { $0.copyMemory(from: source) }
        self.init(storage)
    }

    /// Asks the kernel for an address of a socket: `getsockname`, `getpeername`.
    static func of(
        _ descriptor: Int32, _ call: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) throws(SocketError) -> SocketAddress {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                SystemCall.once { call(descriptor, address, &length) }
            }
        }
        let activity = "asking for the address of a socket"
        switch result {
        case .failure(let error): throw SocketError(error, while: activity)
        case .success:
            guard let address = SocketAddress(storage) else {
                throw SocketError(.addressFamilyNotSupported, while: activity)
            }
            return address
        }
    }
}
