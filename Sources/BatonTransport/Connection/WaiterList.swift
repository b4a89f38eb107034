// SPDX-License-Identifier: Apache-2.0

/// Tasks that wait for the same change of state. Each checks the state itself when it is woken.
final class WaiterList: @unchecked Sendable {  // reason: confined to the actor of its connection
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func add(_ continuation: CheckedContinuation<Void, Never>) {
        waiting.append(continuation)
    }

    func wakeAll() {
        let all = waiting
        waiting = []
        for continuation in all { continuation.resume() }
    }
}
