// SPDX-License-Identifier: Apache-2.0

/// Tasks that wait for the same change of state. Each checks the state itself when it is woken.
struct WaiterList {
    /// The identity of one waiting task, so that its cancellation wakes no other.
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

    /// Adds a task that waits even if it is cancelled.
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
