// SPDX-License-Identifier: Apache-2.0

/// The kind of bytes that come next from a peer.
package enum ExpectedBytes: Hashable, Sendable {
    /// This many bytes of a stream's payload.
    case payload(StreamID, Int)
    /// This many bytes of anything else.
    case frame(Int)
}

// Parsing: bytes from the peer become frames.
extension Session {
    /// The bytes that come next, so that a driver can decode payload into its final place before it calls `receive`.
    package var expected: ExpectedBytes {
        switch input {
        case .header: .frame(FrameHeader.size - partial.count)
        case .control(_, let header): .frame(header.length - partial.count)
        case .data(let id, let remaining): streams[id] == nil ? .frame(remaining) : .payload(id, remaining)
        case .skipped(let remaining): .frame(remaining)
        }
    }

    /// Takes bytes from the peer, in any pieces.
    ///
    /// `deliver` gets DATA payload as it arrives, borrowed from `bytes` for the duration of the call. Everything else
    /// becomes an `Event`. An application must see both in their order on the wire. So the session stops before payload
    /// while an event waits: if it returns less than all, drain `nextEvent` and call again with the rest.
    ///
    ///     var rest = bytes
    ///     while !rest.isEmpty {
    ///         let taken = try session.receive(rest, now: now) { id, payload in … }
    ///         rest = .init(rebasing: rest[taken...])
    ///         while let event = session.nextEvent() { … }
    ///     }
    ///
    /// Delivered bytes are charged to the windows until `consumed` is called for them or the stream is reset. `deliver`
    /// must not call the session.
    ///
    /// - Returns: the number of bytes taken; all of them unless an event waits.
    /// - Throws: the error that ended the connection, now or before; `Event.dead` reports it as well.
    package mutating func receive(
        _ bytes: UnsafeRawBufferPointer, now: Instant, deliver: (StreamID, UnsafeRawBufferPointer) -> Void
    ) throws(ConnectionError) -> Int {
        advance(to: now)
        if let failure { throw failure }
        if bytes.count > 0 { liveness.received(now: present) }
        do throws(ConnectionError) {
            let taken = try parse(bytes, deliver: deliver)
            if let failure { throw failure }
            return taken
        } catch {
            fail(error)
            throw error
        }
    }

    private mutating func parse(
        _ bytes: UnsafeRawBufferPointer, deliver: (StreamID, UnsafeRawBufferPointer) -> Void
    ) throws(ConnectionError) -> Int {
        var offset = 0
        while offset < bytes.count {
            switch input {
            case .header:
                guard let header = gatherHeader(from: bytes, at: &offset) else { return offset }
                try begin(header)

            case .control(let type, let header):
                if partial.isEmpty, bytes.count - offset >= header.length {
                    let payload = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + header.length])
                    offset += header.length
                    input = .header
                    try handle(type, header, payload)
                } else {
                    let part = min(header.length - partial.count, bytes.count - offset)
                    partial.append(contentsOf: bytes[offset..<offset + part])
                    offset += part
                    guard partial.count == header.length else { return offset }
                    let whole = partial
                    partial.removeAll(keepingCapacity: header.length <= PeerHello.maximumSize)
                    input = .header
                    try handle(type, header, whole)
                }

            case .data(let id, let remaining):
                guard events.isEmpty else { return offset }
                let part = min(remaining, bytes.count - offset)
                // The stream may have been reset since its header came; its credit was returned then.
                if streams[id] != nil { deliver(id, UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + part])) }
                offset += part
                input = part == remaining ? .header : .data(id, remaining: remaining - part)

            case .skipped(let remaining):
                let part = min(remaining, bytes.count - offset)
                offset += part
                input = part == remaining ? .header : .skipped(remaining: remaining - part)
            }
            if failure != nil { return offset }
        }
        return offset
    }

    /// Reads a header in place, or from parts that came in several calls. Returns nil while it is incomplete.
    private mutating func gatherHeader(from bytes: UnsafeRawBufferPointer, at offset: inout Int) -> FrameHeader? {
        if partial.isEmpty, bytes.count - offset >= FrameHeader.size, let base = bytes.baseAddress {
            defer { offset += FrameHeader.size }
            return FrameHeader(at: base + offset)
        }
        let part = min(FrameHeader.size - partial.count, bytes.count - offset)
        partial.append(contentsOf: bytes[offset..<offset + part])
        offset += part
        guard partial.count == FrameHeader.size else { return nil }
        defer { partial.removeAll(keepingCapacity: true) }
        return partial.withUnsafeBytes { $0.baseAddress.map(FrameHeader.init(at:)) }
    }

    /// Handles a payload that came in several calls.
    private mutating func handle(_ type: FrameType, _ header: FrameHeader, _ payload: [UInt8]) throws(ConnectionError) {
        // Not `withUnsafeBytes`, which loses the type of the error.
        try payload.withUnsafeBufferPointer { (bytes) throws(ConnectionError) in
            try handle(type, header, UnsafeRawBufferPointer(bytes))
        }
    }

    /// Checks a header before any of its payload is looked at or kept.
    private mutating func begin(_ header: FrameHeader) throws(ConnectionError) {
        guard let type = FrameType(rawValue: header.type) else {
            guard peer != nil else { throw .notBaton }
            guard header.flags & FrameHeader.ignorable != 0 else { throw .unknownFrame(type: header.type) }
            guard header.length <= Limits.messageBytes else { throw tooLarge(header) }
            guard buckets.unknownFrames.spend(now: present) else { throw .tooManyUnknownFrames }
            if header.length > 0 { input = .skipped(remaining: header.length) }
            return
        }
        guard (type == .hello) == (peer == nil) else { throw type == .hello ? .helloRepeated : .notBaton }
        try checkPlace(type, header)
        try checkLength(type, header)
        if type == .data {
            try beginData(header)
        } else if header.length > 0 {
            input = .control(type, header)
        } else {
            try handle(type, header, UnsafeRawBufferPointer(start: nil, count: 0))
        }
    }

    private func checkPlace(_ type: FrameType, _ header: FrameHeader) throws(ConnectionError) {
        let isOfConnection = header.stream == .connection
        switch type {
        case .hello, .ping, .pong, .goAway:
            guard isOfConnection else { throw .frameMisplaced(type: header.type, stream: header.stream) }
        case .open, .response, .data, .end, .reset:
            guard !isOfConnection else { throw .frameMisplaced(type: header.type, stream: header.stream) }
        case .credit:
            break
        }
    }

    private func checkLength(_ type: FrameType, _ header: FrameHeader) throws(ConnectionError) {
        switch type {
        case .hello:
            guard header.length <= PeerHello.maximumSize else { throw tooLarge(header) }
        case .open, .response:
            guard header.length <= Limits.messageBytes else { throw tooLarge(header) }
        case .data:
            guard header.length <= limits.dataFrameBytes else { throw tooLarge(header) }
        case .credit, .ping, .pong, .goAway:
            guard header.length == 8 else { throw .frameMalformed(type: header.type) }
        case .reset:
            guard header.length == 4 else { throw .frameMalformed(type: header.type) }
        case .end:
            guard header.length == 0 else { throw .frameMalformed(type: header.type) }
        }
    }

    private func tooLarge(_ header: FrameHeader) -> ConnectionError {
        .frameTooLarge(type: header.type, length: header.length)
    }
}
