// SPDX-License-Identifier: Apache-2.0

import Dispatch

/// The only owner of a Dispatch source. All such sources are made here.
///
/// Handlers of timers and signals run as work of the loop, so they need not wait for the end of a turn
/// (``ReadinessPoll``). The handler of a descriptor runs on its queue. A source watches from the start, is usable from
/// any thread, and cancels itself when its last reference goes. After a cancel on the loop no handler of a signal runs
/// any more; ``Timer`` sees to its own.
///
/// It only watches descriptors that cannot hang up. All others have a ``ReadinessSource``.
final class EventSource: Sendable {
    nonisolated(unsafe) private let source: any DispatchSourceProtocol  // reason: Dispatch objects are thread-safe

    /// Watches for something to read. Level-triggered: the handler runs again and again until it is read.
    ///
    /// - Parameter descriptor: a descriptor that never hangs up.
    static func readable(
        _ descriptor: SharedDescriptor, on queue: DispatchQueue, handler: @escaping @Sendable () -> Void
    ) -> EventSource {
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor.rawValue, queue: queue)
        // A watched descriptor must not be closed, so this handler holds it.
        let release: @Sendable () -> Void = { withExtendedLifetime(descriptor) {} }
        source.setCancelHandler(handler: release)
        return EventSource(source, handler: handler)
    }

    /// Watches for a signal. Dispatch installs its own signal handler.
    ///
    /// - Parameter registered: called once the kernel watches.
    static func signal(
        _ number: Int32, on loop: EventLoop, registered: @escaping @Sendable () -> Void,
        handler: @escaping @Sendable () -> Void
    ) -> EventSource {
        let made = DispatchSource.makeSignalSource(signal: number, queue: messages)
        nonisolated(unsafe) let source = made  // reason: the handler only reads `isCancelled`, which is atomic
        source.setRegistrationHandler(handler: registered)
        // Dispatch releases the handler, and with it the source, after the cancel.
        return EventSource(source) { [work = loop.work] in
            work.append { if !source.isCancelled { handler() } }
        }
    }

    /// A timer that never fires until ``fire(at:)``.
    static func timer(on loop: EventLoop, handler: @escaping @Sendable () -> Void) -> EventSource {
        let source = DispatchSource.makeTimerSource(queue: messages)
        source.schedule(deadline: .distantFuture)
        return EventSource(source) { [work = loop.work] in work.append(handler) }
    }

    private init(_ source: any DispatchSourceProtocol, handler: @escaping @Sendable () -> Void) {
        self.source = source
        source.setEventHandler(handler: handler)
        source.activate()
    }

    /// The queue on which Dispatch reports timers and signals. Like a loop, it gets a thread of its own when it needs
    /// one.
    private static let messages = DispatchQueue(label: "baton.messages")

    deinit {
        cancel()
    }

    /// Ends the source for good and releases its descriptor and handlers. Idempotent.
    func cancel() {
        source.cancel()
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
