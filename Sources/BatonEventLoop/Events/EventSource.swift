// SPDX-License-Identifier: Apache-2.0

import Dispatch

/// The only owner of a Dispatch source. All such sources are made here.
///
/// Handlers of signals run as work of the loop, so they need not wait for the end of a turn (``ReadinessPoll``). The
/// handler of a descriptor runs on its queue. A source watches from the start, is usable from any thread, and cancels
/// itself when its last reference goes. After a cancel on the loop no handler of a signal runs any more.
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

    private init(_ source: any DispatchSourceProtocol, handler: @escaping @Sendable () -> Void) {
        self.source = source
        source.setEventHandler(handler: handler)
        source.activate()
    }

    /// The queue on which Dispatch reports signals. Like a loop, it gets a thread of its own when it needs one.
    private static let messages = DispatchQueue(label: "baton.messages")

    deinit {
        cancel()
    }

    /// Ends the source for good and releases its descriptor and handlers. Idempotent.
    func cancel() {
        source.cancel()
    }
}
