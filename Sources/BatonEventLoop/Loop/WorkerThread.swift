// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// A detached thread that runs closures in order until it is told to finish.
///
/// The thread holds this object, which therefore outlives its creator, and releases it at its end.
final class WorkerThread: @unchecked Sendable {  // reason: every mutable member is read and written under `mutex`
    private let name: String
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var work: [@Sendable () -> Void] = []
    private var isFinishing = false
    private var thread: pthread_t?

    init(name: String) throws(Errno) {
        self.name = name
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)

        // A thread inherits the signal mask of its creator, so everything is blocked around the call. The kernel raises
        // faults (SIGSEGV and its kin) on the thread that causes them, and they kill the process even if blocked.
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }

        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))

        let retained = Unmanaged.passRetained(self)
        var started = pthread_t()
        let status = pthread_create(
            &started, &attributes,
            { context in
                guard let context else { return nil }
                Unmanaged<WorkerThread>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, retained.toOpaque())
        guard status == 0 else {
            retained.release()
            throw Errno(rawValue: status)
        }
    }

    deinit {
        pthread_cond_destroy(condition)
        condition.deallocate()
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Whether the caller is this thread.
    var isCurrent: Bool {
        locked { thread.map { pthread_equal($0, pthread_self()) != 0 } ?? false }
    }

    /// Adds work at the end.
    func append(_ item: @escaping @Sendable () -> Void) {
        locked {
            work.append(item)
            pthread_cond_signal(condition)
        }
    }

    /// Lets the thread end once all work is done.
    func finish() {
        locked {
            isFinishing = true
            pthread_cond_signal(condition)
        }
    }

    private func run() {
        setName()
        locked { thread = pthread_self() }
        while let batch = nextBatch() {
            for item in batch { item() }
        }
        // The id of an ended thread may be used for another one.
        locked { thread = nil }
    }

    /// Waits for work and takes all of it; nil at the end.
    private func nextBatch() -> [@Sendable () -> Void]? {
        locked {
            while work.isEmpty, !isFinishing { pthread_cond_wait(condition, mutex) }
            guard !work.isEmpty else { return nil }
            defer { work = [] }
            return work
        }
    }

    private func locked<Value>(_ body: () -> Value) -> Value {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }

    /// Names the thread for `top -H` and debuggers.
    ///
    /// It writes to the proc file system, because `pthread_setname_np` is a GNU extension that Swift does not import.
    /// Without that file system the thread stays unnamed, which does no harm.
    private func setName() {
        let descriptor = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        let owned = OwnedDescriptor(takingOwnershipOf: descriptor)
        // TASK_COMM_LEN is 16 with its terminating zero.
        let bytes = Array(name.utf8.prefix(15))
        _ = write(owned.rawValue, bytes, bytes.count)
    }
}
