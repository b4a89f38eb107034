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
        /// The addresses that the handler was told last, or that were there at the start.
        var addresses: [InterfaceAddress]
        /// The addresses as they are now; nil if the kernel has told of a change since.
        var present: [InterfaceAddress]?
        var source: ReadinessSource?
        var debounceTimer: Timer?
        var rateLimit = ChangeRateLimit()
        /// Nil once cancelled.
        var onChange: (@Sendable ([InterfaceAddress]) -> Void)?
    }

    private let state: Lock<State>

    // linux/netlink.h and linux/rtnetlink.h, which Swift does not import.
    private static let routeProtocol: Int32 = 0
    // RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR
    private static let groups: UInt32 = 0x1 | 0x10 | 0x100

    /// The time from the first notification to the list of addresses. A change of network is a burst of small ones.
    private static let debounce = Duration.milliseconds(250)
    /// The greatest number of messages that one turn of the loop reads.
    private static let batch = 64

    /// Starts watching.
    ///
    /// - Parameters:
    ///   - loop: the loop of the handler.
    ///   - onChange: gets all present addresses. Held until ``cancel()`` or the end of the monitor.
    /// - Throws: `outOfResources` if no descriptor is free; any reason why the process gets no route socket.
    package init(
        on loop: EventLoop, onChange: @escaping @Sendable ([InterfaceAddress]) -> Void
    ) throws(SocketError) {
        let poll = try loop.poll()
        let descriptor = SharedDescriptor(try Self.routeSocket())
        // Listed after the socket is bound, so that every later change is notified.
        let addresses = try InterfaceAddress.current(includingLoopback: true)
        state = Lock(State(addresses: addresses, onChange: onChange))

        let source = ReadinessSource(descriptor, in: poll, onReadable: { [weak self] in self?.drain(descriptor) })
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

    /// The addresses as they are now. They are listed anew only if the kernel has told of a change. Called on the loop,
    /// so that nothing is told meanwhile.
    ///
    /// - Throws: what ``InterfaceAddress/current(includingLoopback:includingIdle:)`` does.
    package var addresses: [InterfaceAddress] {
        get throws(SocketError) {
            if let present = state.withLock({ $0.present }) { return present }
            let listed = try InterfaceAddress.current(includingLoopback: true)
            state.withLock { if $0.onChange != nil { $0.present = listed } }
            return listed
        }
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
    private func drain(_ descriptor: SharedDescriptor) {
        var buffer = [UInt8](repeating: 0, count: 4096)
        var sawSign = false
        for _ in 0..<Self.batch {
            let result = SystemCall.retrying { recv(descriptor.rawValue, &buffer, buffer.count, 0) }
            if case .failure(let error) = result, error.meansWouldBlock { break }
            // Any other error is an overrun (ENOBUFS), which means that messages were lost.
            sawSign = true
        }
        guard sawSign else { return }
        state.withLock { $0.present = nil }
        scheduleComparison()
    }

    private func scheduleComparison() {
        state.withLock { state in
            // The first notification sets the time, so that a network that never rests is still listed.
            guard let timer = state.debounceTimer, !timer.isScheduled else { return }
            let pause = state.rateLimit.delay(at: MonotonicClock.nanoseconds())
            timer.schedule(after: max(Self.debounce, .nanoseconds(pause)))
        }
    }

    private func compare() {
        // A descriptor may be free in a moment.
        guard let current = try? InterfaceAddress.current(includingLoopback: true) else { return scheduleComparison() }
        let handler = state.withLock { state -> (@Sendable ([InterfaceAddress]) -> Void)? in
            guard state.onChange != nil, Set(current) != Set(state.addresses) else { return nil }
            state.addresses = current
            state.rateLimit.record(at: MonotonicClock.nanoseconds())
            return state.onChange
        }
        handler?(current)
    }
}
