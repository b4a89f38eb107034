// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Notifies systemd, as sd_notify(3) describes: by one datagram to the socket that `NOTIFY_SOCKET` names.
///
/// This is one `sendto`. libsystemd would be one more dependency.
enum ServiceManager {
    /// Sends a state such as `READY=1`. Without a service manager it does nothing.
    ///
    /// - Returns: whether the state was sent.
    @discardableResult
    static func notify(_ state: String) -> Bool {
        guard let value = getenv("NOTIFY_SOCKET") else { return false }
        return notify(state, socket: String(cString: value))
    }

    /// Sends a state to a socket.
    ///
    /// - Parameter path: an absolute path, or a name in Linux's abstract namespace, which begins with `@`.
    @discardableResult
    static func notify(_ state: String, socket path: String) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var name = Array(path.utf8)
        guard name.first == UInt8(ascii: "/") || name.first == UInt8(ascii: "@"),
            name.count < MemoryLayout.size(ofValue: address.sun_path)
        else { return false }
        if name[0] == UInt8(ascii: "@") { name[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        // The length of an abstract name is explicit. A path ends with a zero byte.
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
