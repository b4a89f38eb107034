// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Glibc
import Synchronization
import SystemPackage

/// A socket like the one on which systemd hears from its services, for as long as this object lives.
final class NotifySocket: Sendable {
    let path: String

    private let descriptor: Int32
    private let heard = Mutex<[String]>([])

    init(in folder: String, _ name: String = "notify") throws {
        path = folder + "/" + name
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard bound == 0 else { throw Errno(rawValue: errno) }
    }

    deinit { close(descriptor) }

    /// All messages so far, in order.
    var messages: [String] {
        heard.withLock { heard in
            var buffer = [UInt8](repeating: 0, count: 4096)
            while case let count = recv(descriptor, &buffer, buffer.count, 0), count > 0 {
                heard.append(String(decoding: buffer.prefix(count), as: UTF8.self))
            }
            return heard
        }
    }

    /// How often a message has come.
    func count(_ message: String) -> Int { messages.count { $0 == message } }
}
