// SPDX-License-Identifier: Apache-2.0

/// Tasks that wait for the same change of state; each looks itself at what has become of it when it is woken.
struct WaiterList {
    /// Names one waiting task, so that its cancellation wakes it alone.
    struct Ticket: Hashable {
        fileprivate let number: UInt64
    }

    private var waiting: [Ticket: CheckedContinuation<Void, Never>] = [:]
    private var issued: UInt64 = 0

    mutating func ticket() -> Ticket {
        issued += 1
        return Ticket(number: issued)
    }

    mutating func add(_ continuation: CheckedContinuation<Void, Never>, _ ticket: Ticket) {
        waiting[ticket] = continuation
    }

    /// Adds a task that waits whether it is cancelled or not.
    mutating func add(_ continuation: CheckedContinuation<Void, Never>) {
        add(continuation, ticket())
    }

    mutating func wake(_ ticket: Ticket) {
        waiting.removeValue(forKey: ticket)?.resume()
    }

    mutating func wakeAll() {
        let all = waiting.values
        waiting = [:]
        for continuation in all { continuation.resume() }
    }
}
