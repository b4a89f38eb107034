// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

extension Socket {
    /// Connects to an address without blocking.
    ///
    /// On failure, timeout and cancellation the descriptor is closed.
    ///
    /// - Parameters:
    ///   - address: TCP, or a socket file.
    ///   - loop: the loop of the socket.
    ///   - timeout: the longest time of the attempt, 10 s by default. With zero or less it fails unless the connection
    ///     is made at once.
    /// - Returns: the socket, not started yet.
    /// - Throws: `timedOut`, `cancelled` if the task was, `connectionRefused`, `unreachable`, `notFound` (socket
    ///   files), `outOfResources`, ….
    package static func connect(
        to address: SocketAddress, on loop: EventLoop, timeout: Duration = .seconds(10)
    ) async throws(SocketError) -> Socket {
        let activity = "connecting to \(address)"
        guard !Task.isCancelled else { throw SocketError(.cancelled, while: activity) }
        let descriptor = SharedDescriptor(try SystemCall.streamSocket(address.family))
        let result = try address.withSystemAddress { pointer, length in
            SystemCall.once { Glibc.connect(descriptor.rawValue, pointer, length) }
        }
        switch result {
        case .success: break
        case .failure(.nowInProgress), .failure(.interrupted):
            // An interrupted connect continues by itself (POSIX), like one that would have blocked.
            try await untilConnected(descriptor, on: loop, within: timeout, activity)
        case .failure(let error) where error.meansWouldBlock:
            // No free port is left, or the queue of the socket file's listener is full (connect(2)).
            throw SocketError(address.port == nil ? .timedOut : .unreachable, while: activity, underlyingError: error)
        case .failure(let error):
            throw SocketError(error, while: activity)
        }
        return try Socket(descriptor, on: loop, remote: address)
    }

    /// Waits for the kernel's answer to a connect.
    private static func untilConnected(
        _ descriptor: SharedDescriptor, on loop: EventLoop, within timeout: Duration, _ activity: String
    ) async throws(SocketError) {
        let outcome = FirstResult<Result<Void, SocketError>>()
        let source = ReadinessSource(
            descriptor, in: try loop.poll(),
            onWritable: {
                // The source is level-triggered. It reports again until this task goes on, and reading clears the
                // error.
                guard !outcome.isDecided else { return }
                let error = SystemCall.pendingError(descriptor.rawValue)
                outcome.decide(error.map { .failure(SocketError($0, while: activity)) } ?? .success(()))
            })
        // The socket watches the descriptor from here on, and a descriptor has only one source.
        defer { source.cancel() }
        try source.resume(.writing)
        try await outcome.value(
            ifCancelled: .failure(SocketError(.cancelled, while: activity)), within: timeout, on: loop,
            else: .failure(SocketError(.timedOut, while: activity))
        ).get()
    }

    /// The greatest number of addresses that ``connect(toAnyOf:on:stagger:timeout:)`` tries.
    package static let addressLimit = 16

    /// Connects to whichever address answers first, with overlapping attempts (in the manner of RFC 8305, Happy
    /// Eyeballs).
    ///
    /// The next attempt starts when the one before failed, or `stagger` after it started. The first that connects wins.
    /// The others are cancelled, or closed if they have connected in the same moment.
    ///
    /// - Parameters:
    ///   - addresses: the best first. The first ``addressLimit`` different ones are tried.
    ///   - loop: the loop of the socket.
    ///   - stagger: 250 ms, the "connection attempt delay" of RFC 8305, 5.
    ///   - timeout: for all of them together, 10 s by default.
    /// - Throws: `unreachable` for none, `cancelled`, and otherwise the first failure in the order of addresses, with
    ///   preference for one other than `timedOut` and `unreachable`.
    package static func connect(
        toAnyOf addresses: [SocketAddress], on loop: EventLoop, stagger: Duration = .milliseconds(250),
        timeout: Duration = .seconds(10)
    ) async throws(SocketError) -> Socket {
        var seen: Set<SocketAddress> = []
        let candidates = Array(addresses.filter { seen.insert($0).inserted }.prefix(addressLimit))
        let deadline = MonotonicClock.deadline(after: timeout) ?? .max
        // An attempt may start when its turn is decided.
        let turns = candidates.map { _ in FirstResult<Void>() }
        turns.first?.decide(())
        var failures = [SocketError?](repeating: nil, count: candidates.count)
        var winner: Socket?
        await withTaskGroup(of: (Int, Result<Socket, SocketError>).self) { group in
            for (index, address) in candidates.enumerated() {
                group.addTask {
                    await turns[index].value(ifCancelled: ())
                    let next = turns.dropFirst(index + 1).first
                    let timer = next.map { next in Timer(on: loop) { next.decide(()) } }
                    timer?.schedule(after: stagger)
                    defer { timer?.cancel() }
                    do throws(SocketError) {
                        let rest = MonotonicClock.remaining(until: deadline)
                        return (index, .success(try await connect(to: address, on: loop, timeout: rest)))
                    } catch {
                        next?.decide(())
                        return (index, .failure(error))
                    }
                }
            }
            for await (index, result) in group {
                switch result {
                case .success(let socket):
                    if winner == nil { winner = socket } else { socket.close() }
                    group.cancelAll()
                case .failure(let error):
                    failures[index] = error
                }
            }
        }
        if let winner { return winner }
        if Task.isCancelled { throw SocketError(.cancelled, while: "connecting") }
        // An answer before silence, then in the order of the addresses.
        let errors = failures.compactMap(\.self)
        let telling = errors.first { $0.code != .timedOut && $0.code != .unreachable && $0.code != .cancelled }
        throw telling ?? errors.first ?? SocketError(.unreachable, while: "connecting")
    }
}
