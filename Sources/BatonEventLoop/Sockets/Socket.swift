// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A connected stream socket, TCP or Unix-domain, that never blocks.
///
/// After ``start(onReadable:onWritable:)`` it reports to its loop. The handlers run on the loop's queue, so an actor
/// with that executor may enter itself with `assumeIsolated`. A handler then calls ``read(into:)`` or ``write(_:)``.
///
/// Every method is callable from anywhere and takes at most an uncontended lock; calls on the loop are the normal case.
/// ``close()`` or the end of the last reference always closes the descriptor. TCP sockets send at once (`TCP_NODELAY`).
/// Buffer sizes are never set, so that Linux tunes them. No call raises `SIGPIPE`.
package final class Socket: Sendable {
    /// The result of a read.
    package enum ReadResult: Sendable, Hashable {
        /// The number of bytes stored, at least one unless the buffer was empty.
        case bytes(Int)
        /// No bytes are there. The read handler runs when some have come.
        case wouldBlock
        /// The other side will send no more. Reported each time from then on, and the read handler no longer runs.
        case endOfFile
    }

    /// The loop that the handlers run on.
    package let loop: EventLoop
    /// The address on this side; the empty Unix path if there is none.
    package let localAddress: SocketAddress
    /// The address on the other side; the empty Unix path if there is none.
    package let remoteAddress: SocketAddress

    private let poll: ReadinessPoll
    private let state: Lock<State>

    /// A struct and not two closures in `State`: a function that passes through a generic one is wrapped, which
    /// allocates.
    private struct Handlers {
        let onReadable: @Sendable () -> Void
        let onWritable: @Sendable () -> Void
    }

    private struct State {
        /// Nil once closed.
        var descriptor: SharedDescriptor?
        var source: ReadinessSource?
        var handlers: Handlers?
        var isPaused = false
        var wantsWrite = false
        /// Whether the input ended or broke. There is nothing more to read, and epoll would report that for ever.
        var inputEnded = false
        /// The reason why the kernel does not watch the descriptor. Reading and writing throw it.
        var watchFailure: SocketError?

        var mayRead: Bool { descriptor != nil && !isPaused && !inputEnded }
    }

    /// Takes over a connected stream socket that does not block.
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

    /// Moves the connection to another loop, into the returned socket, which is not started yet. This socket is closed.
    /// After a call on its loop, none of its handlers runs any more.
    ///
    /// - Throws: `outOfResources` if the loop is new and no descriptor is free, which leaves this socket unchanged;
    ///   `closed` after ``close()``.
    package func moved(to loop: EventLoop) throws(SocketError) -> Socket {
        _ = try loop.poll()
        let dropped = drop()
        guard let descriptor = dropped.descriptor else { throw SocketError(.closed, while: "moving a connection") }
        let socket = try Socket(descriptor, on: loop, remote: remoteAddress)
        socket.state.withLock { $0.inputEnded = dropped.inputEnded }
        return socket
    }

    deinit {
        close()
    }

    // MARK: - Readiness

    /// Starts reporting. A second call replaces the handlers, for another owner. After ``close()`` it does nothing.
    ///
    /// The socket holds the handlers until it is closed. So let them refer weakly to the owner of the socket, or close
    /// it.
    ///
    /// - Parameters:
    ///   - onReadable: bytes, the end of the input or an error wait. Runs again and again until they are read or
    ///     reading is paused, so it may read as little as it likes.
    ///   - onWritable: there is room to write, or the connection broke. Runs only after ``wantWrite(_:)`` with true,
    ///     again and again until that is called with false.
    package func start(onReadable: @escaping @Sendable () -> Void, onWritable: @escaping @Sendable () -> Void) {
        state.withLock { state in
            guard let descriptor = state.descriptor else { return }
            let isStarted = state.handlers != nil
            state.handlers = Handlers(onReadable: onReadable, onWritable: onWritable)
            guard !isStarted else { return }
            state.source = ReadinessSource(
                descriptor, in: poll, onReadable: { [weak self] in self?.becameReadable() },
                onWritable: { [weak self] in self?.becameWritable() })
            if state.mayRead { watch(.reading, &state) }
            if state.wantsWrite { watch(.writing, &state) }
        }
    }

    /// Sets whether bytes wait to be written, so that the write handler runs. False at first.
    ///
    /// Epoll reports room as long as there is any, so this must be false while the queue is empty.
    package func wantWrite(_ wanted: Bool) {
        state.withLock { state in
            guard state.descriptor != nil else { return }
            state.wantsWrite = wanted
            if wanted { watch(.writing, &state) } else { state.source?.suspend(.writing) }
        }
    }

    /// Pauses or resumes reading. During a pause the read handler does not run, and the full buffer of the kernel stops
    /// the other side. Not paused at first. Bytes that come meanwhile are reported after the pause.
    package func pauseReading(_ paused: Bool) {
        state.withLock { state in
            guard state.descriptor != nil, state.isPaused != paused else { return }
            state.isPaused = paused
            if paused || !state.mayRead {
                state.source?.suspend()
            } else {
                watch(.reading, &state)
            }
        }
    }

    /// Has the kernel watch the descriptor. If it refuses, both handlers run once, and the next read or write throws
    /// the reason.
    private func watch(_ direction: ReadinessSource.Direction, _ state: inout State) {
        do throws(SocketError) {
            try state.source?.resume(direction)
        } catch {
            state.watchFailure = error
            let handlers = state.handlers
            loop.execute {
                handlers?.onReadable()
                handlers?.onWritable()
            }
        }
    }

    // MARK: - Bytes

    /// Reads what has come, at most the size of `buffer`. One `recv`.
    ///
    /// - Throws: `connectionReset` if the connection broke, `outOfResources` if the kernel does not watch it, `closed`
    ///   after ``close()``. The read handler no longer runs after any of them.
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(SocketError) -> ReadResult {
        try state.withLock { (state) throws(SocketError) -> ReadResult in
            guard let descriptor = state.descriptor else { throw SocketError(.closed, while: "reading") }
            if let failure = state.watchFailure { throw failure }
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
    /// - Returns: the number of bytes taken; 0 if there is no room, which ``wantWrite(_:)`` waits for.
    /// - Throws: `connectionReset` if the other side is gone or ``shutdownWrite()`` ended this side, `outOfResources`
    ///   if the kernel does not watch the connection, `closed` after ``close()``.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(SocketError) -> Int {
        try state.withLock { (state) throws(SocketError) -> Int in
            guard let descriptor = state.descriptor else { throw SocketError(.closed, while: "writing") }
            if let failure = state.watchFailure { throw failure }
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

    /// Ends this side's direction: the other side reads everything written, and then the end of the input. Reading
    /// continues. Idempotent; does nothing on a connection that is gone.
    package func shutdownWrite() {
        state.withLock { state in
            guard let descriptor = state.descriptor else { return }
            shutdown(descriptor.rawValue, Int32(SHUT_WR))
        }
    }

    /// Ends both directions and closes the descriptor. After a call on the loop, no handler runs any more. Idempotent.
    ///
    /// Written bytes still leave, unless unread bytes of the other side are here: then TCP resets the connection, and
    /// the other side may lose what it had not read. To deliver a last message for certain, call ``shutdownWrite()``
    /// and read to the end first.
    package func close() {
        _ = drop()
    }

    /// Releases everything. The caller has the descriptor as long as it holds the returned state.
    private func drop() -> State {
        let dropped = state.withLock { state in
            let dropped = state
            state = State(descriptor: nil)
            return dropped
        }
        dropped.source?.cancel()
        return dropped
    }

    /// Whether ``close()`` was called.
    package var isClosed: Bool { state.withLock { $0.descriptor == nil } }

    /// Calls `body` with the number of the descriptor, which stays open meanwhile; nil once closed.
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
        state.source?.suspend()
    }
}
