// SPDX-License-Identifier: Apache-2.0

import Dispatch

/// The only owner of a Dispatch source. All such sources are made here.
///
/// It keeps three rules that Dispatch enforces by crashing or spinning:
/// - Suspend and resume must balance. Here they are idempotent.
/// - A suspended source must not be released. Here a cancelled source is resumed, so that its cancel handler runs and
///   releases everything.
/// - A watched descriptor must not be closed. The cancel handler holds it.
///
/// Handlers of timers and signals run as work of the loop, so they need not wait for the end of a turn
/// (``ReadinessPoll``). The handler of a descriptor runs on its queue. A source starts suspended, is usable from any
/// thread, and cancels itself when its last reference goes. After a cancel on the loop no handler runs any more; after
/// a cancel from elsewhere a running handler finishes.
///
/// It only watches descriptors that cannot hang up. All others have a ``ReadinessSource``.
final class EventSource: Sendable {
    private struct State {
        var isSuspended = true
        var isCancelled = false
    }

    nonisolated(unsafe) private let source: any DispatchSourceProtocol  // reason: Dispatch objects are thread-safe
    private let state = Lock(State())

    /// Watches for something to read. Level-triggered: the handler runs again and again until it is read.
    ///
    /// - Parameter descriptor: a descriptor that never hangs up.
    static func readable(
        _ descriptor: SharedDescriptor, on queue: DispatchQueue, handler: @escaping @Sendable () -> Void
    ) -> EventSource {
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor.rawValue, queue: queue)
        return EventSource(source, holding: descriptor, handler: handler)
    }

    /// Watches for a signal. Dispatch installs its own signal handler at the first resume.
    static func signal(_ number: Int32, on loop: EventLoop, handler: @escaping @Sendable () -> Void) -> EventSource {
        EventSource(
            DispatchSource.makeSignalSource(signal: number, queue: messages), on: loop.work, handler: handler)
    }

    /// A timer that never fires until ``fire(at:)``.
    static func timer(on loop: EventLoop, handler: @escaping @Sendable () -> Void) -> EventSource {
        let source = DispatchSource.makeTimerSource(queue: messages)
        source.schedule(deadline: .distantFuture)
        return EventSource(source, on: loop.work, handler: handler)
    }

    private init(
        _ source: any DispatchSourceProtocol, holding descriptor: SharedDescriptor?,
        handler: @escaping @Sendable () -> Void
    ) {
        self.source = source
        source.setEventHandler(handler: handler)
        let release: @Sendable () -> Void = { withExtendedLifetime(descriptor) {} }
        source.setCancelHandler(handler: release)
    }

    private convenience init(
        _ source: any DispatchSourceProtocol, on work: LoopWork, handler: @escaping @Sendable () -> Void
    ) {
        self.init(source, holding: nil) {}
        source.setEventHandler { [weak self] in
            work.append { [weak self] in if self?.isCancelled == false { handler() } }
        }
    }

    private var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// The queue on which Dispatch reports timers and signals. Like a loop, it gets a thread of its own when it needs
    /// one.
    private static let messages = DispatchQueue(label: "baton.messages")

    deinit {
        cancel()
    }

    /// Lets the handler run. Idempotent; nothing after a cancel.
    func resume() {
        state.withLock { state in
            guard state.isSuspended, !state.isCancelled else { return }
            state.isSuspended = false
            source.resume()
        }
    }

    /// Lets the handler run, and calls `registered` once the kernel watches. Only for the first resume.
    func resume(registered: @escaping @Sendable () -> Void) {
        source.setRegistrationHandler(handler: registered)
        resume()
    }

    /// Stops the handler from running. Idempotent; nothing after a cancel.
    func suspend() {
        state.withLock { state in
            guard !state.isSuspended, !state.isCancelled else { return }
            state.isSuspended = true
            source.suspend()
        }
    }

    /// Ends the source for good and releases its descriptor and handlers. Idempotent.
    func cancel() {
        state.withLock { state in
            guard !state.isCancelled else { return }
            state.isCancelled = true
            source.cancel()
            if state.isSuspended { source.resume() }
        }
    }

    /// Sets when a timer's handler runs, replacing the time set before.
    ///
    /// The leeway of a millisecond lets the kernel join wake-ups.
    ///
    /// - Parameter deadline: a reading of ``MonotonicClock``.
    func fire(at deadline: UInt64) {
        guard let timer = source as? any DispatchSourceTimer else { return }
        // Dispatch tells three clocks apart by the two upper bits of a time: 0x for CLOCK_MONOTONIC, 10 for
        // CLOCK_BOOTTIME (`DISPATCH_MONOTONICTIME_NOW` is 1 << 63), 11 for wall time. Its Swift interface names only
        // the first and the last. A test detects if this ever changes.
        let boottime = min(deadline, Self.latest) | (1 << 63)
        timer.schedule(deadline: DispatchTime(uptimeNanoseconds: boottime), leeway: .milliseconds(1))
    }

    /// The latest time that Dispatch does not take for "never": 146 years.
    private static let latest: UInt64 = (1 << 62) - 2
}
