// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// The threads that fetch: libcurl blocks, and neither an event loop nor Swift's own threads may.
///
/// At most ``maximumThreads`` at once, and at most ``maximumQueue`` fetches that wait for one. A thread is made when
/// there is something to do and ends when there is nothing more.
final class FetchThreads: Sendable {
    /// A person accepts one activity at a time; the second is there for when the first host is slow.
    static let maximumThreads = 2
    /// The longest queue. A fetch behind more than these would time out before its turn.
    static let maximumQueue = 16

    typealias Work = @Sendable () -> Void

    private struct State {
        var threads = 0
        var queue: [Work] = []
    }
    private let state = Lock(State())

    /// Runs `work` on one of the threads.
    ///
    /// - Throws: `busy` when the queue is full or the machine has no thread to give.
    func submit(_ work: @escaping Work) throws(SiteAssociationError) {
        let needsThread = try state.withLock { state throws(SiteAssociationError) in
            if state.threads < Self.maximumThreads {
                state.threads += 1
                return true
            }
            guard state.queue.count < Self.maximumQueue else {
                throw SiteAssociationError(.busy, "too many sites are asked at once")
            }
            state.queue.append(work)
            return false
        }
        guard needsThread else { return }
        do {
            // The executor is released here, so its thread ends after this work.
            try BlockingExecutor(name: "baton-web").submit { [self] in
                work()
                while let next = takeNext() { next() }
            }
        } catch {
            // Work that was queued meanwhile runs on the other thread, or on the next one.
            state.withLock { $0.threads -= 1 }
            throw SiteAssociationError(.busy, "this machine has no thread to spare")
        }
    }

    /// The next in the queue; nil ends the thread.
    private func takeNext() -> Work? {
        state.withLock { state in
            guard state.queue.isEmpty else { return state.queue.removeFirst() }
            state.threads -= 1
            return nil
        }
    }
}
