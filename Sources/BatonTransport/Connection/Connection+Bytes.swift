// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import DequeModule

/// The movement of bytes between wire and protocol, and the events of the protocol.
extension Connection {
    func socketIsReadable() {
        if case .ended = state {
            // The connection lingers: see ``Wire/endOutput()``.
            if !wire.discardInput() { closeSocket() }
            return
        }
        do {
            let maySend = try wire.receive(
                into: { scratch in destination(orScratch: scratch) }, { bytes throws(TransportError) in receive(bytes) }
            )
            if maySend { return flush() }
            end(.connectionEnded)
            closeSocket()
        } catch {
            endTellingPeer(error)
        }
    }

    /// The place for the next bytes of the peer: the buffer of a stream, or `scratch` for other bytes.
    private func destination(orScratch scratch: UnsafeMutableRawBufferPointer) -> UnsafeMutableRawBufferPointer {
        switch session.expected {
        case .payload(let id, let count):
            if let buffer = streams.receiveBuffer(for: id, atMost: count) { return buffer }
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
            resetStreamsWithUnwantedInput()
            streams.wakeReadersIfCrowded()
            // A session that failed has reported it as its last event, which ended this connection.
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
            claimShare()
            readyWaiters.wakeAll()
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
        case .stopped(let id, let code):
            streams[id]?.stop(.reset(code))
        case .closed(let id):
            if streams[id]?.isAbandoned == true { streams.remove(id) }
            closedWaiters.wakeAll()
        case .goAwayReceived(let code, _):
            goAwayCode = code
            if case .open = state { state = .draining }
        case .drained:
            if case .draining = state { beginClosing() }
        case .dead(let error):
            endTellingPeer(TransportError(connectionError: error))
        }
    }

    /// Accepts a stream of the peer, unless the budget has no room for its request.
    private func receive(_ request: [UInt8], opening id: StreamID) {
        var reservation: ByteReservation?
        if let requests {
            let room = ByteReservation(in: requests)
            guard room.grow(by: 2 * request.count) else { return session.reset(id, code: .limitExceeded) }
            reservation = room
        }
        streams.insert(id, StreamState(isLocal: false, reservation: reservation))
        arrivals.append((id, request))
        arrivalWaiters.wakeAll()
    }

    /// Sends until there is nothing more to send, or the socket takes no more.
    func flush() {
        var budget = Wire.turn
        do {
            while true {
                if case .ended = state { return }
                if wire.isEmpty { guard try fillWire() else { break } }
                budget -= try wire.push()
                if !wire.isEmpty || budget <= 0 { return wire.socket.wantWrite(true) }
            }
        } catch {
            return end(error)
        }
        wire.socket.wantWrite(false)
        guard case .closing(let isChannelFinished) = state else { return armTimer() }
        // A peer that has not sent anything is not waited for.
        if isChannelFinished { return end(.connectionEnded, lingering: wire.channel.peer != nil) }
        state = .closing(isChannelFinished: true)
        wire.channel.finish()
        flush()
    }

    /// Encodes the next bytes for the socket. Returns false if there are none.
    private func fillWire() throws(TransportError) -> Bool {
        let now = Instant.now
        let hasBytes = try wire.fill { space in session.nextOutput(into: space, now: now) }
        handleEvents()
        streams.wakeWriters { session.queuedBytes(of: $0) }
        return hasBytes
    }

    /// Ends the connection after one attempt to tell the peer why, by an alert of the channel or a GOAWAY that the
    /// session has queued.
    private func endTellingPeer(_ error: TransportError) {
        if case .ended = state { return }
        var hasToldPeer = false
        if wire.isEmpty, let hasWords = try? fillWire(), hasWords {
            hasToldPeer = (try? wire.push()) != nil && wire.isEmpty
        }
        end(error, lingering: hasToldPeer)
    }
}
