// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import DequeModule

/// The state of one stream that an application holds: received bytes and waiting tasks.
///
/// Confined to its connection's actor.
final class StreamState {
    /// The size of buffers for received bytes if the reader keeps up. Most streams are small, or carry a message now
    /// and then.
    private static let smallCapacity = 32 << 10
    private static let capacity = 1 << 20
    /// The number of buffers that are kept for reuse. As many are in use while a document is written to a disk.
    private static let spareBound = 4

    private var received: Deque<Buffer> = []
    private var spares: [Buffer] = []
    /// The records of the reader, from the start of the stream, if it has stated a framing.
    private var layout: Framing?
    /// The number of bytes that belong in the last buffer.
    private var lastBound = 0
    /// Bytes that have arrived, and bytes that the application has taken, since the stream's start.
    private var (arrived, taken) = (0, 0)
    /// Bytes in the buffer that the application holds. Their credit is given when it asks for the next one.
    private var inHand = 0
    /// Bytes that arrived and that the application has not taken.
    private(set) var unread = 0
    /// Whether any byte ever came.
    private(set) var hasReceived = false

    /// Whether this side opened it.
    let isLocal: Bool
    /// Whether no bytes are expected: a peer that sends some is reset.
    var ignoresInput = false
    /// Whether the application has released it and only the peer's END is missing.
    var isAbandoned = false
    /// Whether the peer's END has come; bytes before it may still be unread.
    var hasEnded = false
    /// Whether this side has sent END.
    var hasFinished = false
    /// Whether all bytes of the peer had come when the connection ended, so that they can still be read.
    var isWhole = false
    /// The reason why the stream has failed. It takes precedence over unread bytes.
    var failure: TransportError?
    /// Why nothing can be written any more, although what came can still be read.
    private(set) var writeFailure: TransportError?
    /// What a reader gets after the last byte, in place of the end.
    private(set) var endFailure: TransportError?
    var response: [UInt8]?
    /// The budget's bytes for the peer's request and its answer; `nil` for this side's own streams, and without a
    /// budget.
    let reservation: ByteReservation?

    /// The waiting writer continues when at most this many bytes are queued.
    var writerBound = 0
    /// The waiting reader continues when this many bytes are there.
    var readerBound = 1
    var reader = Waiter()
    var writer = Waiter()
    var responseWaiter = Waiter()

    init(isLocal: Bool, reservation: ByteReservation? = nil) {
        self.isLocal = isLocal
        self.reservation = reservation
    }

    /// The place for the next bytes. Bytes that are already there need no copy in ``append(_:)``.
    func receiveBuffer(atMost count: Int) -> UnsafeMutableRawBufferPointer {
        let target = bufferToFill()
        return UnsafeMutableRawBufferPointer(rebasing: target.writable[target.count..<lastBound].prefix(count))
    }

    /// Stores received bytes. The granted credit bounds them.
    func append(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes
        unread += bytes.count
        while !rest.isEmpty {
            hasReceived = true
            let target = bufferToFill()
            let count = target.append(UnsafeRawBufferPointer(rebasing: rest.prefix(lastBound - target.count)))
            arrived += count
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
    }

    /// The last buffer, or a new one if that is full.
    private func bufferToFill() -> Buffer {
        if let last = received.last, last.count < lastBound { return last }
        let fresh = takeSpare() ?? makeBuffer()
        lastBound = min(fresh.capacity, layout?.bytesToRecordEnd(at: arrived) ?? fresh.capacity)
        received.append(fresh)
        return fresh
    }

    /// A buffer for reuse. It must be a large one if the reader lags behind.
    private func takeSpare() -> Buffer? {
        let index = spares.lastIndex { received.isEmpty || layout != nil || $0.capacity >= Self.capacity }
        return index.map { spares.remove(at: $0) }
    }

    private func makeBuffer() -> Buffer {
        guard hasReceived else { return Buffer(capacity: Self.smallCapacity) }
        guard let layout else { return Buffer(capacity: received.isEmpty ? Self.smallCapacity : Self.capacity) }
        let (size, aligned) = (layout.recordSize, layout.alignedByte)
        // A stream that ends with its first record needs one buffer.
        guard size >= Self.capacity, arrived >= size else { return Buffer(capacity: size, alignedByte: aligned) }
        // Two buffers fill a huge page, and the second is needed soon.
        let memory = HugePageMemory(count: 2 * Buffer.size(capacity: size, alignedByte: aligned))
        let pair = Buffer.buffers(in: memory.bytes, of: memory, capacity: size, alignedByte: aligned)
        spares += pair.dropFirst()
        return pair[0]
    }

    /// Aligns the buffers from the next one on with records. Call it while the application holds no buffer.
    func setFraming(_ framing: Framing) {
        guard (1...2 * Self.capacity).contains(framing.recordSize) else { return }
        var layout = framing
        layout.distance += taken
        spares.removeAll { !layout.fits($0) }
        self.layout = layout
    }

    /// The next buffer of received bytes, which the application holds from then on.
    func next() -> Buffer? {
        guard let buffer = received.popFirst() else { return nil }
        guard buffer.count > 0 else {
            // The buffer was offered as a place, and nothing has come.
            recycle(buffer)
            return nil
        }
        inHand = buffer.count
        taken += buffer.count
        unread -= buffer.count
        return buffer
    }

    /// Takes a buffer back for reuse.
    func recycle(_ buffer: Buffer) {
        guard layout?.fits(buffer) ?? (buffer.capacity >= Self.smallCapacity) else { return }
        if spares.count >= Self.spareBound {
            // A large buffer can replace a small one.
            let small = spares.firstIndex { $0.capacity < buffer.capacity }
            guard let small else { return }
            spares.remove(at: small)
        }
        buffer.count = 0
        spares.append(buffer)
    }

    /// The number of bytes that the application has released since the last call.
    func takeConsumed() -> Int {
        defer { inHand = 0 }
        return inHand
    }

    /// Drops all unread bytes. Returns the number of bytes whose credit was not given yet.
    func discard() -> Int {
        defer {
            received.removeAll()
            spares = []
            inHand = 0
            unread = 0
        }
        return inHand + unread
    }

    /// The peer has reset the stream with a code that keeps what came before it.
    func stop(_ error: TransportError) {
        writeFailure = error
        if !hasEnded { endFailure = error }
        hasEnded = true
        hasFinished = true
        wakeAll()
    }

    func wakeAll() {
        reader.wake()
        writer.wake()
        responseWaiter.wake()
    }
}

/// One task that waits for a change of state, and checks the state itself when it is woken.
struct Waiter {
    /// Whether a task waits here or is about to; only one may.
    private(set) var hasWaiter = false
    private var continuation: CheckedContinuation<Void, Never>?

    /// Makes the calling task the waiting one, until it calls ``release()``. Returns false if another task is.
    mutating func claim() -> Bool {
        guard !hasWaiter else { return false }
        hasWaiter = true
        return true
    }

    mutating func wait(_ continuation: CheckedContinuation<Void, Never>) {
        self.continuation = continuation
    }

    mutating func release() {
        hasWaiter = false
    }

    mutating func wake() {
        continuation.take()?.resume()
    }
}
