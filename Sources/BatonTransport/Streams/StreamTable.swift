// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// The streams of a connection that applications hold, and what lies unread in all of them together.
///
/// Confined to its connection's actor. The protocol bounds how many there are, and its credit how much they hold.
struct StreamTable {
    private var states: [StreamID: StreamState] = [:]
    /// Bytes that arrived and that the peer has not been given credit for again: unread, or in an application's hands.
    private var held = 0
    /// Half of what the peer may send on the connection.
    private var crowdedAt: Int
    /// Streams that sent something that nobody will read.
    private var talkative: Set<StreamID> = []

    /// - Parameter window: how much the peer may send on the connection before it is given more credit.
    init(window: Int) {
        crowdedAt = window / 2
    }

    /// The peer may send more from now on before it is given more credit.
    mutating func widen(window: Int) {
        crowdedAt = max(crowdedAt, window / 2)
    }

    subscript(id: StreamID) -> StreamState? { states[id] }

    mutating func insert(_ id: StreamID, _ state: StreamState) {
        states[id] = state
    }

    mutating func remove(_ id: StreamID) {
        states[id] = nil
    }

    /// Whether no application holds a stream.
    var isIdle: Bool { states.values.allSatisfy(\.isAbandoned) }

    /// Where the next bytes of a stream can be put before they are received; nil where nobody holds it.
    func room(for id: StreamID, atMost count: Int) -> UnsafeMutableRawBufferPointer? {
        states[id]?.room(atMost: count)
    }

    /// Takes bytes of a stream, and wakes who waits for them.
    mutating func receive(_ bytes: UnsafeRawBufferPointer, for id: StreamID) {
        guard let state = states[id] else { return }
        state.append(bytes)
        held += bytes.count
        if isWorthReading(state) { state.reader.wake() }
        if state.isAbandoned || state.ignoresInput { talkative.insert(id) }
    }

    /// Says that the peer was given credit for bytes again, or that they need none any more.
    mutating func release(_ count: Int) {
        held -= count
    }

    /// Drops what a stream holds.
    ///
    /// - Returns: how many bytes its application has not done with.
    mutating func discard(_ state: StreamState) -> Int {
        let count = state.discard()
        held -= count
        return count
    }

    /// Half of what the peer may send on the connection lies here. If everybody went on waiting for more of one stream,
    /// the peer could not send it.
    private var isCrowded: Bool { held >= crowdedAt }

    /// Whether a reader that waits for more is better served with what is there.
    func isWorthReading(_ state: StreamState) -> Bool {
        state.unread >= state.readerBound || (state.unread > 0 && isCrowded)
    }

    /// Wakes those who wait for more than can come.
    func wakeReadersIfCrowded() {
        guard isCrowded else { return }
        for state in states.values where state.unread > 0 { state.reader.wake() }
    }

    /// Wakes those whose queue has become short enough.
    ///
    /// - Parameter queued: how many bytes of a stream wait to be sent.
    func wakeWriters(queued: (StreamID) -> Int) {
        for (id, state) in states where state.writer.isTaken && queued(id) <= state.writerBound {
            state.writer.wake()
        }
    }

    /// Notes that what comes on a stream will not be read; what has come already counts too.
    mutating func ignoreInput(of id: StreamID) {
        guard let state = states[id] else { return }
        state.ignoresInput = true
        if state.unread > 0 { talkative.insert(id) }
    }

    /// The streams on which the peer sent what nobody reads, each once.
    mutating func takeTalkative() -> Set<StreamID> {
        defer { talkative = [] }
        return talkative
    }

    /// The connection has ended: nothing waits any longer, and what was complete can still be read.
    func fail(with error: TransportError) {
        for state in states.values {
            if state.failure == nil {
                state.failure = error
                state.isWhole = state.hasEnded
            }
            state.wakeAll()
        }
    }
}
