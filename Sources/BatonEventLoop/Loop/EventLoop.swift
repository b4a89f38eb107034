// SPDX-License-Identifier: Apache-2.0

import Dispatch

/// One serial line of execution on which sockets, timers and signals report.
///
/// An event loop is a `SerialExecutor` over a serial `DispatchQueue`, and the handlers of every event source of this
/// module run on that same queue. An actor whose `unownedExecutor` is its loop can therefore be entered synchronously
/// from such a handler with `assumeIsolated`: no task, no hop, no allocation between readiness and the actor's code.
///
/// ```swift
/// actor Connection {
///     nonisolated let loop: EventLoop
///     nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
/// }
/// ```
///
/// Nothing that blocks may run here: files and D-Bus belong on a ``BlockingExecutor``. A loop owns no thread while it
/// is idle: Dispatch lends it one when there is work, and a loop keeps the one that came for its descriptors until
/// nothing has happened for a tenth of a second. It ends with its last reference.
package final class EventLoop: SerialExecutor {
    /// What the loop is called in debuggers and crash reports.
    package let name: String

    /// The queue behind the loop. Work put here would wait for the end of a turn: it goes through ``execute(_:)``.
    let queue: DispatchQueue

    /// What was put on the loop and has not run yet.
    let work: LoopWork

    /// Where tasks run that have more to do with what lives on this loop than with anything else: each step that they
    /// take between it and an actor without an executor of its own costs no change of threads.
    ///
    /// For tasks that answer somebody who waits, and that compute little: what they do keeps the loop from its
    /// descriptors, as everything does that runs here. Whoever waits for an actor of the loop can prefer it meanwhile,
    /// and is then resumed where the actor is.
    package let taskExecutor: LoopTaskExecutor

    private static let key = DispatchSpecificKey<ObjectIdentifier>()

    private let patience: Int32
    private let readiness = Lock<ReadinessPoll?>(nil)

    /// Makes a loop.
    ///
    /// - Parameter name: appears as the label of the queue, behind `baton.loop.`.
    package convenience init(name: String) {
        self.init(name: name, patience: ReadinessPoll.patience)
    }

    /// - Parameters:
    ///   - name: as above.
    ///   - patience: for how many milliseconds the loop keeps its thread when nothing happens any more.
    init(name: String, patience: Int32) {
        self.name = name
        self.patience = patience
        // A serial queue without a target gets a thread of its own beyond the width of the pool when it needs one, so
        // that a thread that blocks elsewhere never starves a loop.
        queue = DispatchQueue(label: "baton.loop." + name, qos: .userInitiated)
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

    /// The time that the loop has spent on what was put on it and on what its descriptors told, since it was made; what
    /// is under way counts when it ends. Callable from anywhere.
    ///
    /// A loop that is busy all the time is what its connections wait for, and not the network.
    package var busyTime: Duration { .nanoseconds(Int64(clamping: work.busyNanoseconds)) }

    /// Runs `work` on the loop, later, in order with everything else that is put there. Callable from anywhere.
    package func execute(_ work: @escaping @Sendable () -> Void) {
        self.work.append(work)
    }

    /// What watches this loop's descriptors. Made, with two descriptors of its own, when the first one is to be
    /// watched.
    ///
    /// - Throws: `outOfResources` where none are free for that.
    func poll() throws(SocketError) -> ReadinessPoll {
        try readiness.withLock { (readiness) throws(SocketError) in
            if let readiness { return readiness }
            let made = try ReadinessPoll(on: queue, doing: work, patience: patience)
            readiness = made
            return made
        }
    }

    // MARK: - SerialExecutor

    /// Puts a job of an actor onto the loop. Called by the concurrency runtime.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // The closure holds the loop: the executor outlives each job, even where the job drops the last actor.
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
