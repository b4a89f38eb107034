// SPDX-License-Identifier: Apache-2.0

// Output: frames become bytes for the peer.
extension Session {
    /// Whether `nextOutput` has something to write. It may still write nothing if a waiting frame has lost its stream
    /// meanwhile.
    package var hasOutput: Bool {
        unfinished != nil || !control.isEmpty || (!ring.isEmpty && sendWindow.available > 0)
    }

    /// Writes the next bytes for the peer: control frames first, then DATA of the streams in turn, slice by slice.
    ///
    /// A frame that does not fit is not begun, except an OPEN or RESPONSE, whose rest comes first in the next call. The
    /// bytes must reach the peer in order and without a gap.
    ///
    /// - Parameter output: at least `minimumOutput` bytes; 64 to 256 KiB is good for throughput.
    /// - Returns: the number of bytes written, 0 if there is nothing to send now.
    package mutating func nextOutput(into output: UnsafeMutableRawBufferPointer, now: Instant) -> Int {
        precondition(output.count >= Self.minimumOutput, "output has room for minimumOutput bytes")
        guard let base = output.baseAddress else { return 0 }
        advance(to: now)
        sendDueResets()
        var position = 0
        repeat {
            guard writeControl(to: base, capacity: output.count, at: &position) else { break }
        } while writeData(to: base, capacity: output.count, at: &position)
        return position
    }

    /// Writes waiting control frames. Returns false if they did not all fit.
    private mutating func writeControl(
        to base: UnsafeMutableRawPointer, capacity: Int, at position: inout Int
    ) -> Bool {
        while true {
            if var rest = unfinished {
                writeMessage(&rest, to: base, capacity: capacity, at: &position)
                guard unfinished == nil else { return false }
            }
            guard let frame = control.first else { return true }
            guard capacity - position >= Self.minimumOutput || position == 0 else { return false }
            control.popFirst()
            write(frame, to: base, capacity: capacity, at: &position)
        }
    }

    private mutating func write(
        _ frame: ControlFrame, to base: UnsafeMutableRawPointer, capacity: Int, at position: inout Int
    ) {
        switch frame {
        case .hello:
            isHelloWritten = true
            hello.write(to: begin(.hello, .connection, PeerHello.size, base, &position))
        case .open(let id):
            beginMessage(.open, id, to: base, capacity: capacity, at: &position)
        case .response(let id):
            beginMessage(.response, id, to: base, capacity: capacity, at: &position)
        case .end(let id):
            guard let stream = streams[id], stream.isEndDue else { return }
            _ = begin(.end, id, 0, base, &position)
            stream.endWritten()
            closeIfDone(stream)
        case .reset(let id, let code):
            begin(.reset, id, 4, base, &position).storeBigEndian(code.rawValue, at: 0)
        case .credit(let id):
            guard let stream = streams[id] else { return }
            stream.isCreditQueued = false
            guard stream.canReceive, let offset = stream.receiveWindow.grant() else { return }
            begin(.credit, id, 8, base, &position).storeBigEndian(offset, at: 0)
        case .connectionCredit:
            isCreditQueued = false
            guard let offset = receiveWindow.grant() else { return }
            begin(.credit, .connection, 8, base, &position).storeBigEndian(offset, at: 0)
        case .ping(let token):
            begin(.ping, .connection, 8, base, &position).storeBigEndian(token, at: 0)
        case .pong(let token):
            isPongQueued = false
            begin(.pong, .connection, 8, base, &position).storeBigEndian(token, at: 0)
        case .goAway(let lastStream, let code):
            let payload = begin(.goAway, .connection, 8, base, &position)
            payload.storeBigEndian(lastStream.rawValue, at: 0)
            payload.storeBigEndian(code.rawValue, at: 4)
        }
    }

    /// Writes a header, moves the position past the payload, and returns the place of the payload.
    private func begin(
        _ type: FrameType, _ stream: StreamID, _ length: Int, _ base: UnsafeMutableRawPointer, _ position: inout Int
    ) -> UnsafeMutableRawPointer {
        FrameHeader(type: type, stream: stream, length: length).write(to: base + position)
        defer { position += FrameHeader.size + length }
        return base + position + FrameHeader.size
    }

    private mutating func beginMessage(
        _ type: FrameType, _ id: StreamID, to base: UnsafeMutableRawPointer, capacity: Int, at position: inout Int
    ) {
        guard let message = streams[id]?.message.take() else { return }
        FrameHeader(type: type, stream: id, length: message.count).write(to: base + position)
        position += FrameHeader.size
        var whole = UnfinishedMessage(message: message, offset: 0)
        writeMessage(&whole, to: base, capacity: capacity, at: &position)
    }

    /// Writes the part of a message that fits, and keeps the rest in `unfinished`.
    private mutating func writeMessage(
        _ rest: inout UnfinishedMessage, to base: UnsafeMutableRawPointer, capacity: Int, at position: inout Int
    ) {
        let part = min(rest.message.count - rest.offset, capacity - position)
        withExtendedLifetime(rest.message) {
            if part > 0, let source = rest.message.bytes.baseAddress {
                (base + position).copyMemory(from: source + rest.offset, byteCount: part)
            }
        }
        position += part
        rest.offset += part
        unfinished = rest.offset < rest.message.count ? rest : nil
    }

    /// Refunds the peer's budget for CREDIT frames, which answer DATA.
    private mutating func refundCredits(for bytes: Int) {
        unrefundedData += bytes
        buckets.credits.refund(unrefundedData / Limits.dataPerCredit)
        unrefundedData %= Limits.dataPerCredit
    }

    /// Writes one DATA frame of the stream whose turn it is. Returns false if there is none, or not enough space.
    private mutating func writeData(
        to base: UnsafeMutableRawPointer, capacity: Int, at position: inout Int
    ) -> Bool {
        guard let peer, sendWindow.available > 0, let stream = ring.first else { return false }
        let turn = stream.turnLeft ?? limits.sliceBytes * stream.weight
        let wanted = min(
            stream.sendable, sendWindow.available, turn, limits.sliceBytes, Int(clamping: peer.dataFrameBytes))
        let room = capacity - position - FrameHeader.size
        // A short frame at the end of a nearly full output costs more than the next output's first frame.
        guard room >= min(wanted, 4096) || (position == 0 && room > 0) else { return false }
        let length = min(wanted, room)
        // A turn is not cut for a small rest. The rest would become a frame of its own, and shift the next turn so that
        // this one is cut as well, and so on for every output.
        guard length == wanted || wanted - length >= 4096 || position == 0 else { return false }
        stream.copyQueued(length, to: begin(.data, stream.id, length, base, &position))
        sendWindow.send(length)
        refundCredits(for: length)

        if length < turn, stream.sendable > 0 {
            // This also applies if the output is full: the next one begins with the rest of the turn, or some streams
            // would always get less.
            stream.turnLeft = turn - length
        } else {
            stream.turnLeft = nil
            ring.popFirst()
            if stream.sendable > 0 { ring.append(stream) } else { stream.isInRing = false }
        }
        if stream.isEndDue { enqueue(.end(stream.id)) }
        return true
    }
}
