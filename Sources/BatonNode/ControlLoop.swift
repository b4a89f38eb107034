// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop
import BatonProtocol

/// The isolation of everything that a node knows and decides.
///
/// All of it runs on one event loop, so calls between its parts are plain calls.
///
/// - No `await` stands between reading state and changing what follows from it. After an `await`, read again.
/// - Work that blocks (files, D-Bus) or computes for long (large messages, documents) leaves the loop, and comes back
///   with a value.
///
/// The loop is made at the first use and lives as long as the process. All nodes of a process share it.
@globalActor
package actor ControlLoop {
    package static let shared = ControlLoop()
    /// The loop, for the sockets, timers and connections that report here.
    package static let loop = EventLoop(name: "control")

    nonisolated package var unownedExecutor: UnownedSerialExecutor { Self.loop.asUnownedSerialExecutor() }

    /// Calls `body` on the loop, later, in order with other work. Callable from anywhere.
    static func execute(_ body: @escaping @ControlLoop () -> Void) {
        loop.execute { assumeIsolated(body) }
    }

    /// Starts a task that stays on the loop, also in code without an actor. For work that somebody waits for and that
    /// computes little.
    @discardableResult
    static func task(_ work: @escaping @ControlLoop () async -> Void) -> Task<Void, Never> {
        Task(executorPreference: loop.taskExecutor) { await work() }
    }

    /// Calls `body` at once, from a handler of an event source of ``loop``. Stops the process elsewhere.
    static func assumeIsolated<Value, Failure: Error>(
        _ body: @ControlLoop () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        typealias Unchecked = () throws(Failure) -> Value
        shared.preconditionIsolated()
        // As `MainActor.assumeIsolated` of the standard library does it.
        return try withoutActuallyEscaping(body) { (body) throws(Failure) -> Value in
            try unsafeBitCast(body, to: Unchecked.self)()
        }
    }
}

extension BatonEventLoop.Timer {
    /// Makes a timer that is not armed, whose handler runs on the control loop.
    convenience init(onControlLoop handler: @escaping @ControlLoop @Sendable () -> Void) {
        self.init(on: ControlLoop.loop) { ControlLoop.assumeIsolated(handler) }
    }
}

/// The timer of a driver, for the next deadline of its value of the core.
struct DeadlineTimer {
    private var timer: BatonEventLoop.Timer?

    /// Whether a deadline is set and has not come.
    var isScheduled: Bool { timer?.isScheduled ?? false }

    /// Has the handler called at a deadline, in place of the one before; nil for never. The first handler is kept.
    @ControlLoop
    mutating func schedule(at deadline: Instant?, _ handler: @escaping @ControlLoop @Sendable () -> Void) {
        guard let deadline else {
            timer?.cancel()
            return
        }
        if timer == nil { timer = BatonEventLoop.Timer(onControlLoop: handler) }
        timer?.schedule(at: deadline.nanoseconds)
    }
}

/// The thread of the files that a node reads and writes for itself, which may be on a disk that blocks.
///
/// It is made at the first use and lives as long as the process. All nodes of a process share it.
@globalActor
actor StorageThread {
    static let shared = StorageThread()
    static let executor: BlockingExecutor = {
        do {
            return try BlockingExecutor(name: "baton-storage")
        } catch {
            preconditionFailure("this machine has no thread to give: \(error)")
        }
    }()

    nonisolated var unownedExecutor: UnownedSerialExecutor { Self.executor.asUnownedSerialExecutor() }
}
