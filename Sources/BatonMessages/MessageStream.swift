// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
package import BatonTransport
package import SwiftProtobuf

/// Limits of every message in both directions.
package enum MessageLimits {
    /// The most bytes of one encoded message; fits in OPEN and RESPONSE.
    package static let size = 64 << 10
    /// How deep messages may nest: deeper ones are refused before they cost stack.
    package static let depth = 32

    static var decoding: BinaryDecodingOptions {
        var options = BinaryDecodingOptions()
        options.messageDepthLimit = depth
        return options
    }
}

extension WireRequest {
    /// Decodes the request that opened a stream.
    ///
    /// - Throws: ``HandoffError`` with `invalidRequest`.
    package static func decode(_ bytes: [UInt8]) throws(HandoffError) -> WireRequest.OneOf_Kind {
        guard let request = try? WireRequest(serializedBytes: bytes, options: MessageLimits.decoding) else {
            throw HandoffError(.invalidRequest, "the request could not be read")
        }
        guard let kind = request.kind else {
            throw HandoffError(.unsupported, "this version of Baton does not know the request")
        }
        return kind
    }
}

extension Connection {
    /// Sends a request and waits for its response. The stream then goes on as the request's kind allows.
    ///
    /// - Parameters:
    ///   - window: the most bytes that the peer may send behind the response before any of them is read: see
    ///     ``BatonTransport/Connection/open(_:window:)``.
    ///   - opened: gets the stream before the response arrives, so that other code can reset it.
    /// - Throws: ``HandoffError``: the peer's ``WireFailure``, or the failure of the connection.
    package func request(
        _ kind: WireRequest.OneOf_Kind, window: Int? = nil, opened: (@Sendable (Stream) -> Void)? = nil
    ) async throws(HandoffError) -> (WireResponse.OneOf_Kind, Stream) {
        var request = WireRequest()
        request.kind = kind
        let bytes = try request.encoded()
        do {
            let stream = try await open(bytes, window: window)
            opened?(stream)
            let answer = try await stream.response()
            guard let response = try? WireResponse(serializedBytes: answer, options: MessageLimits.decoding),
                let kind = response.kind
            else {
                await stream.reset(.protocolError)
                throw HandoffError(.internal, "the answer of the other side could not be read")
            }
            if case .failure(let failure) = kind {
                // The answer is whole: letting go of the stream unfinished would abort it.
                await stream.finish()
                throw HandoffError(failure)
            }
            return (kind, stream)
        } catch {
            throw HandoffError(wrapping: error)
        }
    }

    /// Sends a request whose answer ends the stream.
    ///
    /// - Parameter opened: as for ``request(_:opened:)``.
    /// - Throws: likewise.
    package func answer(
        to kind: WireRequest.OneOf_Kind, opened: (@Sendable (Stream) -> Void)? = nil
    ) async throws(HandoffError) -> WireResponse.OneOf_Kind {
        let (response, stream) = try await request(kind, opened: opened)
        await stream.finish()
        return response
    }
}

extension Stream {
    /// Bytes of records that may wait to be sent before ``send(record:)`` waits: one record of the greatest size.
    package static let recordQueueBound = MessageLimits.size

    /// Answers the request that opened the stream.
    package func respond(_ kind: WireResponse.OneOf_Kind) async throws(HandoffError) {
        var response = WireResponse()
        response.kind = kind
        let bytes = try response.encoded()
        do {
            try await respond(bytes)
        } catch {
            throw HandoffError(error)
        }
    }

    /// Answers with a failure and ends the stream; aborts it when it was answered already, since an END there would
    /// look like all went well.
    package func fail(_ error: HandoffError) async {
        do {
            try await respond(.failure(error.failure))
            await finish()
        } catch {
            await reset(.internalError)
        }
    }

    /// Answers the request that opened the stream with some records behind the response, and ends the stream.
    ///
    /// - Throws: ``HandoffError`` with `limitExceeded` if they do not fit the buffer for a peer that does not read.
    package func answer(
        _ kind: WireResponse.OneOf_Kind, following records: [some Message]
    ) async throws(HandoffError) {
        let buffer = Buffer(copying: try records.framed())
        do {
            try await reserve(buffer.count)
            try await respond(kind)
            if buffer.count > 0 { try await write(buffer) }
        } catch {
            throw HandoffError(wrapping: error)
        }
        await finish()
    }

    /// Sends one length-delimited record (a varint and the message); waits while the peer does not read.
    package func send(record: some Message) async throws(HandoffError) {
        try await send(records: CollectionOfOne(record))
    }

    /// Sends some records at once, as ``send(record:)`` sends one. Together they are at most as large as one record may
    /// be, so that the bound on unsent bytes holds.
    package func send(records: some Collection<some Message>) async throws(HandoffError) {
        let bytes = try records.framed()
        do {
            try await write(Buffer(copying: bytes), queueBound: Self.recordQueueBound)
        } catch {
            throw HandoffError(error)
        }
    }

    /// The length-delimited records that the peer sends, until its END.
    package func records<Record: Message>(of type: Record.Type) -> RecordSequence<Record> {
        RecordSequence(stream: self)
    }
}

/// Length-delimited records of one type, read from a stream as they come.
package struct RecordSequence<Record: Message>: AsyncSequence {
    package typealias Element = Record
    package typealias Failure = HandoffError

    let stream: Stream

    package func makeAsyncIterator() -> Iterator {
        Iterator(stream: stream)
    }

    /// Keeps at most one record and one buffer.
    package struct Iterator: AsyncIteratorProtocol {
        let stream: Stream
        private var parser = RecordParser<Record>()

        init(stream: Stream) {
            self.stream = stream
        }

        package mutating func next() async throws(HandoffError) -> Record? {
            try await next(isolation: nil)
        }

        /// The next record; `nil` at the peer's END.
        ///
        /// - Throws: ``HandoffError`` for a record that is too long, cut short or of another type; `cancelled` if the
        ///   task is cancelled.
        package mutating func next(isolation actor: isolated (any Actor)?) async throws(HandoffError) -> Record? {
            while true {
                // Checked even if a record is always ready.
                guard !Task.isCancelled else { throw HandoffError(.cancelled, "it was cancelled") }
                if let record = try parser.next() { return record }
                let buffer: Buffer?
                do {
                    buffer = try await stream.read()
                } catch {
                    throw HandoffError(error)
                }
                guard let buffer else {
                    guard parser.isBetweenRecords else {
                        throw HandoffError(.internal, "the other side ended in the middle of a record")
                    }
                    return nil
                }
                buffer.withBytes { parser.append($0) }
            }
        }
    }
}

extension Collection where Element: Message {
    /// The messages, each behind a varint with its length.
    fileprivate func framed() throws(HandoffError) -> [UInt8] {
        var framed: [UInt8] = []
        for message in self {
            let bytes = try message.encoded()
            var length = bytes.count
            while length >= 0x80 {
                framed.append(UInt8(length & 0x7F) | 0x80)
                length >>= 7
            }
            framed.append(UInt8(length))
            framed += bytes
        }
        return framed
    }
}

extension Message {
    /// The encoded message.
    ///
    /// - Throws: ``HandoffError`` with `limitExceeded` when it is over ``MessageLimits/size``.
    func encoded() throws(HandoffError) -> [UInt8] {
        guard let bytes: [UInt8] = try? serializedBytes() else {
            throw HandoffError(.internal, "a message could not be encoded")
        }
        guard bytes.count <= MessageLimits.size else {
            throw HandoffError(.limitExceeded, "a message of \(bytes.count) bytes is over \(MessageLimits.size)")
        }
        return bytes
    }
}
