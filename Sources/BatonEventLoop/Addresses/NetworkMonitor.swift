// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// Reports when the addresses of this machine change: a cable, another Wi-Fi, a VPN, the end of a sleep.
///
/// The kernel notifies through a route socket (rtnetlink(7)), so nothing is polled and an idle machine is not woken.
/// The kernel also notifies of renewals that change nothing. So the addresses are listed again and compared, and the
/// handler runs only if they differ: at once for a few changes in a row, then every 5 s (``ChangeRateLimit``).
package final class NetworkMonitor: Sendable {
    private struct State {
        /// Nil once cancelled.
        var descriptor: SharedDescriptor?
        /// The addresses of the last list.
        var addresses: [InterfaceAddress]
        /// The number of times that notifications were read.
        var notifications: UInt64 = 0
        /// The value of ``notifications`` before ``addresses`` were listed.
        var notificationsListed: UInt64 = 0
        var source: ReadinessSource?
        var debounceTimer: Timer?
        var rateLimit = ChangeRateLimit()
        var onChange: (@Sendable ([InterfaceAddress]) -> Void)?
    }

    private let debounce: Duration
    private let includesLoopback: Bool
    private let state: Lock<State>

    // linux/netlink.h and linux/rtnetlink.h, which Swift does not import.
    private static let routeProtocol: Int32 = 0
    // RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR
    private static let groups: UInt32 = 0x1 | 0x10 | 0x100

    /// The greatest number of messages that one turn of the loop reads.
    private static let batch = 64
    /// The time before listing again after it failed.
    private static let retryDelay = Duration.seconds(1)

    /// Starts watching.
    ///
    /// - Parameters:
    ///   - loop: the loop of the handler.
    ///   - debounce: the time from the first notification to the list of addresses, 250 ms by default. A change of
    ///     network is a burst of small ones.
    ///   - includesLoopback: whether loopback addresses count, false by default.
    ///   - onChange: gets all present addresses. Held until ``cancel()`` or the end of the monitor.
    /// - Throws: `outOfResources` if no descriptor is free; any reason why the process gets no route socket.
    package init(
        on loop: EventLoop, debounce: Duration = .milliseconds(250), includesLoopback: Bool = false,
        onChange: @escaping @Sendable ([InterfaceAddress]) -> Void
    ) throws(SocketError) {
        self.debounce = debounce
        self.includesLoopback = includesLoopback
        let poll = try loop.poll()
        let descriptor = SharedDescriptor(try Self.routeSocket())
        // Listed after the socket is bound, so that every later change is notified.
        let addresses = try InterfaceAddress.current(includingLoopback: includesLoopback)
        state = Lock(State(descriptor: descriptor, addresses: addresses, onChange: onChange))

        let source = ReadinessSource(.reading, of: descriptor, in: poll) { [weak self] in self?.drain() }
        let timer = Timer(on: loop) { [weak self] in self?.compare() }
        state.withLock { state in
            state.source = source
            state.debounceTimer = timer
        }
        try source.resume()
    }

    deinit {
        cancel()
    }

    /// The present addresses. After ``cancel()``, those of the last list.
    ///
    /// They are listed again only if the kernel has notified since the last list. Otherwise this costs one read of the
    /// route socket. Callable from anywhere; it does not change when the handler runs.
    package var addresses: [InterfaceAddress] {
        drain()
        let (known, areCurrent) = state.withLock { ($0.addresses, $0.notifications == $0.notificationsListed) }
        guard !areCurrent, let listed = try? InterfaceAddress.current(includingLoopback: includesLoopback) else {
            return known
        }
        return listed
    }

    /// Stops watching. Idempotent, callable from anywhere. After a call on the loop no handler runs any more.
    package func cancel() {
        let dropped = state.withLock { state in
            let dropped = state
            state = State(addresses: state.addresses)
            return dropped
        }
        dropped.source?.cancel()
        dropped.debounceTimer?.cancel()
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

    /// Reads and drops the messages: only their existence matters.
    private func drain() {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let sawSign = state.withLock { state in
            guard let descriptor = state.descriptor else { return false }
            // Read and counted under one lock. Otherwise another thread could find the messages gone and not counted.
            var sawSign = false
            for _ in 0..<Self.batch {
                let result = SystemCall.retrying { recv(descriptor.rawValue, &buffer, buffer.count, 0) }
                if case .failure(let error) = result, error.meansWouldBlock { break }
                // Any other error is an overrun (ENOBUFS), which means that messages were lost.
                sawSign = true
            }
            if sawSign { state.notifications += 1 }
            return sawSign
        }
        if sawSign { scheduleComparison(after: debounce) }
    }

    private func scheduleComparison(after delay: Duration) {
        state.withLock { state in
            // The first notification sets the time, so that a network that never rests is still listed.
            guard let timer = state.debounceTimer, !timer.isScheduled else { return }
            let pause = state.rateLimit.delay(at: MonotonicClock.nanoseconds())
            timer.schedule(after: max(delay, .nanoseconds(pause)))
        }
    }

    private func compare() {
        do throws(SocketError) {
            // Counted before the list, so that a change during the list is found by the next comparison.
            let notifications = state.withLock { $0.notifications }
            let current = try InterfaceAddress.current(includingLoopback: includesLoopback)
            let handler = state.withLock { state -> (@Sendable ([InterfaceAddress]) -> Void)? in
                guard state.descriptor != nil else { return nil }
                state.notificationsListed = notifications
                guard Set(current) != Set(state.addresses) else { return nil }
                state.addresses = current
                state.rateLimit.record(at: MonotonicClock.nanoseconds())
                return state.onChange
            }
            handler?(current)
        } catch {
            scheduleComparison(after: Self.retryDelay)
        }
    }
}
