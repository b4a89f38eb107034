// SPDX-License-Identifier: Apache-2.0

/// The streams of a connection, the ids used so far, and the counts that the limits are about.
struct StreamTable {
    /// What an id that is not in the table means.
    enum Absence {
        /// Never opened: a frame for it is a connection error.
        case idle
        /// Was opened and is forgotten, or was skipped: frames for it were under way and are discarded.
        case forgotten
    }

    private let role: Role
    private var streams: [StreamID: Stream] = [:]
    /// Streams that this side aborted and whose RESET waits. They keep their places, because the peer still counts
    /// them.
    private var aborted: [StreamID: Stream] = [:]
    /// The next id this side opens; wider than an id so that it can pass the last one.
    private var nextLocal: UInt64
    /// The highest id the peer has opened, 0 before the first.
    private(set) var highestPeer = StreamID.connection

    /// Streams that count against the limits, by who opened them.
    private(set) var openLocal = 0
    private(set) var openPeer = 0
    private(set) var unansweredLocal = 0
    private(set) var unansweredPeer = 0

    init(role: Role) {
        self.role = role
        nextLocal = UInt64(role.firstStream)
    }

    /// Whether no stream is of use to anybody.
    var isEmpty: Bool { streams.isEmpty }
    /// Streams closed on the wire whose last bytes the application has not consumed.
    var unread: Int { streams.count + aborted.count - openLocal - openPeer }
    var all: some Collection<Stream> { streams.values }
    var allAborted: some Collection<Stream> { aborted.values }

    /// The stream, unless it was aborted.
    subscript(id: StreamID) -> Stream? { streams[id] }

    /// The stream, aborted or not: what the peer's frames are about.
    func known(_ id: StreamID) -> Stream? { streams[id] ?? aborted[id] }

    /// Whether this side has used up its ids.
    var isExhausted: Bool { nextLocal > UInt64(UInt32.max) }

    func absence(of id: StreamID) -> Absence {
        let wasUsed = role.opens(id) ? UInt64(id.rawValue) < nextLocal : id <= highestPeer
        return wasUsed ? .forgotten : .idle
    }

    /// Takes the next id of this side, nil when all are used.
    mutating func useLocal() -> StreamID? {
        guard !isExhausted else { return nil }
        defer { nextLocal += 2 }
        return StreamID(rawValue: UInt32(truncatingIfNeeded: nextLocal))
    }

    /// Adds a stream that this side opens.
    mutating func addLocal(_ stream: Stream) {
        streams[stream.id] = stream
        openLocal += 1
        unansweredLocal += 1
    }

    /// Notes that the peer has used `id`. False when it may not: wrong parity, or not higher than the last.
    mutating func usePeer(_ id: StreamID) -> Bool {
        guard id.rawValue != 0, !role.opens(id), id > highestPeer else { return false }
        highestPeer = id
        return true
    }

    /// Adds a stream that the peer opened.
    mutating func addPeer(_ stream: Stream) {
        streams[stream.id] = stream
        openPeer += 1
        unansweredPeer += 1
    }

    /// The request of the stream is answered, or never will be.
    mutating func answered(_ stream: Stream) {
        guard stream.countsAsUnanswered else { return }
        stream.countsAsUnanswered = false
        if stream.isLocal { unansweredLocal -= 1 } else { unansweredPeer -= 1 }
    }

    /// The stream is closed on the wire, so its place is free.
    mutating func closed(_ stream: Stream) {
        answered(stream)
        guard stream.countsAsOpen else { return }
        stream.countsAsOpen = false
        if stream.isLocal { openLocal -= 1 } else { openPeer -= 1 }
    }

    /// The stream is of no use any more, and keeps its place until its RESET has been sent.
    mutating func abort(_ stream: Stream) {
        stream.isAborted = true
        streams[stream.id] = nil
        aborted[stream.id] = stream
    }

    /// Forgets the stream.
    mutating func remove(_ stream: Stream) {
        closed(stream)
        streams[stream.id] = nil
        aborted[stream.id] = nil
    }

    mutating func removeAll() {
        streams.removeAll()
        aborted.removeAll()
        openLocal = 0
        openPeer = 0
        unansweredLocal = 0
        unansweredPeer = 0
    }
}
