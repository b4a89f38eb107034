// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A connected stream socket, TCP or Unix-domain, that never blocks.
///
/// ``start(onReadable:onWritable:)`` makes it report to its loop; the handlers run on the loop's queue, so an actor
/// with that executor may enter itself with `assumeIsolated`. Bytes are read and written by ``read(into:)`` and
/// ``write(_:)`` when a handler says that it is worth trying.
///
/// Everything here is callable from anywhere and at most takes an uncontended lock; calls on the loop are what it is
/// made for. ``close()`` or the end of the last reference gives the descriptor back, always. TCP sockets send at once
/// (`TCP_NODELAY`); buffer sizes are never set, so that Linux tunes them up to its own limits. Nothing here raises
/// `SIGPIPE`.
package final class Socket: Sendable {
    /// What a read found.
    package enum ReadResult: Sendable, Hashable {
        /// So many bytes were stored, at least one unless the buffer was empty.
        case bytes(Int)
        /// Nothing has come. The handler tells when something does.
        case wouldBlock
        /// The other side will send no more. Reported each time from then on, and the read handler runs no more.
        case endOfFile
    }

    /// The loop that the handlers run on.
    package let loop: EventLoop
    /// The address on this side; the empty Unix path where there is none.
    package let localAddress: SocketAddress
    /// The address on the other side; the empty Unix path where there is none.
    package let remoteAddress: SocketAddress

    private let poll: ReadinessPoll
    private let state: Lock<State>

    /// One value of its own: a function that passes through a generic one is wrapped, which takes memory each time.
    private struct Handlers {
        let onReadable: @Sendable () -> Void
        let onWritable: @Sendable () -> Void
    }

    private struct State {
        /// Nil once closed.
        var descriptor: SharedDescriptor?
        var readSource: ReadinessSource?
        var writeSource: ReadinessSource?
        var handlers: Handlers?
        var isPaused = false
        var wantsWrite = false
        /// The input ended or broke: nothing to read will come, and epoll would say so for ever.
        var inputEnded = false

        var mayRead: Bool { descriptor != nil && !isPaused && !inputEnded }
    }

    /// Takes over a connected stream socket, from systemd or a `socketpair` say, and makes it non-blocking.
    ///
    /// - Throws: ``SocketError`` when it is not a connected socket; the descriptor is closed then.
    package convenience init(takingOwnershipOf descriptor: consuming OwnedDescriptor, on loop: EventLoop)
        throws(SocketError)
    {
        if case .failure(let error) = SystemCall.prepareAccepted(descriptor.rawValue) {
            throw SocketError(error, while: "taking over a socket")
        }
        try self.init(SharedDescriptor(descriptor), on: loop)
    }

    init(_ descriptor: SharedDescriptor, on loop: EventLoop, remote: SocketAddress? = nil) throws(SocketError) {
        self.loop = loop
        poll = try loop.poll()
        localAddress = try SocketAddress.of(descriptor.rawValue) { getsockname($0, $1, $2) }
        if let remote {
            remoteAddress = remote
        } else {
            remoteAddress = try SocketAddress.of(descriptor.rawValue) { getpeername($0, $1, $2) }
        }
        if localAddress.port != nil {
            // Only a hint to the kernel: a socket that refuses it still works.
            _ = SystemCall.setOption(descriptor.rawValue, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        }
        state = Lock(State(descriptor: descriptor))
    }

    /// Goes on with the connection of another one.
    private init(
        _ descriptor: SharedDescriptor, of other: Socket, inputEnded: Bool, on loop: EventLoop, in poll: ReadinessPoll
    ) {
        self.loop = loop
        self.poll = poll
        localAddress = other.localAddress
        remoteAddress = other.remoteAddress
        state = Lock(State(descriptor: descriptor, inputEnded: inputEnded))
    }

    /// Lets the connection go on on another loop, in the socket that is returned, which is not started yet. This one is
    /// closed then; called on its loop, no handler of it runs any more.
    ///
    /// - Throws: `outOfResources` where the loop is new and no descriptor is free, and this one stays as it was;
    ///   `closed` after ``close()``.
    package func moved(to loop: EventLoop) throws(SocketError) -> Socket {
        let poll = try loop.poll()
        let dropped = drop()
        guard let descriptor = dropped.descriptor else { throw SocketError(.closed, while: "moving a connection") }
        return Socket(descriptor, of: self, inputEnded: dropped.inputEnded, on: loop, in: poll)
    }

    deinit {
        close()
    }

    // MARK: - Readiness

    /// Starts reporting. A second call has another owner's handlers take the place of the first ones; one after
    /// ``close()`` does nothing.
    ///
    /// The socket holds the handlers until it is closed: let them refer weakly to what owns the socket, or close it.
    ///
    /// - Parameters:
    ///   - onReadable: bytes, the end of the input or an error wait. Runs again and again until they are read, or
    ///     reading is paused, so it may read as little as it likes.
    ///   - onWritable: there is room, or the connection broke. Runs only after ``wantWrite(_:)`` with true, and again
    ///     and again until that is called with false.
    package func start(onReadable: @escaping @Sendable () -> Void, onWritable: @escaping @Sendable () -> Void) {
        state.withLock { state in
            guard let descriptor = state.descriptor else { return }
            let isStarted = state.handlers != nil
            state.handlers = Handlers(onReadable: onReadable, onWritable: onWritable)
            guard !isStarted else { return }
            state.readSource = ReadinessSource(.reading, of: descriptor, in: poll) { [weak self] in
                self?.becameReadable()
            }
            state.writeSource = ReadinessSource(.writing, of: descriptor, in: poll) { [weak self] in
                self?.becameWritable()
            }
            if state.mayRead { state.readSource?.resume() }
            if state.wantsWrite { state.writeSource?.resume() }
        }
    }

    /// Says whether bytes wait to be written, which is when the write handler is to run. At first: no.
    ///
    /// Epoll reports room for as long as there is any, so this must be false when the queue is empty.
    package func wantWrite(_ wanted: Bool) {
        state.withLock { state in
            guard state.descriptor != nil else { return }
            state.wantsWrite = wanted
            if wanted { state.writeSource?.resume() } else { state.writeSource?.suspend() }
        }
    }

    /// Says whether reading rests: the read handler does not run, the kernel's buffer fills, and the other side is
    /// held back. At first: no. Whatever came in the meantime is reported after the pause.
    package func pauseReading(_ paused: Bool) {
        state.withLock { state in
            guard state.descriptor != nil, state.isPaused != paused else { return }
            state.isPaused = paused
            if paused || !state.mayRead {
                state.readSource?.suspend()
            } else {
                state.readSource?.resume()
            }
        }
    }

    // MARK: - Bytes

    /// Reads what has come, at most what `buffer` holds. One `recv`.
    ///
    /// - Throws: `connectionReset` when the connection broke, `closed` after ``close()``. The read handler runs no more
    ///   after either.
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(SocketError) -> ReadResult {
        try state.withLock { (state) throws(SocketError) -> ReadResult in
            guard let descriptor = state.descriptor else { throw SocketError(.closed, while: "reading") }
            guard !buffer.isEmpty else { return .bytes(0) }
            switch SystemCall.retrying({ recv(descriptor.rawValue, buffer.baseAddress, buffer.count, 0) }) {
            case .success(0):
                endInput(&state)
                return .endOfFile
            case .success(let count):
                return .bytes(count)
            case .failure(let error) where error.meansWouldBlock:
                return .wouldBlock
            case .failure(let error):
                endInput(&state)
                throw SocketError(error, while: "reading from \(remoteAddress)")
            }
        }
    }

    /// Writes as much of `bytes` as there is room for. One `send`.
    ///
    /// - Returns: how many were taken; 0 when there is no room, which ``wantWrite(_:)`` waits for.
    /// - Throws: `connectionReset` when the other side is gone or this side was ended by ``shutdownWrite()``, `closed`
    ///   after ``close()``.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(SocketError) -> Int {
        try state.withLock { (state) throws(SocketError) -> Int in
            guard let descriptor = state.descriptor else { throw SocketError(.closed, while: "writing") }
            guard !bytes.isEmpty else { return 0 }
            let flags = Int32(MSG_NOSIGNAL)
            switch SystemCall.retrying({ send(descriptor.rawValue, bytes.baseAddress, bytes.count, flags) }) {
            case .success(let count): return count
            case .failure(let error) where error.meansWouldBlock: return 0
            case .failure(let error): throw SocketError(error, while: "writing to \(remoteAddress)")
            }
        }
    }

    // MARK: - The end

    /// Ends this side's direction: the other side reads what was written and then the end of the input. Reading goes
    /// on. Idempotent, and nothing on a connection that is already gone.
    package func shutdownWrite() {
        state.withLock { state in
            guard let descriptor = state.descriptor else { return }
            shutdown(descriptor.rawValue, Int32(SHUT_WR))
        }
    }

    /// Ends both directions and gives the descriptor back; called on the loop, no handler runs any more.
    ///
    /// Bytes that were written still go out, unless bytes from the other side lie unread: then TCP resets the
    /// connection, and the other side may lose what it had not read. Who must not lose a last message calls
    /// ``shutdownWrite()`` and reads to the end first. Idempotent.
    package func close() {
        // The descriptor closes when both sources have let go of it, or here where there are none.
        _ = drop()
    }

    /// Lets go of everything. Whoever calls has the descriptor for as long as he holds what is returned.
    private func drop() -> State {
        let dropped = state.withLock { state in
            let dropped = state
            state = State(descriptor: nil)
            return dropped
        }
        dropped.readSource?.cancel()
        dropped.writeSource?.cancel()
        return dropped
    }

    /// Whether ``close()`` was called.
    package var isClosed: Bool { state.withLock { $0.descriptor == nil } }

    /// Calls `body` with the number of the descriptor while it is surely open; nil once closed.
    func withDescriptor<Value: Sendable>(_ body: (Int32) -> Value) -> Value? {
        state.withLock { state in state.descriptor.map { body($0.rawValue) } }
    }

    // MARK: - Handlers, on the loop

    private func becameReadable() {
        let handlers = state.withLock { $0.mayRead ? $0.handlers : nil }
        handlers?.onReadable()
    }

    private func becameWritable() {
        let handlers = state.withLock { $0.wantsWrite ? $0.handlers : nil }
        handlers?.onWritable()
    }

    private func endInput(_ state: inout State) {
        state.inputEnded = true
        state.readSource?.suspend()
    }
}
