// SPDX-License-Identifier: Apache-2.0

/// Watches one direction of a descriptor, which it holds open until it is cancelled.
///
/// Level-triggered: the handler runs on the loop again and again while the condition holds, so a source of writing must
/// be suspended unless bytes wait, and one of reading at the end of the input or when the connection broke. It starts
/// suspended, is usable from any thread, and cancels itself when its last reference goes. After a suspend or a cancel
/// on the loop the handler does not run; after one from elsewhere one that is just running finishes.
///
/// For descriptors of other libraries; what this module makes watches itself.
package final class ReadinessSource: Sendable {
    private let direction: ReadinessPoll.Direction
    private let poll: ReadinessPoll
    /// Nil once cancelled.
    private let descriptor: Lock<SharedDescriptor?>

    /// Watches for something to read, or the end of the input.
    ///
    /// - Parameters:
    ///   - descriptor: of a socket, a pipe or a terminal: what `epoll_ctl(2)` takes. Nothing else watches it on this
    ///     loop.
    ///   - loop: where the handler runs.
    ///   - handler: held until the source is cancelled.
    /// - Throws: `outOfResources` where this is the first of the loop and no descriptor is free.
    package convenience init(
        reading descriptor: consuming OwnedDescriptor, on loop: EventLoop, handler: @escaping @Sendable () -> Void
    ) throws(SocketError) {
        let poll = try loop.poll()
        self.init(.reading, of: SharedDescriptor(descriptor), in: poll, handler: handler)
    }

    /// Watches for something to read (or accept), or the end of the input; for room to write, or the end of a
    /// connection attempt. Each direction of a descriptor has one source at a time.
    init(
        _ direction: ReadinessPoll.Direction, of descriptor: SharedDescriptor, in poll: ReadinessPoll,
        handler: @escaping @Sendable () -> Void
    ) {
        self.direction = direction
        self.poll = poll
        self.descriptor = Lock(descriptor)
        poll.add(direction, of: descriptor.rawValue, handler: handler)
    }

    deinit {
        cancel()
    }

    /// Lets the handler run. Idempotent; nothing after a cancel.
    package func resume() { setActive(true) }

    /// Stops the handler from running. Idempotent; nothing after a cancel.
    package func suspend() { setActive(false) }

    private func setActive(_ isActive: Bool) {
        descriptor.withLock { descriptor in
            guard let descriptor else { return }
            poll.setActive(isActive, direction, of: descriptor.rawValue)
        }
    }

    /// Ends the watch for good and lets go of the descriptor and the handler. Idempotent.
    package func cancel() {
        let dropped = descriptor.withLock { descriptor in
            defer { descriptor = nil }
            return descriptor
        }
        guard let dropped else { return }
        poll.remove(direction, of: dropped.rawValue)
    }
}
