// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What systemd is told, as sd_notify(3) describes: one datagram to the socket that `NOTIFY_SOCKET` names.
///
/// Written by hand because it is one `sendto`, and libsystemd would be a dependency of every machine.
enum ServiceManager {
    /// Sends a state such as `READY=1`. Does nothing where no service manager asked to be told.
    ///
    /// - Returns: whether somebody was told.
    @discardableResult
    static func notify(_ state: String) -> Bool {
        guard let value = getenv("NOTIFY_SOCKET") else { return false }
        return notify(state, socket: String(cString: value))
    }

    /// - Parameter path: absolute, or beginning with `@` for Linux's abstract name space.
    static func notify(_ state: String, socket path: String) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var name = Array(path.utf8)
        guard name.first == UInt8(ascii: "/") || name.first == UInt8(ascii: "@"),
            name.count < MemoryLayout.size(ofValue: address.sun_path)
        else { return false }
        if name[0] == UInt8(ascii: "@") { name[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        // An abstract name is as long as it is said to be; a path ends with its zero byte.
        let length = MemoryLayout<sa_family_t>.size + name.count + (name[0] == 0 ? 0 : 1)

        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { _ = close(descriptor) }
        let bytes = Array(state.utf8)
        let sent = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, socklen_t(length))
            }
        }
        return sent == bytes.count
    }
}
