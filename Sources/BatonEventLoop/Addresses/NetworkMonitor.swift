// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// Tells when the addresses of this machine change: a cable, another Wi-Fi, a VPN, the end of a sleep.
///
/// The kernel says so through a route socket (rtnetlink(7)); nothing is polled, and an idle machine causes no wake-up.
/// The kernel also speaks of renewals that change nothing, so the addresses are listed anew and compared, and the
/// handler runs only when they differ: at once for a few changes in a row, then every 5 s (``ChangePace``).
package final class NetworkMonitor: Sendable {
    private struct State {
        /// Nil once cancelled.
        var descriptor: SharedDescriptor?
        /// As they were when last looked at.
        var addresses: [InterfaceAddress]
        /// How often the kernel was found to have told of something.
        var signs: UInt64 = 0
        /// How many of them had come before ``addresses`` were listed.
        var signsListed: UInt64 = 0
        var source: ReadinessSource?
        var settling: Timer?
        var pace = ChangePace()
        var onChange: (@Sendable ([InterfaceAddress]) -> Void)?
    }

    private let settle: Duration
    private let includesLoopback: Bool
    private let state: Lock<State>

    // linux/netlink.h and linux/rtnetlink.h, which Swift does not see.
    private static let routeProtocol: Int32 = 0
    // RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR
    private static let groups: UInt32 = 0x1 | 0x10 | 0x100

    /// How many messages one turn of the loop reads at most.
    private static let batch = 64
    /// How long to wait before listing again when it failed.
    private static let retryDelay = Duration.seconds(1)

    /// Starts watching.
    ///
    /// - Parameters:
    ///   - loop: where the handler runs.
    ///   - settle: how long after the first sign of a change the addresses are looked at, 250 ms at first: a change
    ///     of network is a burst of small ones.
    ///   - includesLoopback: whether loopback addresses count, no at first.
    ///   - onChange: has all addresses as they are now. Held until ``cancel()`` or the end of the monitor.
    /// - Throws: `outOfResources` where no descriptor is free; whatever keeps the process from a route socket.
    package init(
        on loop: EventLoop, settle: Duration = .milliseconds(250), includesLoopback: Bool = false,
        onChange: @escaping @Sendable ([InterfaceAddress]) -> Void
    ) throws(SocketError) {
        self.settle = settle
        self.includesLoopback = includesLoopback
        let poll = try loop.poll()
        let descriptor = SharedDescriptor(try Self.routeSocket())
        // Listed after the socket is bound: what changes in between is told.
        let addresses = try InterfaceAddress.current(includingLoopback: includesLoopback)
        state = Lock(State(descriptor: descriptor, addresses: addresses, onChange: onChange))

        let source = ReadinessSource(.reading, of: descriptor, in: poll) { [weak self] in self?.drain() }
        let timer = Timer(on: loop) { [weak self] in self?.compare() }
        state.withLock { state in
            state.source = source
            state.settling = timer
        }
        source.resume()
    }

    deinit {
        cancel()
    }

    /// The addresses as they are now: those that were last looked at, or, where the kernel has told of anything since,
    /// listed anew. After ``cancel()`` those that were last looked at.
    ///
    /// Where nothing has changed it costs one read of the route socket, and no list of the kernel's. Callable from
    /// anywhere; the handler still runs when it would have.
    package var addresses: [InterfaceAddress] {
        drain()
        let (known, areCurrent) = state.withLock { ($0.addresses, $0.signs == $0.signsListed) }
        guard !areCurrent, let listed = try? InterfaceAddress.current(includingLoopback: includesLoopback) else {
            return known
        }
        return listed
    }

    /// Stops watching. Idempotent, callable from anywhere; on the loop, no handler runs any more.
    package func cancel() {
        let dropped = state.withLock { state in
            let dropped = state
            state = State(addresses: state.addresses)
            return dropped
        }
        dropped.source?.cancel()
        dropped.settling?.cancel()
    }

    private static func routeSocket() throws(SocketError) -> OwnedDescriptor {
        let activity = "watching the network"
        let kind = Int32(SOCK_RAW.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let made = SystemCall.once { socket(AF_NETLINK, kind, routeProtocol) }
        let number: Int32
        switch made {
        case .success(let value): number = value
        case .failure(let error): throw SocketError(error, while: activity)
        }
        let descriptor = OwnedDescriptor(takingOwnershipOf: number)
        // struct sockaddr_nl: 16 bits of family and 16 of padding, 32 of port id (0: the kernel chooses), 32 of groups.
        var storage = sockaddr_storage()
        storage.ss_family = sa_family_t(AF_NETLINK)
        let bound = withUnsafeMutableBytes(of: &storage) { bytes in
            bytes.storeBytes(of: groups, toByteOffset: 8, as: UInt32.self)
            return SystemCall.once {
                bind(number, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), 12)
            }
        }
        if case .failure(let error) = bound { throw SocketError(error, while: activity) }
        return descriptor
    }

    /// Reads the messages away: that there was one is all that matters.
    private func drain() {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let sawSign = state.withLock { state in
            guard let descriptor = state.descriptor else { return false }
            // Read and counted under one lock: who asks beside the loop would else find the messages read and no sign
            // of them.
            var sawSign = false
            for _ in 0..<Self.batch {
                let result = SystemCall.retrying { recv(descriptor.rawValue, &buffer, buffer.count, 0) }
                if case .failure(let error) = result, error.meansWouldBlock { break }
                // Any other error is an overrun (ENOBUFS): messages were lost, so there were some.
                sawSign = true
            }
            if sawSign { state.signs += 1 }
            return sawSign
        }
        if sawSign { lookSoon(after: settle) }
    }

    private func lookSoon(after delay: Duration) {
        state.withLock { state in
            // The first sign decides: a network that never rests is still looked at.
            guard let timer = state.settling, !timer.isScheduled else { return }
            let pause = state.pace.delay(at: MonotonicClock.nanoseconds())
            timer.schedule(after: max(delay, .nanoseconds(pause)))
        }
    }

    private func compare() {
        do throws(SocketError) {
            // Counted before they are listed: of what changes meanwhile there is a sign again.
            let signs = state.withLock { $0.signs }
            let current = try InterfaceAddress.current(includingLoopback: includesLoopback)
            let handler = state.withLock { state -> (@Sendable ([InterfaceAddress]) -> Void)? in
                guard state.descriptor != nil else { return nil }
                state.signsListed = signs
                guard Set(current) != Set(state.addresses) else { return nil }
                state.addresses = current
                state.pace.note(at: MonotonicClock.nanoseconds())
                return state.onChange
            }
            handler?(current)
        } catch {
            lookSoon(after: Self.retryDelay)
        }
    }
}
