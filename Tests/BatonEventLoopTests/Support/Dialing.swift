// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc

/// Addresses that refuse connections or do not answer.
enum Dialing {
    /// A TCP address on the loopback whose listener has a full queue: the kernel drops every further SYN.
    final class BlackHole: Sendable {
        let address: SocketAddress
        private let listener: Listener
        private let fillers: [OwnedSocket]

        private struct OwnedSocket: Sendable {
            let number: Int32
        }

        init(_ host: IPAddress = .ipv4Loopback) throws {
            listener = try Listener(at: .ip(host, port: 0), on: EventLoop(name: "hole"), backlog: 0)
            address = listener.localAddress
            let port = address.port ?? 0
            fillers = (0..<4).map { _ in
                let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
                var target = sockaddr_in()
                target.sin_family = sa_family_t(AF_INET)
                target.sin_port = port.bigEndian
                target.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
                _ = withUnsafePointer(to: &target) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                    }
                }
                return OwnedSocket(number: number)
            }
        }

        deinit {
            for filler in fillers { close(filler.number) }
        }
    }

    /// An address where nobody listens.
    static func deadAddress() throws(SocketError) -> SocketAddress {
        let listener = try Listener(at: .ip(.ipv4Loopback, port: 0), on: EventLoop(name: "dead"))
        defer { listener.close() }
        return listener.localAddress
    }

    /// Connects to a port of the loopback, sends a few bytes, and has the kernel reset the connection.
    ///
    /// - Returns: whether there was one. Blocks for some tenths of a millisecond.
    static func resetConnection(to port: UInt16) -> Bool {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { return false }
        defer { close(number) }
        var target = sockaddr_in()
        target.sin_family = sa_family_t(AF_INET)
        target.sin_port = port.bigEndian
        target.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let isConnected = withUnsafePointer(to: &target) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isConnected else { return false }
        let bytes = [UInt8](repeating: 0x16, count: 17)
        _ = send(number, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        usleep(.random(in: 50..<400))
        _ = send(number, bytes, 3, Int32(MSG_NOSIGNAL))
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(number, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
        return true
    }

    static func failure(_ body: () async throws(SocketError) -> Socket) async -> SocketError? {
        do throws(SocketError) {
            _ = try await body()
            return nil
        } catch {
            return error
        }
    }
}
