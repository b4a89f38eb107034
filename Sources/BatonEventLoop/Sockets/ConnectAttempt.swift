// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// One attempt to connect: from the system call to exactly one result.
///
/// The kernel, the timer and a cancelled task may end it, on any thread and in any order. The first one decides. The
/// result is handed out when the attempt no longer watches the descriptor, because a direction has only one source.
final class ConnectAttempt: Sendable {
    private struct State {
        var continuation: CheckedContinuation<Void, Never>?
        var descriptor: SharedDescriptor?
        var source: ReadinessSource?
        var deadline: Timer?
        var retry: Timer?
        /// How the attempt ended. Set once.
        var outcome: Result<Void, SocketError>?
        /// The result, until it is taken.
        var result: Result<Socket, SocketError>?
        /// The attempt was cancelled before it started.
        var isCancelled = false
    }

    private let address: SocketAddress
    private let loop: EventLoop
    private let state = Lock(State())

    /// The time between two tries if the queue of a Unix-domain listener is full: `connect` fails at once then, and
    /// nothing reports when there is room.
    private static let retryDelay = Duration.milliseconds(10)

    init(to address: SocketAddress, on loop: EventLoop) {
        self.address = address
        self.loop = loop
    }

    private var activity: String { "connecting to \(address)" }

    /// Takes the result of the attempt. Once, after the continuation was resumed.
    ///
    /// The result goes through the lock and not through the continuation, because the thread sanitizer does not see the
    /// latter as a hand-over.
    func takeResult() throws(SocketError) -> Socket {
        let result = state.withLock { state in
            defer { state.result = nil }
            return state.result
        }
        guard let result else { throw SocketError(.closed, while: activity) }
        return try result.get()
    }

    /// Starts. Once; the continuation is resumed once.
    func start(timeout: Duration, continuation: CheckedContinuation<Void, Never>) {
        let mayStart = state.withLock { state in
            guard !state.isCancelled else {
                state.result = .failure(SocketError(.cancelled, while: activity))
                return false
            }
            state.continuation = continuation
            return true
        }
        guard mayStart else { return continuation.resume() }
        do throws(SocketError) {
            let descriptor = SharedDescriptor(try SystemCall.streamSocket(Self.domain(of: address)))
            state.withLock { state in
                guard state.outcome == nil else { return }
                state.descriptor = descriptor
                state.deadline = Timer(on: loop) { [weak self] in self?.timeOut() }
            }
            try begin(descriptor)
        } catch {
            end(.failure(error))
        }
        // Armed after the first try, because a connection that is made at once needs no timer.
        state.withLock { $0.deadline }?.schedule(after: timeout)
    }

    /// Ends the attempt because its task was cancelled.
    func cancel() {
        state.withLock { $0.isCancelled = true }
        end(.failure(SocketError(.cancelled, while: activity)))
    }

    private func timeOut() {
        end(.failure(SocketError(.timedOut, while: activity)))
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
            end(.success(()))
        case .failure(.nowInProgress), .failure(.interrupted):
            // An interrupted connect continues by itself (POSIX), like one that would have blocked.
            try watch(descriptor, in: try loop.poll())
        case .failure(let error) where error.meansWouldBlock && address.port == nil:
            tryAgainLater(descriptor)
        case .failure(let error) where error.meansWouldBlock:
            // For TCP this means that no free port is left (connect(2)).
            throw SocketError(.addressUnavailable, while: activity, underlyingError: error)
        case .failure(let error):
            throw SocketError(error, while: activity)
        }
    }

    private func watch(_ descriptor: SharedDescriptor, in poll: ReadinessPoll) throws(SocketError) {
        // The handler holds the attempt. Each end cancels the source, which drops the handler.
        let source = ReadinessSource(.writing, of: descriptor, in: poll) { self.decide(descriptor) }
        let isWatched = state.withLock { state in
            guard state.outcome == nil else { return false }
            state.source = source
            return true
        }
        if isWatched { try source.resume() }
    }

    private func tryAgainLater(_ descriptor: SharedDescriptor) {
        let retry = state.withLock { state -> Timer? in
            guard state.outcome == nil else { return nil }
            if state.retry == nil { state.retry = Timer(on: loop) { [weak self] in self?.tryAgain(descriptor) } }
            return state.retry
        }
        retry?.schedule(after: Self.retryDelay)
    }

    private func tryAgain(_ descriptor: SharedDescriptor) {
        do throws(SocketError) {
            try begin(descriptor)
        } catch {
            end(.failure(error))
        }
    }

    /// Handles the kernel's answer.
    private func decide(_ descriptor: SharedDescriptor) {
        if let error = SystemCall.pendingError(descriptor.rawValue) {
            end(.failure(SocketError(error, while: activity)))
        } else {
            end(.success(()))
        }
    }

    private func end(_ outcome: Result<Void, SocketError>) {
        let source = state.withLock { state -> ReadinessSource?? in
            guard state.outcome == nil, state.continuation != nil else { return nil }
            state.outcome = outcome
            state.deadline?.cancel()
            state.deadline = nil
            state.retry?.cancel()
            state.retry = nil
            return .some(state.source)
        }
        guard let source else { return }
        // The socket may watch the descriptor from here on.
        source?.cancel()
        deliver()
    }

    private func deliver() {
        let (continuation, descriptor, outcome) = state.withLock { state in
            defer { (state.continuation, state.descriptor, state.source) = (nil, nil, nil) }
            return (state.continuation, state.descriptor, state.outcome)
        }
        guard let continuation, let outcome else { return }
        let result = outcome.flatMap { Self.socket(descriptor, to: address, on: loop) }
        state.withLock { $0.result = result }
        continuation.resume()
    }

    private static func socket(
        _ descriptor: SharedDescriptor?, to address: SocketAddress, on loop: EventLoop
    ) -> Result<Socket, SocketError> {
        guard let descriptor else { return .failure(SocketError(.closed, while: "connecting to \(address)")) }
        do throws(SocketError) {
            let socket = try Socket(descriptor, on: loop, remote: address)
            // A TCP connection to an ephemeral port of this machine can, rarely, connect to itself. Nobody listens
            // there.
            guard address.port == nil || socket.localAddress != address else {
                throw SocketError(.connectionRefused, while: "connecting to \(address)")
            }
            return .success(socket)
        } catch {
            return .failure(error)
        }
    }
}
