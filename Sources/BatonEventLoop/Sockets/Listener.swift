// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import SystemPackage

/// A listening socket, TCP or Unix-domain, that hands out each connection as a ``Socket``.
///
/// It survives every failure of accept. If only the reserve of ``DescriptorLimit`` is left, or the system lacks
/// resources, it backs off for 100 ms and tries again. Meanwhile the connections wait in the kernel's queue, and
/// nothing spins. ``close()`` or the end of the last reference stops listening and removes the socket file.
///
/// Every method is callable from anywhere. The owner bounds the number of connections by closing sockets.
package final class Listener: Sendable {
    /// The address that it listens on, with the real port if 0 was asked for.
    package let localAddress: SocketAddress
    /// The loop that the handlers run on.
    package let loop: EventLoop

    /// The default length of the kernel's queue of connections that are not accepted yet: 1024, more than programs that
    /// start at once.
    package static let defaultBacklog = 1024

    /// The greatest number of connections that one turn of the loop accepts.
    private static let batch = 16
    /// The pause after resources have run out.
    private static let backOffTime = Duration.milliseconds(100)

    private struct State {
        /// Nil once closed.
        var descriptor: SharedDescriptor?
        var file: UnixSocketFile?
        var source: ReadinessSource?
        var recovery: Timer?
        /// Whether accepting has failed for lack of resources since the last connection.
        var isInTrouble = false
    }

    private let poll: ReadinessPoll
    private let state: Lock<State>

    /// Listens on one address.
    ///
    /// - Parameters:
    ///   - address: an IP address with a port, 0 for any free one (`::` serves IPv4 as well); or the path of a socket
    ///     file, of at most 107 bytes, in a folder that exists. The file gets mode 0600. A file that a dead program
    ///     left is replaced.
    ///   - loop: the loop of the handlers.
    ///   - backlog: the length of the kernel's queue, ``defaultBacklog`` by default; the kernel cuts it to
    ///     `net.core.somaxconn`.
    /// - Throws: `addressInUse`, `unreachable` (an address of another machine), `notFound` (no such folder),
    ///   `outOfResources`, `other`.
    package init(at address: SocketAddress, on loop: EventLoop, backlog: Int = defaultBacklog) throws(SocketError) {
        let backlog = Int32(clamping: max(backlog, 0))
        self.loop = loop
        poll = try loop.poll()
        switch address {
        case .unix(let path):
            let descriptor = try SystemCall.streamSocket(AF_UNIX)
            let file = try UnixSocketFile(listeningOn: descriptor.rawValue, at: path, backlog: backlog)
            localAddress = address
            state = Lock(State(descriptor: SharedDescriptor(descriptor), file: file))
        case .ip(let host, _):
            let descriptor = try Self.listen(at: address, host, backlog: backlog)
            localAddress = try SocketAddress.of(descriptor.rawValue) { getsockname($0, $1, $2) }
            state = Lock(State(descriptor: SharedDescriptor(descriptor), file: nil))
        }
    }

    /// Listens on every address of this machine, over IPv6 and IPv4, or over IPv4 alone if the kernel has no IPv6.
    ///
    /// - Parameters:
    ///   - port: 0 for any free one.
    ///   - loop: the loop of the handlers.
    ///   - backlog: as in ``init(at:on:backlog:)``.
    ///   - defersAccept: for protocols whose clients send first. A connection is accepted when its first bytes have
    ///     come, or after about this time without any (`TCP_DEFER_ACCEPT` of tcp(7)). Nil accepts at once.
    /// - Throws: `addressInUse` if the port is taken on either, `outOfResources`, `other`.
    package static func onAllAddresses(
        port: UInt16, on loop: EventLoop, backlog: Int = defaultBacklog, defersAccept: Duration? = nil
    ) throws(SocketError) -> Listener {
        let listener: Listener
        do throws(SocketError) {
            listener = try Listener(at: .ip(.ipv6Any, port: port), on: loop, backlog: backlog)
        } catch  where error.lacksIPv6 {
            listener = try Listener(at: .ip(.ipv4Any, port: port), on: loop, backlog: backlog)
        }
        if let defersAccept {
            listener.state.withLock { state in
                guard let descriptor = state.descriptor else { return }
                // Only a hint to the kernel: a listener that refuses it still works.
                _ = SystemCall.setOption(
                    descriptor.rawValue, Int32(IPPROTO_TCP), TCP_DEFER_ACCEPT,
                    Int32(clamping: defersAccept.components.seconds))
            }
        }
        return listener
    }

    deinit {
        close()
    }

    private static func listen(
        at address: SocketAddress, _ host: IPAddress, backlog: Int32
    ) throws(SocketError) -> OwnedDescriptor {
        let activity = "listening at \(address)"
        let descriptor = try SystemCall.streamSocket(host.isIPv4 ? AF_INET : AF_INET6)
        let number = descriptor.rawValue
        // Connections of the last run that are in TIME_WAIT do not block the port. On Linux this never lets two
        // programs listen on one port.
        var result = SystemCall.setOption(number, SOL_SOCKET, SO_REUSEADDR, 1)
        if !host.isIPv4 {
            result = result.flatMap { _ in SystemCall.setOption(number, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 0) }
        }
        let bound = try address.withSystemAddress { pointer, length in
            result.flatMap { _ in SystemCall.once { bind(number, pointer, length) } }
                .flatMap { _ in SystemCall.once { Glibc.listen(number, backlog) } }
        }
        if case .failure(let error) = bound { throw SocketError(error, while: activity) }
        return descriptor
    }

    // MARK: - Accepting

    /// Starts accepting. Once; a second call, or one after ``close()``, does nothing.
    ///
    /// The listener holds the handlers until it is closed.
    ///
    /// - Parameters:
    ///   - onTrouble: called when descriptors, memory or watches have run out, for the log. Accepting resumes by
    ///     itself. Called once until a connection is accepted again.
    ///   - onAccept: gets a new socket of the listener's loop, not started yet.
    package func start(
        onTrouble: @escaping @Sendable (SocketError) -> Void = { _ in },
        onAccept: @escaping @Sendable (Socket) -> Void
    ) {
        state.withLock { state in
            guard let descriptor = state.descriptor, state.source == nil else { return }
            let source = ReadinessSource(
                descriptor, in: poll, onReadable: { [weak self] in self?.acceptBatch(onAccept, onTrouble) })
            state.source = source
            state.recovery = Timer(on: loop) { [weak self] in self?.resume(onTrouble) }
            do throws(SocketError) {
                try source.resume()
            } catch {
                loop.execute { [weak self] in self?.backOff(for: error, onTrouble) }
            }
        }
    }

    /// Stops listening, removes the socket file, and drops connections that were not accepted. Idempotent.
    package func close() {
        var dropped = state.withLock { state in
            let dropped = state
            state = State(descriptor: nil, file: nil)
            return dropped
        }
        // The file goes first. A client that finds no file knows at once; one that finds it is still answered.
        dropped.file = nil
        dropped.recovery?.cancel()
        dropped.source?.cancel()
    }

    private func resume(_ onTrouble: @Sendable (SocketError) -> Void) {
        do throws(SocketError) {
            try state.withLock { $0.source }?.resume()
        } catch {
            backOff(for: error, onTrouble)
        }
    }

    private func acceptBatch(
        _ onAccept: @Sendable (Socket) -> Void, _ onTrouble: @Sendable (SocketError) -> Void
    ) {
        for _ in 0..<Self.batch {
            guard let descriptor = state.withLock({ $0.descriptor }) else { return }
            var storage = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            // Checked before the call, because an accepted connection cannot be put back.
            let number =
                DescriptorLimit.isNearlyReached ? -EMFILE : baton_accept(descriptor.rawValue, &storage, &length)
            guard number >= 0 else {
                let error = Errno(rawValue: -number)
                if error.meansWouldBlock { return }
                let failure = SocketError(error, while: "accepting a connection at \(localAddress)")
                // Other errors (accept(2) names eleven) concern only the first connection in the queue.
                if failure.code == .outOfResources { return backOff(for: failure, onTrouble) }
                continue
            }
            state.withLock { $0.isInTrouble = false }
            let owned = OwnedDescriptor(takingOwnershipOf: number)
            guard let remote = SocketAddress(storage),
                let socket = try? Socket(SharedDescriptor(owned), on: loop, remote: remote)
            else { continue }
            onAccept(socket)
        }
    }

    /// Stops accepting for a moment, and reports the first failure in a row.
    private func backOff(for failure: SocketError, _ onTrouble: @Sendable (SocketError) -> Void) {
        let isFirst = state.withLock { state in
            defer { state.isInTrouble = true }
            state.source?.suspend()
            state.recovery?.schedule(after: Self.backOffTime)
            return !state.isInTrouble
        }
        if isFirst { onTrouble(failure) }
    }
}

extension SocketError {
    /// Whether an IPv6 socket failed because this kernel or this network namespace has no IPv6.
    fileprivate var lacksIPv6: Bool {
        underlyingError == .addressFamilyNotSupported || underlyingError == .addressNotAvailable
    }
}
