// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// The streams of a connection that applications hold, and their unread bytes together.
///
/// Confined to its connection's actor. The protocol bounds the number of streams, and its credit bounds their bytes.
struct StreamTable {
    private var states: [StreamID: StreamState] = [:]
    /// Bytes that arrived and whose credit was not given again: unread, or held by an application.
    private var held = 0
    /// Half of what the peer may send on the connection.
    private var crowdedAt: Int
    /// Streams on which bytes came that nobody will read.
    private var unwantedInput: Set<StreamID> = []

    /// Makes an empty table.
    ///
    /// - Parameter window: the connection's window, in bytes.
    init(window: Int) {
        crowdedAt = window / 2
    }

    /// Sets a larger window of the connection.
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

    /// The place for the next bytes of a stream; nil if no application holds it.
    func receiveBuffer(for id: StreamID, atMost count: Int) -> UnsafeMutableRawBufferPointer? {
        states[id]?.receiveBuffer(atMost: count)
    }

    /// Stores bytes of a stream, and wakes its reader.
    mutating func receive(_ bytes: UnsafeRawBufferPointer, for id: StreamID) {
        guard let state = states[id] else { return }
        state.append(bytes)
        held += bytes.count
        if isWorthReading(state) { state.reader.wake() }
        if state.isAbandoned || state.ignoresInput { unwantedInput.insert(id) }
    }

    /// Stops counting bytes whose credit was given, or that need none any more.
    mutating func release(_ count: Int) {
        held -= count
    }

    /// Drops the bytes of a stream.
    ///
    /// - Returns: the number of bytes whose credit was not given yet.
    mutating func discard(_ state: StreamState) -> Int {
        let count = state.discard()
        held -= count
        return count
    }

    /// Whether half of the connection's window is unread. If every reader then waited for more of one stream, the peer
    /// might not be allowed to send it.
    private var isCrowded: Bool { held >= crowdedAt }

    /// Whether a reader should take the bytes that are there instead of waiting for more.
    func isWorthReading(_ state: StreamState) -> Bool {
        state.unread >= state.readerBound || (state.unread > 0 && isCrowded)
    }

    /// Wakes readers that wait for more bytes than can come.
    func wakeReadersIfCrowded() {
        guard isCrowded else { return }
        for state in states.values where state.unread > 0 { state.reader.wake() }
    }

    /// Wakes writers whose queue has become short enough.
    ///
    /// - Parameter queued: the number of queued bytes of a stream.
    func wakeWriters(queued: (StreamID) -> Int) {
        for (id, state) in states where state.writer.hasWaiter && queued(id) <= state.writerBound {
            state.writer.wake()
        }
    }

    /// Marks a stream as one that nobody will read. Bytes that have come already count too.
    mutating func ignoreInput(of id: StreamID) {
        guard let state = states[id] else { return }
        state.ignoresInput = true
        if state.unread > 0 { unwantedInput.insert(id) }
    }

    /// The streams on which unwanted bytes came, each once.
    mutating func takeUnwantedInput() -> Set<StreamID> {
        defer { unwantedInput = [] }
        return unwantedInput
    }

    /// Fails all streams, because the connection has ended. Complete ones can still be read.
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
