// SPDX-License-Identifier: Apache-2.0

/// The streams of a connection, the ids used so far, and the counts that the limits apply to.
struct SessionStreamTable {
    private let role: Role
    private var streams: [StreamID: SessionStream] = [:]
    /// Streams that this side has aborted and whose RESET waits. They count as open, because the peer still counts
    /// them.
    private var aborted: [StreamID: SessionStream] = [:]
    /// The next id that this side opens. It is wider than an id, so that it can pass the last one.
    private var nextLocal: UInt64
    /// The highest id that the peer has opened, 0 before the first.
    private(set) var highestPeer = StreamID.connection

    /// Streams that count against the limits, by the side that opened them.
    private(set) var openLocal = 0
    private(set) var openPeer = 0
    private(set) var unansweredLocal = 0
    private(set) var unansweredPeer = 0

    init(role: Role) {
        self.role = role
        nextLocal = UInt64(role.firstStream)
    }

    /// Whether there is no stream that is not aborted.
    var isEmpty: Bool { streams.isEmpty }
    /// Streams closed on the wire whose last bytes the application has not consumed.
    var unread: Int { streams.count + aborted.count - openLocal - openPeer }
    var all: some Collection<SessionStream> { streams.values }
    var allAborted: some Collection<SessionStream> { aborted.values }

    /// The stream, unless it was aborted.
    subscript(id: StreamID) -> SessionStream? { streams[id] }

    /// The stream of a frame from the peer, aborted or not.
    func known(_ id: StreamID) -> SessionStream? { streams[id] ?? aborted[id] }

    /// Whether an id was opened, or skipped. Frames for it may be on their way after it is forgotten.
    func wasUsed(_ id: StreamID) -> Bool { role.opens(id) ? UInt64(id.rawValue) < nextLocal : id <= highestPeer }

    /// Uses the next id of this side, nil if all are used.
    mutating func useLocal() -> StreamID? {
        guard let id = UInt32(exactly: nextLocal) else { return nil }
        nextLocal += 2
        return StreamID(rawValue: id)
    }

    /// Adds a stream that this side opens.
    mutating func addLocal(_ stream: SessionStream) {
        streams[stream.id] = stream
        openLocal += 1
        unansweredLocal += 1
    }

    /// Marks an id of the peer as used. Returns false if the peer may not use it: wrong parity, or not higher than the
    /// last.
    mutating func usePeer(_ id: StreamID) -> Bool {
        guard id.rawValue != 0, !role.opens(id), id > highestPeer else { return false }
        highestPeer = id
        return true
    }

    /// Adds a stream that the peer opened.
    mutating func addPeer(_ stream: SessionStream) {
        streams[stream.id] = stream
        openPeer += 1
        unansweredPeer += 1
    }

    /// Stops counting the request of a stream as unanswered.
    mutating func answered(_ stream: SessionStream) {
        guard stream.countsAsUnanswered else { return }
        stream.countsAsUnanswered = false
        if stream.isLocal { unansweredLocal -= 1 } else { unansweredPeer -= 1 }
    }

    /// Stops counting a stream as open.
    mutating func closed(_ stream: SessionStream) {
        answered(stream)
        guard stream.countsAsOpen else { return }
        stream.countsAsOpen = false
        if stream.isLocal { openLocal -= 1 } else { openPeer -= 1 }
    }

    /// Marks a stream as aborted. It counts as open until its RESET has been sent.
    mutating func abort(_ stream: SessionStream) {
        stream.isAborted = true
        streams[stream.id] = nil
        aborted[stream.id] = stream
    }

    /// Forgets the stream.
    mutating func remove(_ stream: SessionStream) {
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
