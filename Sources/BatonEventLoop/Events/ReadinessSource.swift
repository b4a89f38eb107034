/// Watches one direction of a descriptor, which it holds open until it is cancelled.
///
/// Level-triggered: the handler runs on the loop again and again while the condition holds, so a source of writing must be
/// suspended unless bytes wait, and one of reading at the end of the input or when the connection broke. It starts
/// suspended, is usable from any thread, and cancels itself when its last reference goes. After a suspend or a cancel on
/// the loop the handler does not run; after one from elsewhere one that is just running finishes. See ``ReadinessPoll``.
final class ReadinessSource: Sendable {
    private let direction: ReadinessPoll.Direction
    private let loop: EventLoop
    /// Nil once cancelled.
    private let descriptor: Lock<SharedDescriptor?>

    /// Watches for something to read (or accept), or the end of the input; for room to write, or the end of a connection
    /// attempt. Each direction of a descriptor has one source at a time.
    init(
        _ direction: ReadinessPoll.Direction, of descriptor: SharedDescriptor, on loop: EventLoop,
        handler: @escaping @Sendable () -> Void
    ) {
        self.direction = direction
        self.loop = loop
        self.descriptor = Lock(descriptor)
        loop.poll.add(direction, of: descriptor.rawValue, handler: handler)
    }

    deinit {
        cancel()
    }

    /// Lets the handler run. Idempotent; nothing after a cancel.
    func resume() { setActive(true) }

    /// Stops the handler from running. Idempotent; nothing after a cancel.
    func suspend() { setActive(false) }

    private func setActive(_ isActive: Bool) {
        descriptor.withLock { descriptor in
            guard let descriptor else { return }
            loop.poll.setActive(isActive, direction, of: descriptor.rawValue)
        }
    }

    /// Ends the watch for good and lets go of the descriptor and the handler. Idempotent.
    ///
    /// - Returns: whether it was this call that ended it.
    @discardableResult
    func cancel() -> Bool {
        let dropped = descriptor.withLock { descriptor in
            defer { descriptor = nil }
            return descriptor
        }
        guard let dropped else { return false }
        loop.poll.remove(direction, of: dropped.rawValue)
        return true
    }
}
