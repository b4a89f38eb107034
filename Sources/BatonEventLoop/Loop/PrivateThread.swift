// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
package import SystemPackage

/// A thread that runs closures for the tasks of one event loop, for work that blocks and restricts its own thread.
///
/// Landlock binds a thread and every thread that it makes. Dispatch makes pool threads on whatever thread hands it
/// work, and the concurrency runtime hands it work at every resumption. So a restricted thread that used either would
/// spread its restriction over the process. This thread uses neither: a closure runs from beginning to end without
/// `await`, its result waits in memory, and a write to an eventfd wakes the loop, which resumes the caller.
///
/// The closure must not use Dispatch, start tasks or resume continuations. The thread ends with the last reference.
package final class PrivateThread: Sendable {
    private let worker: WorkerThreads
    private let results: Results
    private let source: ReadinessSource

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - name: its first 15 bytes name the thread.
    ///   - loop: the loop on which callers resume.
    /// - Throws: `Errno.resourceTemporarilyUnavailable` if the system has no thread to give, `tooManyOpenFiles` if it
    ///   has no descriptor.
    package init(name: String, waking loop: EventLoop) throws(Errno) {
        let number = baton_event_create()
        guard number >= 0 else { throw Errno(rawValue: -number) }
        let results = Results(SharedDescriptor(OwnedDescriptor(takingOwnershipOf: number)))
        do throws(SocketError) {
            source = ReadinessSource(results.event, in: try loop.poll(), onReadable: { results.deliver() })
            try source.resume()
        } catch {
            throw .tooManyOpenFiles
        }
        self.results = results
        worker = try WorkerThreads(name: name)
    }

    deinit {
        worker.finish()
    }

    /// Runs `work` on the thread, after earlier work, while the caller is suspended.
    ///
    /// - Returns: the result of `work`.
    /// - Throws: the error of `work`.
    package func perform<Value: Sendable, Failure: Error>(
        isolation: isolated (any Actor)? = #isolation, _ work: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Value, Failure>, Never>) in
            submit {
                Result { () throws(Failure) in try work() }
            } completion: {
                continuation.resume(returning: $0)
            }
        }
        return try result.get()
    }

    /// Runs `work` on the thread, after earlier work, and then `completion` on the loop. Callable from anywhere.
    package func submit<Value: Sendable>(
        _ work: @escaping @Sendable () -> Value, completion: @escaping @Sendable (Value) -> Void
    ) {
        worker.append { [results] in
            let value = work()
            results.add { completion(value) }
        }
    }

    /// Runs `work` on the thread, after earlier work, and does not wait. Callable from anywhere.
    package func submit(_ work: @escaping @Sendable () -> Void) {
        worker.append(work)
    }

    /// Results on their way to the loop.
    private final class Results: Sendable {
        let event: SharedDescriptor
        private let resumptions = Lock<[@Sendable () -> Void]>([])

        init(_ event: SharedDescriptor) { self.event = event }

        /// Called by the thread.
        func add(_ resumption: @escaping @Sendable () -> Void) {
            resumptions.withLock { $0.append(resumption) }
            var one: UInt64 = 1
            _ = write(event.rawValue, &one, MemoryLayout.size(ofValue: one))
        }

        /// Called on the loop.
        func deliver() {
            var count: UInt64 = 0
            _ = read(event.rawValue, &count, MemoryLayout.size(ofValue: count))
            let all = resumptions.withLock { resumptions in
                defer { resumptions = [] }
                return resumptions
            }
            for resume in all { resume() }
        }
    }
}
