// SPDX-License-Identifier: Apache-2.0

/// A watch of a descriptor, which it holds open until it is cancelled.
///
/// Level-triggered: a handler runs on the loop again and again while its condition holds. So suspend writing unless
/// bytes wait, and reading at the end of the input or if the connection broke. Both directions start suspended. A
/// source is usable from any thread, and cancels itself when its last reference goes. After a suspend or cancel on the
/// loop the handler does not run; after one from elsewhere a running handler finishes.
///
/// ``init(reading:on:handler:)`` is for descriptors of other libraries.
package final class ReadinessSource: Sendable {
    /// A direction of a descriptor.
    package enum Direction: Sendable {
        /// Something to read, a connection to accept, or the end of the input.
        case reading
        /// Room to write, or the end of a connection attempt.
        case writing
    }

    private let poll: ReadinessPoll
    private let key: UInt64

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
        self.init(SharedDescriptor(descriptor), in: poll, onReadable: handler)
    }

    /// Watches a descriptor, which has one source at a time.
    init(
        _ descriptor: SharedDescriptor, in poll: ReadinessPoll, onReadable: @escaping @Sendable () -> Void = {},
        onWritable: @escaping @Sendable () -> Void = {}
    ) {
        self.poll = poll
        key = poll.add(ReadinessPoll.Watch(descriptor, onReadable: onReadable, onWritable: onWritable))
    }

    deinit {
        cancel()
    }

    /// Lets the handler of a direction run. Idempotent; nothing after a cancel.
    ///
    /// - Throws: `outOfResources` if the kernel watches no further descriptor. The direction stays suspended then.
    package func resume(_ direction: Direction = .reading) throws(SocketError) {
        try poll.resume(direction, of: key)
    }

    /// Stops the handler of a direction from running. Idempotent; nothing after a cancel.
    package func suspend(_ direction: Direction = .reading) {
        poll.suspend(direction, of: key)
    }

    /// Ends the watch for good and releases the descriptor and the handlers. Idempotent.
    package func cancel() {
        poll.remove(key)
    }
}
