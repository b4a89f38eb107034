// SPDX-License-Identifier: Apache-2.0

extension Socket {
    /// Connects to an address without blocking.
    ///
    /// On failure, timeout and cancellation the descriptor is closed.
    ///
    /// - Parameters:
    ///   - address: TCP, or a socket file with a path of any length.
    ///   - loop: the loop of the socket.
    ///   - timeout: the longest time of the attempt, 10 s by default. With zero or less it fails unless the connection
    ///     is made at once.
    /// - Returns: the socket, not started yet.
    /// - Throws: `timedOut`, `cancelled` if the task was, `connectionRefused`, `unreachable`, `notFound` and
    ///   `permissionDenied` (socket files), `outOfResources`, ….
    package static func connect(
        to address: SocketAddress, on loop: EventLoop, timeout: Duration = .seconds(10)
    ) async throws(SocketError) -> Socket {
        let attempt = ConnectAttempt(to: address, on: loop)
        return try await attempt.run(timeout: timeout)
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
    /// - Throws: `noAddress` for none, `cancelled`, and otherwise the first failure in the order of addresses, with
    ///   preference for one other than `timedOut` and `unreachable`.
    package static func connect(
        toAnyOf addresses: [SocketAddress], on loop: EventLoop, stagger: Duration = .milliseconds(250),
        timeout: Duration = .seconds(10)
    ) async throws(SocketError) -> Socket {
        var seen: Set<SocketAddress> = []
        let candidates = Array(addresses.filter { seen.insert($0).inserted }.prefix(addressLimit))
        guard candidates.count > 1 else {
            guard let only = candidates.first else { throw SocketError(.noAddress, while: "connecting") }
            return try await connect(to: only, on: loop, timeout: timeout)
        }
        return try await race(candidates, on: loop, stagger: stagger, timeout: timeout).get()
    }

    private enum Event: Sendable {
        case ended(Result<Socket, SocketError>, index: Int)
        case staggered(after: Int)
    }

    private static func race(
        _ addresses: [SocketAddress], on loop: EventLoop, stagger: Duration, timeout: Duration
    ) async -> Result<Socket, SocketError> {
        let deadline = MonotonicClock.deadline(after: timeout) ?? .max
        return await withTaskGroup(of: Event.self) { group in
            var started = 0
            var failures: [(index: Int, error: SocketError)] = []

            func startNext(_ group: inout TaskGroup<Event>) {
                guard started < addresses.count else { return }
                let index = started
                let address = addresses[index]
                started += 1
                group.addTask {
                    do throws(SocketError) {
                        let rest = MonotonicClock.remaining(until: deadline)
                        return .ended(.success(try await connect(to: address, on: loop, timeout: rest)), index: index)
                    } catch {
                        return .ended(.failure(error), index: index)
                    }
                }
                guard started < addresses.count else { return }
                group.addTask {
                    try? await Alarm.sleep(for: stagger)
                    return .staggered(after: index)
                }
            }

            startNext(&group)
            var winner: Socket?
            while let event = await group.next() {
                switch event {
                case .ended(.success(let socket), _):
                    if winner == nil { winner = socket } else { socket.close() }
                    group.cancelAll()
                case .ended(.failure(let error), let index):
                    failures.append((index, error))
                    if winner == nil, index == started - 1, !Task.isCancelled { startNext(&group) }
                case .staggered(let index):
                    if winner == nil, index == started - 1, !Task.isCancelled { startNext(&group) }
                }
                // Only a stagger is left, which nobody waits for.
                if failures.count == addresses.count { group.cancelAll() }
            }
            if let winner { return .success(winner) }
            if Task.isCancelled { return .failure(SocketError(.cancelled, while: "connecting")) }
            return .failure(mostInformative(failures.sorted { $0.index < $1.index }.map(\.error)))
        }
    }

    /// The failure to report: an answer before silence, then in the order of the addresses.
    private static func mostInformative(_ errors: [SocketError]) -> SocketError {
        let telling = errors.first { $0.code != .timedOut && $0.code != .unreachable && $0.code != .cancelled }
        return telling ?? errors.first ?? SocketError(.timedOut, while: "connecting")
    }
}
