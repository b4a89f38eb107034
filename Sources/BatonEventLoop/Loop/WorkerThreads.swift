// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// Detached threads that run closures in order until they are told to finish.
///
/// They hold this object, which therefore outlives its creator, and release it at their end.
final class WorkerThreads: @unchecked Sendable {  // reason: every mutable member is read and written under `mutex`
    private let name: String
    private let bound: Int
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var work: [(@Sendable () -> Void)?] = []
    /// How many items of ``work`` were taken.
    private var taken = 0
    private var (started, idle) = (0, 0)
    private var isFinishing = false
    /// The thread that began last.
    private var thread: pthread_t?

    /// Makes threads that are started when they are needed.
    ///
    /// - Parameters:
    ///   - name: its first 15 bytes name the threads.
    ///   - bound: the most threads.
    init(name: String, bound: Int) {
        self.name = name
        self.bound = bound
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
    }

    /// Starts one thread, which is the only one.
    ///
    /// - Throws: `Errno.resourceTemporarilyUnavailable` if the system has no thread to give.
    convenience init(name: String) throws(Errno) {
        self.init(name: name, bound: 1)
        try locked { () throws(Errno) in try start() }
    }

    /// Starts a further thread. The caller has the mutex.
    private func start() throws(Errno) {
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
        var thread = pthread_t()
        let status = pthread_create(
            &thread, &attributes,
            { context in
                guard let context else { return nil }
                Unmanaged<WorkerThreads>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, retained.toOpaque())
        guard status == 0 else {
            retained.release()
            throw Errno(rawValue: status)
        }
        started += 1
    }

    deinit {
        pthread_cond_destroy(condition)
        condition.deallocate()
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Whether the caller is the only thread.
    var isCurrent: Bool {
        locked { thread.map { pthread_equal($0, pthread_self()) != 0 } ?? false }
    }

    /// Adds work at the end.
    func append(_ item: @escaping @Sendable () -> Void) {
        locked {
            work.append(item)
            if work.count - taken > idle, started < bound { try? start() }
            precondition(started > 0, "this machine has no thread to give")
            pthread_cond_signal(condition)
        }
    }

    /// Lets the threads end once all work is done.
    func finish() {
        locked {
            isFinishing = true
            pthread_cond_broadcast(condition)
        }
    }

    private func run() {
        setName()
        locked { thread = pthread_self() }
        while let item = next() { item() }
        // The id of an ended thread may be used for another one.
        locked { thread = nil }
    }

    /// Waits for work and takes it; nil at the end.
    private func next() -> (@Sendable () -> Void)? {
        locked {
            while taken == work.count, !isFinishing {
                idle += 1
                pthread_cond_wait(condition, mutex)
                idle -= 1
            }
            guard taken < work.count else { return nil }
            let item = work[taken].take()
            taken += 1
            if taken == work.count || taken >= 1024 {
                work.removeFirst(taken)
                taken = 0
            }
            return item
        }
    }

    private func locked<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body()
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
