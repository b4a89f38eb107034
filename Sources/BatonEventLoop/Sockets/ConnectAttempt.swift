// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// One attempt to connect: from the system call to exactly one result.
///
/// The kernel, the timer and a cancelled task may end it, on any thread and in any order. The first one decides.
final class ConnectAttempt: Sendable {
    private let address: SocketAddress
    private let loop: EventLoop
    private let outcome = FirstResult<Result<Void, SocketError>>()
    private let source = Lock<ReadinessSource?>(nil)
    private let retry = Lock<Timer?>(nil)

    /// The time between two tries if the queue of a Unix-domain listener is full: `connect` fails at once then, and
    /// nothing reports when there is room.
    private static let retryDelay = Duration.milliseconds(10)

    init(to address: SocketAddress, on loop: EventLoop) {
        self.address = address
        self.loop = loop
    }

    private var activity: String { "connecting to \(address)" }

    /// Connects. Once.
    func run(timeout: Duration) async throws(SocketError) -> Socket {
        guard !Task.isCancelled else { throw SocketError(.cancelled, while: activity) }
        let descriptor = SharedDescriptor(try SystemCall.streamSocket(Self.domain(of: address)))
        try begin(descriptor)
        let result = await outcome.value(
            ifCancelled: .failure(SocketError(.cancelled, while: activity)), within: timeout, on: loop,
            else: .failure(SocketError(.timedOut, while: activity)))
        retry.withLock { $0 }?.cancel()
        // The socket watches the descriptor from here on, and a direction has only one source.
        source.withLock { $0.take() }?.cancel()
        try result.get()
        let socket = try Socket(descriptor, on: loop, remote: address)
        // A TCP connection to an ephemeral port of this machine can, rarely, connect to itself. Nobody listens there.
        guard address.port == nil || socket.localAddress != address else {
            throw SocketError(.connectionRefused, while: activity)
        }
        return socket
    }

    private static func domain(of address: SocketAddress) -> Int32 {
        switch address {
        case .ip(let address, _): address.isIPv4 ? AF_INET : AF_INET6
        case .unix: AF_UNIX
        }
    }

    private func begin(_ descriptor: SharedDescriptor) throws(SocketError) {
        switch try UnixSocketFile.connect(descriptor.rawValue, to: address) {
        case .success:
            outcome.decide(.success(()))
        case .failure(.nowInProgress), .failure(.interrupted):
            // An interrupted connect continues by itself (POSIX), like one that would have blocked.
            try watch(descriptor, in: try loop.poll())
        case .failure(let error) where error.meansWouldBlock && address.port == nil:
            let timer = Timer(on: loop) { [weak self] in self?.tryAgain(descriptor) }
            retry.withLock { $0 = timer }
            timer.schedule(after: Self.retryDelay)
        case .failure(let error) where error.meansWouldBlock:
            // For TCP this means that no free port is left (connect(2)).
            throw SocketError(.addressUnavailable, while: activity, underlyingError: error)
        case .failure(let error):
            throw SocketError(error, while: activity)
        }
    }

    private func watch(_ descriptor: SharedDescriptor, in poll: ReadinessPoll) throws(SocketError) {
        let source = ReadinessSource(.writing, of: descriptor, in: poll) { [weak self] in self?.decide(descriptor) }
        self.source.withLock { $0 = source }
        try source.resume()
    }

    private func tryAgain(_ descriptor: SharedDescriptor) {
        guard !outcome.isDecided else { return }
        do throws(SocketError) {
            try begin(descriptor)
        } catch {
            outcome.decide(.failure(error))
        }
    }

    /// Handles the kernel's answer. The source is level-triggered, and would report it again and again.
    private func decide(_ descriptor: SharedDescriptor) {
        source.withLock { $0.take() }?.cancel()
        let error = SystemCall.pendingError(descriptor.rawValue)
        outcome.decide(error.map { .failure(SocketError($0, while: activity)) } ?? .success(()))
    }
}
