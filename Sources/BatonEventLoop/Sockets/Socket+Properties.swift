// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

extension Socket {
    /// The effective user of the process at the other end of a Unix-domain socket, as the kernel saw it at `connect` or
    /// `socketpair` (`SO_PEERCRED`); nil for TCP and after ``close()``.
    package var peerUser: UInt32? {
        guard localAddress.port == nil else { return nil }
        // `struct ucred` is a GNU extension that Swift does not import: pid, uid and gid, 32 bits each (unix(7)).
        var words = [UInt32](repeating: 0, count: 3)
        var length = socklen_t(MemoryLayout<UInt32>.size * words.count)
        let status = withDescriptor { getsockopt($0, SOL_SOCKET, SO_PEERCRED, &words, &length) }
        guard status == 0, Int(length) == MemoryLayout<UInt32>.size * words.count else { return nil }
        return words[1]
    }

    /// Limits the bytes that the kernel holds and has not sent yet (`TCP_NOTSENT_LOWAT`, tcp(7)).
    ///
    /// Without it the kernel takes several MiB ahead, and an urgent frame waits behind them. Sent and unacknowledged
    /// bytes do not count, so the throughput does not suffer if the limit covers one turn of the loop: 128 KiB to 1
    /// MiB. Does nothing for a Unix-domain socket.
    ///
    /// - Parameter bytes: at least 1.
    package func limitUnsent(to bytes: Int) {
        guard localAddress.port != nil else { return }
        let value = Int32(clamping: max(bytes, 1))
        _ = withDescriptor { SystemCall.setOption($0, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, value) }
    }

    /// Delays the read handler until this many bytes wait, or no more will come (`SO_RCVLOWAT`, socket(7)). The default
    /// is 1. Reading is not affected. Does nothing for a Unix-domain socket.
    ///
    /// - Parameter count: at least 1, and at most what the kernel holds for one connection, some 64 KiB.
    package func awaitBytes(_ count: Int) {
        guard localAddress.port != nil else { return }
        _ = withDescriptor { SystemCall.setOption($0, SOL_SOCKET, SO_RCVLOWAT, Int32(clamping: max(count, 1))) }
    }

    /// Makes two connected Unix-domain sockets, for tests and for programs that run in one process.
    ///
    /// - Throws: `outOfResources` if no descriptor is free.
    package static func pair(on first: EventLoop, _ second: EventLoop) throws(SocketError) -> (Socket, Socket) {
        var numbers: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &numbers) == 0 else {
            throw SocketError(Errno(rawValue: errno), while: "making a pair of sockets")
        }
        let descriptors = numbers.map { SharedDescriptor(OwnedDescriptor(takingOwnershipOf: $0)) }
        return (try Socket(descriptors[0], on: first), try Socket(descriptors[1], on: second))
    }
}
