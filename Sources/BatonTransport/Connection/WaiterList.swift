// SPDX-License-Identifier: Apache-2.0

/// Tasks that wait for the same change of state. Each checks the state itself when it is woken.
final class WaiterList: @unchecked Sendable {  // reason: confined to the actor of its connection
    private var waiting: [UInt64: CheckedContinuation<Void, Never>] = [:]
    private var issued: UInt64 = 0

    /// The identity of one waiting task, so that its cancellation wakes no other.
    func ticket() -> UInt64 {
        issued += 1
        return issued
    }

    func add(_ continuation: CheckedContinuation<Void, Never>, _ ticket: UInt64) {
        waiting[ticket] = continuation
    }

    func wake(_ ticket: UInt64) {
        waiting.removeValue(forKey: ticket)?.resume()
    }

    func wakeAll() {
        let all = waiting.values
        waiting = [:]
        for continuation in all { continuation.resume() }
    }
}
