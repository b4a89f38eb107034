import BatonEventLoop
import Dispatch
import Glibc

/// Tells once when a descriptor that belongs to somebody else becomes readable, and again each time it is armed.
///
/// Once, because the reaction happens on another thread: a level-triggered source would fire without end until then.
/// It watches a duplicate of the descriptor, which it owns, so that a `DNSServiceRef` may close the original at any
/// time; epoll forgives closing a watched descriptor as little as Dispatch does.
///
/// All methods may be called from anywhere; what they ask for happens on the loop, in order.
final class ReadinessSource: Sendable {
    private let loop: EventLoop
    private let watch: Watch

    /// Starts disarmed. Nil when the process has no descriptor left.
    ///
    /// - Parameters:
    ///   - descriptor: is duplicated here; may be closed as soon as this returns.
    ///   - loop: where `handler` runs.
    init?(_ descriptor: Int32, on loop: EventLoop, handler: @escaping @Sendable () -> Void) {
        let duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard duplicate >= 0 else { return nil }
        self.loop = loop
        watch = Watch(takingOwnershipOf: duplicate, on: loop.queue, handler: handler)
    }

    deinit {
        cancel()
    }

    /// Lets the handler run once. Idempotent; nothing after a cancel.
    func arm() {
        loop.execute { [watch] in watch.arm() }
    }

    /// Ends the source for good; a handler that is on its way may still run once. Idempotent.
    func cancel() {
        loop.execute { [watch] in watch.cancel() }
    }
}

/// The Dispatch source, which suspends itself as it fires.
private final class Watch: @unchecked Sendable {  // reason: after init it is touched on the loop's queue only
    private let source: any DispatchSourceRead
    private var isSuspended = true
    private var isCancelled = false

    init(takingOwnershipOf descriptor: Int32, on queue: DispatchQueue, handler: @escaping @Sendable () -> Void) {
        source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        let fire: @Sendable () -> Void = { [weak self] in
            if self?.disarm() == true { handler() }
        }
        source.setEventHandler(handler: fire)
        let release: @Sendable () -> Void = { close(descriptor) }
        source.setCancelHandler(handler: release)
    }

    func arm() {
        guard isSuspended, !isCancelled else { return }
        isSuspended = false
        source.resume()
    }

    func cancel() {
        guard !isCancelled else { return }
        isCancelled = true
        source.cancel()
        // A suspended source must not be released, and runs no cancel handler.
        if isSuspended { source.resume() }
    }

    private func disarm() -> Bool {
        guard !isSuspended, !isCancelled else { return false }
        isSuspended = true
        source.suspend()
        return true
    }
}
