// SPDX-License-Identifier: Apache-2.0

import Dispatch

/// Runs work of actors and waits for it.
func wait<Value: Sendable>(for work: @escaping @Sendable () async -> Value) -> Value {
    let done = DispatchSemaphore(value: 0)
    nonisolated(unsafe) var value: Value?  // reason: written before the signal, read after it
    Task.detached {
        value = await work()
        done.signal()
    }
    done.wait()
    guard let value else { fatalError("the work ended without a value") }
    return value
}
