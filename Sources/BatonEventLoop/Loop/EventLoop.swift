// SPDX-License-Identifier: Apache-2.0

import Dispatch

/// A serial executor on which sockets, timers and signals report.
///
/// An event loop is a `SerialExecutor` over a serial `DispatchQueue`. The handlers of every event source of this module
/// run on that queue. So such a handler can enter an actor whose `unownedExecutor` is its loop synchronously with
/// `assumeIsolated`. There is no task, no hop and no allocation between readiness and the actor's code.
///
/// Nothing that blocks may run here: files and D-Bus belong on a ``BlockingExecutor``. An idle loop has no thread.
/// Dispatch lends it one when there is work, and after an event of a descriptor the loop keeps it until nothing has
/// happened for 100 ms. The loop ends with its last reference.
package final class EventLoop: SerialExecutor {
    /// The name of the loop in debuggers and crash reports.
    package let name: String

    /// The queue behind the loop. Work on it would wait for the end of a turn, so use ``execute(_:)``.
    let queue: DispatchQueue

    /// The work that has not run yet.
    let work: LoopWork

    /// An executor for tasks that mostly use actors of this loop. Their steps between such an actor and code without an
    /// actor change no thread.
    ///
    /// Use it for tasks that answer a waiting caller and compute little, because everything that runs here keeps the
    /// loop from its descriptors. A task that waits for an actor of the loop can prefer it meanwhile, and then resumes
    /// on the actor's thread.
    package let taskExecutor: LoopTaskExecutor

    private static let key = DispatchSpecificKey<ObjectIdentifier>()

    private let idleWait: Int32
    private let readiness = Lock<ReadinessPoll?>(nil)

    /// Makes a loop.
    ///
    /// - Parameters:
    ///   - name: the label of the queue, behind `baton.loop.`.
    ///   - idleWait: the time that the loop keeps its thread without events or work, in milliseconds. The default is
    ///     longer than a round trip in most networks, so that a conversation is one turn. A shorter time would not make
    ///     single events cheaper, because each turn ends with one wait without an event, and Dispatch keeps the thread
    ///     for seconds as well.
    package init(name: String, idleWait: Int32 = 100) {
        self.name = name
        self.idleWait = idleWait
        // A serial queue without a target may get a thread beyond the width of the pool. So a thread that blocks
        // elsewhere never starves a loop. It has no quality of service: Dispatch turns one into a nice value, which
        // fails for every user but root, with a line in the system log for each thread.
        queue = DispatchQueue(label: "baton.loop." + name)
        work = LoopWork(on: queue)
        taskExecutor = LoopTaskExecutor(work)
        queue.setSpecific(key: Self.key, value: ObjectIdentifier(self))
    }

    deinit {
        work.finish()
    }

    /// Whether the caller runs on this loop now. Cheap, callable from anywhere.
    package var isCurrent: Bool {
        DispatchQueue.getSpecific(key: Self.key) == ObjectIdentifier(self)
    }

    /// The time that the loop has spent on its work and on events of descriptors since it was made. A running turn
    /// counts when it ends. Callable from anywhere.
    ///
    /// If a loop is busy all the time, its connections wait for it and not for the network.
    package var busyTime: Duration { .nanoseconds(Int64(clamping: work.busyNanoseconds)) }

    /// Runs `work` on the loop, later, in order with other work. Callable from anywhere.
    package func execute(_ work: @escaping @Sendable () -> Void) {
        self.work.append(work)
    }

    /// Returns when the loop has run all work that it had when this was called. If the loop hangs, this does not
    /// return.
    package func turn() async {
        await withCheckedContinuation { continuation in execute { continuation.resume() } }
    }

    /// The watches of this loop's descriptors and its timers, made at the first use with three descriptors of their
    /// own.
    ///
    /// - Throws: `outOfResources` if no descriptors are free for that.
    func poll() throws(SocketError) -> ReadinessPoll {
        try readiness.withLock { (readiness) throws(SocketError) in
            if let readiness { return readiness }
            let made = try ReadinessPoll(on: queue, doing: work, idleWait: idleWait)
            readiness = made
            return made
        }
    }

    // MARK: - SerialExecutor

    /// Puts a job of an actor onto the loop. Called by the concurrency runtime.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // The closure holds the loop, because a job may drop the last actor, and the executor must outlive it.
        work.append { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    /// Stops the process unless the caller runs on the loop. Called by the concurrency runtime.
    package func checkIsolated() {
        dispatchPrecondition(condition: .onQueue(queue))
    }

    /// Tells the concurrency runtime whether the caller runs on the loop, without stopping the process.
    package func isIsolatingCurrentContext() -> Bool? {
        isCurrent
    }
}
