// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// Writes values to the disk, one at a time, and of those that wait the last one alone: what others announce may change
/// more often than a disk can be written to.
///
/// Safe to use from any thread.
final class LatestWriter<Value: Sendable>: Sendable {
    private let storage: BlockingExecutor
    private let write: @Sendable (Value) -> Void
    private let state = Lock<(isWriting: Bool, next: Value?)>((false, nil))

    /// - Parameter write: called on the executor's thread.
    init(on storage: BlockingExecutor, write: @escaping @Sendable (Value) -> Void) {
        self.storage = storage
        self.write = write
    }

    /// Writes a value soon, unless another one comes before it is its turn.
    func submit(_ value: Value) {
        let isIdle = state.withLock { state in
            defer { state = (true, value) }
            return !state.isWriting
        }
        if isIdle { storage.submit { self.writeNext() } }
    }

    /// Returns when the last value has been written. None may be given meanwhile.
    func drain() async {
        // What is being written; and what waited for that, which goes behind whatever else is to be stored.
        for _ in 0..<2 {
            await withCheckedContinuation { continuation in
                storage.submit { continuation.resume() }
            }
        }
    }

    private func writeNext() {
        guard let value = state.withLock({ $0.next.take() }) else { return }
        write(value)
        let isMore = state.withLock { state in
            state.isWriting = state.next != nil
            return state.isWriting
        }
        if isMore { storage.submit { self.writeNext() } }
    }
}
