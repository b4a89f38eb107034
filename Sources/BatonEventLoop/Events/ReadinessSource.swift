// SPDX-License-Identifier: Apache-2.0

/// A watch of one direction of a descriptor, which it holds open until it is cancelled.
///
/// Level-triggered: the handler runs on the loop again and again while the condition holds. So suspend a writing source
/// unless bytes wait, and a reading source at the end of the input or if the connection broke. It starts suspended, is
/// usable from any thread, and cancels itself when its last reference goes. After a suspend or cancel on the loop the
/// handler does not run; after one from elsewhere a running handler finishes.
///
/// ``init(reading:on:handler:)`` is for descriptors of other libraries.
package final class ReadinessSource: Sendable {
    private let direction: ReadinessPoll.Direction
    private let poll: ReadinessPoll
    /// Nil once cancelled.
    private let descriptor: Lock<SharedDescriptor?>

    /// Watches for something to read, or the end of the input.
    ///
    /// - Parameters:
    ///   - descriptor: of a socket, a pipe or a terminal, which `epoll_ctl(2)` accepts. Nothing else watches it on this
    ///     loop.
    ///   - loop: the loop of the handler.
    ///   - handler: held until the source is cancelled.
    /// - Throws: `outOfResources` if this is the first watch of the loop and no descriptor is free.
    package convenience init(
        reading descriptor: consuming OwnedDescriptor, on loop: EventLoop, handler: @escaping @Sendable () -> Void
    ) throws(SocketError) {
        let poll = try loop.poll()
        self.init(.reading, of: SharedDescriptor(descriptor), in: poll, handler: handler)
    }

    /// Watches one direction. Reading includes connections to accept and the end of the input; writing includes the end
    /// of a connection attempt. Each direction of a descriptor has one source at a time.
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
    ///
    /// - Throws: `outOfResources` if the kernel watches no further descriptor. The source stays suspended then.
    package func resume() throws(SocketError) {
        try descriptor.withLock { (descriptor) throws(SocketError) in
            guard let descriptor else { return }
            try poll.activate(direction, of: descriptor.rawValue)
        }
    }

    /// Stops the handler from running. Idempotent; nothing after a cancel.
    package func suspend() {
        descriptor.withLock { descriptor in
            guard let descriptor else { return }
            poll.deactivate(direction, of: descriptor.rawValue)
        }
    }

    /// Ends the watch for good and releases the descriptor and the handler. Idempotent.
    package func cancel() {
        let dropped = descriptor.withLock { descriptor in
            defer { descriptor = nil }
            return descriptor
        }
        guard let dropped else { return }
        poll.remove(direction, of: dropped.rawValue)
    }
}
