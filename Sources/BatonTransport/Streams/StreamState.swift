// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import DequeModule

/// What a connection knows of one stream that an application holds: bytes that arrived and who waits for what.
///
/// Confined to its connection's actor.
final class StreamState {
    /// Size of the buffers that collect received bytes. While the reader leaves nothing behind they are small: most
    /// streams are, and on others a message comes now and then.
    private static let smallCapacity = 32 << 10
    private static let capacity = 1 << 20
    /// Buffers that are kept to be filled again: as many as are under way when a document is written to a disk.
    private static let spareBound = 4

    private var received: Deque<Buffer> = []
    private var spares: [Buffer] = []
    /// Where buffers begin, where the reader has said what it reads.
    private var frames: Frames?
    /// How many bytes belong in the last buffer.
    private var lastBound = 0
    /// Bytes that have come, and bytes that the application was given, since the stream's start.
    private var (arrived, taken) = (0, 0)
    /// Bytes in the buffer that the application has in its hands: credit for them is given when it asks for the next.
    private var inHand = 0
    /// Bytes that arrived and that the application has not taken.
    private(set) var unread = 0
    /// Whether any byte ever came.
    private(set) var hasReceived = false

    /// This side opened it.
    let isLocal: Bool
    /// The request takes no bytes behind it: a peer that sends some is aborted.
    var ignoresInput = false
    /// The application has let it go, and only the peer's END is missing.
    var isAbandoned = false
    /// The peer's END has come; what arrived before it may still be unread.
    var hasEnded = false
    /// This side sent END.
    var hasFinished = false
    /// All that the peer sent had come when the connection ended: it can still be read.
    var isWhole = false
    /// Why the stream cannot go on; it goes before what is unread.
    var failure: TransportError?
    var response: [UInt8]?
    /// What the peer's request and its answer take of the budget; `nil` of this side's own streams, and without a
    /// budget.
    let room: GrowingRoom?

    /// The task that writes goes on when no more bytes than this are queued.
    var writerBound = 0
    /// The task that reads goes on when this many bytes are there.
    var readerBound = 1
    var reader = Waiter()
    var writer = Waiter()
    var responseWaiter = Waiter()

    init(isLocal: Bool, room: GrowingRoom? = nil) {
        self.isLocal = isLocal
        self.room = room
    }

    /// Where the next bytes that arrive will be kept: whoever puts them there before ``append(_:)`` saves a copy.
    func room(atMost count: Int) -> UnsafeMutableRawBufferPointer {
        let target = bufferToFill()
        return UnsafeMutableRawBufferPointer(rebasing: target.writable[target.count..<lastBound].prefix(count))
    }

    /// Keeps bytes that arrived. Bounded by the credit that the protocol granted.
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

    /// The last buffer, or a new one when that is full.
    private func bufferToFill() -> Buffer {
        if let last = received.last, last.count < lastBound { return last }
        let fresh = takeSpare() ?? makeBuffer()
        lastBound = min(fresh.capacity, frames?.room(at: arrived) ?? fresh.capacity)
        received.append(fresh)
        return fresh
    }

    /// A buffer to be filled again; where something is left behind a large one.
    private func takeSpare() -> Buffer? {
        let index = spares.lastIndex { received.isEmpty || frames != nil || $0.capacity >= Self.capacity }
        return index.map { spares.remove(at: $0) }
    }

    private func makeBuffer() -> Buffer {
        guard hasReceived else { return Buffer(capacity: Self.smallCapacity) }
        guard let frames else { return Buffer(capacity: received.isEmpty ? Self.smallCapacity : Self.capacity) }
        let (size, aligned) = (frames.recordSize, frames.alignedByte)
        // What ends with its first record needs one buffer.
        guard size >= Self.capacity, arrived >= size else { return Buffer(capacity: size, alignedByte: aligned) }
        // Two fill a huge page, and the next one is wanted soon.
        let memory = HugePageMemory(count: 2 * Buffer.size(capacity: size, alignedByte: aligned))
        let pair = Buffer.buffers(in: memory.bytes, of: memory, capacity: size, alignedByte: aligned)
        spares += pair.dropFirst()
        return pair[0]
    }

    /// Has the buffers from the next one on begin where records do. Call it when the application has nothing in its
    /// hands.
    func frame(_ framing: Framing) {
        guard (1...2 * Self.capacity).contains(framing.recordSize) else { return }
        let frames = Frames(framing, at: taken)
        spares.removeAll { !frames.fit($0) }
        self.frames = frames
    }

    /// The next buffer of received bytes, which is then in the application's hands.
    func next() -> Buffer? {
        guard let buffer = received.popFirst() else { return nil }
        guard buffer.count > 0 else {
            // Its room was given, and nothing has come.
            recycle(buffer)
            return nil
        }
        inHand = buffer.count
        taken += buffer.count
        unread -= buffer.count
        return buffer
    }

    /// Takes a buffer back that the application is done with, to be filled again.
    func recycle(_ buffer: Buffer) {
        guard frames?.fit(buffer) ?? (buffer.capacity >= Self.smallCapacity) else { return }
        if spares.count >= Self.spareBound {
            // A large one serves wherever a small one does.
            let small = spares.firstIndex { $0.capacity < buffer.capacity }
            guard let small else { return }
            spares.remove(at: small)
        }
        buffer.count = 0
        spares.append(buffer)
    }

    /// How many bytes the application has done with since the last call.
    func takeConsumed() -> Int {
        defer { inHand = 0 }
        return inHand
    }

    /// Drops everything that is unread, and returns how many bytes that the application has not done with.
    func discard() -> Int {
        defer {
            received.removeAll()
            spares = []
            inHand = 0
            unread = 0
        }
        return inHand + unread
    }

    func wakeAll() {
        reader.wake()
        writer.wake()
        responseWaiter.wake()
    }
}

/// One task that waits for a change of state, and looks at the state itself when it is woken.
struct Waiter {
    /// Names one task that is about to wait, so that its cancellation wakes no other one.
    struct Ticket {
        fileprivate let number: UInt64
    }

    private var waiting: (continuation: CheckedContinuation<Void, Never>, ticket: Ticket)?
    private var issued: UInt64 = 0

    /// Whether a task waits here; only one may.
    var isTaken: Bool { waiting != nil }

    mutating func ticket() -> Ticket {
        issued += 1
        return Ticket(number: issued)
    }

    mutating func wait(_ continuation: CheckedContinuation<Void, Never>, _ ticket: Ticket) {
        precondition(waiting == nil, "two tasks wait for the same thing of one stream")
        waiting = (continuation, ticket)
    }

    mutating func wake() {
        let woken = waiting
        waiting = nil
        woken?.continuation.resume()
    }

    mutating func wake(_ ticket: Ticket) {
        if waiting?.ticket.number == ticket.number { wake() }
    }
}
