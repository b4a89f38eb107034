// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol

/// The movement of bytes between the wire and the protocol, and what the protocol says of it.
extension Connection {
    func socketIsReadable() {
        if case .ended = state {
            // It lingers: see ``Wire/endOutput()``.
            if !wire.discardInput() { closeSocket() }
            return
        }
        do {
            switch try wire.receive(
                into: { scratch in room(scratch) }, { bytes throws(TransportError) in receive(bytes) })
            {
            case .paused:
                flush()
            case .ended:
                end(.connectionEnded)
                closeSocket()
            }
        } catch {
            endTellingPeer(error)
        }
    }

    /// Where the next bytes of the peer belong: in the buffer of a stream, or, for a short time, in `scratch`.
    private func room(_ scratch: UnsafeMutableRawBufferPointer) -> UnsafeMutableRawBufferPointer {
        switch session.expected {
        case .payload(let id, let count):
            if let room = streams.room(for: id, atMost: count) { return room }
            return UnsafeMutableRawBufferPointer(rebasing: scratch.prefix(count))
        case .frame(let count):
            return UnsafeMutableRawBufferPointer(rebasing: scratch.prefix(count))
        }
    }

    private func receive(_ plain: UnsafeRawBufferPointer) {
        let now = Instant.now
        var rest = plain
        while !rest.isEmpty {
            let taken = try? session.receive(rest, now: now) { id, bytes in streams.receive(bytes, for: id) }
            handleEvents()
            hushTalkative()
            streams.wakeReadersIfCrowded()
            // A session that failed has said so by its last event, which ended this connection.
            guard let taken else { return }
            rest = UnsafeRawBufferPointer(rebasing: rest[taken...])
        }
    }

    func handleEvents() {
        while let event = session.nextEvent() { handle(event) }
    }

    private func handle(_ event: Event) {
        switch event {
        case .helloReceived:
            if case .handshaking = state { state = .open }
            takeShare()
            wakeReadyWaiters()
        case .opened(let id, let request):
            receive(request, opening: id)
        case .responded(let id, let message):
            streams[id]?.response = message
            streams[id]?.responseWaiter.wake()
        case .finished(let id):
            streams[id]?.hasEnded = true
            streams[id]?.reader.wake()
            streams[id]?.responseWaiter.wake()
        case .reset(let id, let code):
            guard let state = streams[id], state.failure == nil else { return }
            fail(state, with: .reset(code))
        case .writable:
            break
        case .closed(let id):
            if streams[id]?.isAbandoned == true { streams.remove(id) }
            placeWaiters.wakeAll()
        case .goAwayReceived(let code, _):
            goAwayCode = code
            if case .open = state { state = .draining }
        case .drained:
            if case .draining = state { beginClosing() }
        case .dead(let error):
            endTellingPeer(TransportError(connectionError: error))
        }
    }

    /// Takes a stream of the peer's, unless there is no room for what it asks.
    private func receive(_ request: [UInt8], opening id: StreamID) {
        var room: GrowingRoom?
        if let requests {
            room = requests.room(of: 2 * request.count)
            guard room != nil else { return session.reset(id, code: .limitExceeded) }
        }
        streams.insert(id, StreamState(isLocal: false, room: room))
        arrivals.append(id, request)
    }

    /// Sends what there is to send, until the socket takes no more.
    func flush() {
        var budget = Wire.turn
        do {
            while true {
                if case .ended = state { return }
                if wire.isEmpty { guard try fillWire() else { break } }
                budget -= try wire.push()
                if !wire.isEmpty || budget <= 0 { return wire.wantWrite(true) }
            }
        } catch {
            return end(error)
        }
        wire.wantWrite(false)
        guard case .closing(let hasSaidFarewell) = state else { return armTimer() }
        // A peer that has not said a word is not waited for.
        if hasSaidFarewell { return end(.connectionEnded, lingering: wire.peer != nil) }
        state = .closing(hasSaidFarewell: true)
        wire.sayFarewell()
        flush()
    }

    /// Encodes the next bytes for the socket; `false` when there are none.
    private func fillWire() throws(TransportError) -> Bool {
        let now = Instant.now
        let hasBytes = try wire.fill { space in session.nextOutput(into: space, now: now) }
        handleEvents()
        streams.wakeWriters { session.queuedBytes(of: $0) }
        return hasBytes
    }

    /// Ends the connection after one attempt to tell the peer why: an alert of the channel or a GOAWAY that the session
    /// has queued.
    private func endTellingPeer(_ error: TransportError) {
        if case .ended = state { return }
        var hasToldPeer = false
        if wire.isEmpty, let hasWords = try? fillWire(), hasWords {
            hasToldPeer = (try? wire.push()) != nil && wire.isEmpty
        }
        end(error, lingering: hasToldPeer)
    }
}
