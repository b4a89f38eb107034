// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// The wrapper of all system calls: a result or an `Errno`, and the retry after a signal.
enum SystemCall {
    /// Calls `body` until no signal interrupts it.
    ///
    /// Not for `close`, after which the descriptor is gone, nor for `connect`, which continues by itself.
    static func retrying<Value: FixedWidthInteger & SignedInteger>(_ body: () -> Value) -> Result<Value, Errno> {
        while true {
            let value = body()
            if value >= 0 { return .success(value) }
            let error = errno
            if error != EINTR { return .failure(Errno(rawValue: error)) }
        }
    }

    /// Calls `body` once.
    static func once<Value: FixedWidthInteger & SignedInteger>(_ body: () -> Value) -> Result<Value, Errno> {
        let value = body()
        return value >= 0 ? .success(value) : .failure(Errno(rawValue: errno))
    }

    /// A new stream socket, non-blocking and closed on exec, outside the reserve of ``DescriptorLimit``.
    static func streamSocket(_ domain: Int32) throws(SocketError) -> OwnedDescriptor {
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        switch once({ socket(domain, kind, 0) }) {
        case .success(let number):
            let descriptor = OwnedDescriptor(takingOwnershipOf: number)
            guard !DescriptorLimit.reaches(number) else {
                throw SocketError(.tooManyOpenFiles, while: "making a socket")
            }
            if domain != AF_UNIX { limitRetransmissionDelay(number) }
            return descriptor
        case .failure(let error): throw SocketError(error, while: "making a socket")
        }
    }

    /// Has the kernel retransmit at least once a second, so that a connection recovers at once when its link is back.
    /// By default the kernel doubles the delay each time, up to two minutes.
    ///
    /// Sockets that a listener accepts inherit the option. `TCP_RTO_MAX_MS` exists since Linux 6.15, and no header
    /// names it yet; an older kernel keeps its defaults. `TCP_USER_TIMEOUT` (tcp(7)) is set with it. Otherwise the
    /// kernel would give up after its 15 tries, which is 13 s.
    private static func limitRetransmissionDelay(_ descriptor: Int32) {
        let longestPauseOption: Int32 = 44
        guard case .success = setOption(descriptor, Int32(IPPROTO_TCP), longestPauseOption, 1000) else { return }
        _ = setOption(descriptor, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, 60_000)
    }

    /// Sets an option of type `int`.
    static func setOption(_ descriptor: Int32, _ level: Int32, _ name: Int32, _ value: Int32) -> Result<Int32, Errno> {
        var value = value
        return once { setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<Int32>.size)) }
    }

    /// The pending error of a socket, nil if there is none (`SO_ERROR`, which reading clears).
    static func pendingError(_ descriptor: Int32) -> Errno? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        switch once({ getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &value, &length) }) {
        case .success: return value == 0 ? nil : Errno(rawValue: value)
        case .failure(let error): return error
        }
    }
}
