// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import BatonTransport
import SwiftProtobuf
import Testing

@testable import BatonMessages

/// Two connections over a real socket pair.
struct ConnectedPair {
    let dialer: Connection
    let acceptor: Connection

    init() async throws {
        (acceptor, dialer) = try await connectedPair(on: EventLoop(name: "acceptor"))
    }

    /// The next stream that the dialer opened.
    func incoming() async throws -> IncomingStream {
        let iterator = acceptor.incoming.makeAsyncIterator()
        return try #require(await iterator.next())
    }

    /// Both ends of a stream whose request was answered.
    func stream() async throws -> (asker: BatonTransport.Stream, answerer: BatonTransport.Stream) {
        let asker = try await dialer.open([])
        let answerer = try await incoming().stream
        try await answerer.respond([])
        return (asker, answerer)
    }

    func close() async {
        await dialer.close()
        await acceptor.close()
    }
}

@Suite("RecordSequence", .timeLimit(.minutes(1)))
struct RecordSequenceTests {
    private func record(_ generator: inout SeededGenerator) -> WireFailure {
        var record = WireFailure()
        // Lengths of one, two and three bytes, and sometimes an empty message, whose length is 0.
        let lengths = [0, 1, 100, 121, 122, 127, 128, 129, 5_000, 16_383, 16_384, 16_385, 60_000]
        if let length = lengths.randomElement(using: &generator), length > 0 {
            record.message = String(repeating: "x", count: length)
        }
        return record
    }

    private func framed(_ record: WireFailure) throws -> [UInt8] {
        let bytes: [UInt8] = try record.serializedBytes()
        var framed: [UInt8] = []
        var length = bytes.count
        while length >= 0x80 {
            framed.append(UInt8(length & 0x7F) | 0x80)
            length >>= 7
        }
        return framed + [UInt8(length)] + bytes
    }

    /// The number of records that were read, and the error that ended reading.
    private func outcome(of bytes: [UInt8], isEnded: Bool = true) async throws -> (count: Int, error: HandoffError?) {
        let pair = try await ConnectedPair()
        let (asker, answerer) = try await pair.stream()
        try await asker.write(Buffer(copying: bytes))
        if isEnded { await asker.finish() }
        var count = 0
        var failure: HandoffError?
        do throws(HandoffError) {
            for try await _ in answerer.records(of: WireFailure.self) { count += 1 }
        } catch {
            failure = error
        }
        await pair.close()
        return (count, failure)
    }

    @Test("Arrive the same however they are cut", arguments: [1, 2, 3, 4, 5] as [UInt64])
    func anyFragmentation(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        print("RecordSequence: \(generator)")
        let records = (0..<60).map { _ in record(&generator) }
        let bytes = try records.flatMap { try framed($0) }
        let pair = try await ConnectedPair()
        let (asker, answerer) = try await pair.stream()
        let reading = Task {
            var all: [WireFailure] = []
            for try await record in answerer.records(of: WireFailure.self) { all.append(record) }
            return all
        }
        var rest = bytes[...]
        while !rest.isEmpty {
            let size = [1, 2, 3, 700, 20_000, 100_000].randomElement(using: &generator) ?? 1
            try await asker.write(Buffer(copying: rest.prefix(size)))
            if Bool.random(using: &generator) { try await asker.drained() }
            rest = rest.dropFirst(size)
        }
        await asker.finish()
        #expect(try await reading.value == records, "\(generator)")
        await pair.close()
    }

    @Test("What send(record:) sends is what arrives, up to the limit itself")
    func sendsWhatArrives() async throws {
        var generator = SeededGenerator(seed: 6)
        var records = (0..<20).map { _ in record(&generator) }
        // The text follows a tag and a length of three bytes.
        var largest = WireFailure()
        largest.message = String(repeating: "x", count: MessageLimits.size - 4)
        records.append(largest)
        let pair = try await ConnectedPair()
        let (asker, answerer) = try await pair.stream()
        let reading = Task {
            var all: [WireFailure] = []
            for try await record in answerer.records(of: WireFailure.self) { all.append(record) }
            return all
        }
        for record in records { try await asker.send(record: record) }
        await asker.finish()
        #expect(try await reading.value == records)
        await pair.close()
    }

    @Test("So many bytes of records wait for a peer that does not read, and the next record waits for them")
    func waitsForItsReader() async throws {
        let pair = try await ConnectedPair()
        let (asker, answerer) = try await pair.stream()
        // With its length a KiB.
        let record = WireFailure.with { $0.message = String(repeating: "x", count: 1019) }
        let bound = BatonTransport.Stream.recordQueueBound
        let window = Limits().initialStreamWindow
        for _ in 0..<(window + bound) >> 10 { try await asker.send(record: record) }
        try await eventually("the window is full") { try await asker.drained(to: .max) == bound }
        let next = Task { try await asker.send(record: record) }
        try await eventually("it is queued") { try await asker.drained(to: .max) == bound + 1024 }
        // A cancelled wait is no error, because its record is queued. A cancelled task queues nothing more.
        next.cancel()
        try await next.value
        let refused = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await asker.send(record: record)
        }
        await #expect { try await refused.value } throws: { ($0 as? HandoffError)?.code == .cancelled }
        #expect(try await asker.drained(to: .max) == bound + 1024)
        withExtendedLifetime(answerer) {}
        await pair.close()
    }

    @Test("A record over the limit is not sent")
    func tooLargeToSend() async throws {
        let pair = try await ConnectedPair()
        let (asker, _) = try await pair.stream()
        var large = WireFailure()
        large.message = String(repeating: "x", count: MessageLimits.size - 3)
        await #expect { try await asker.send(record: large) } throws: { ($0 as? HandoffError)?.code == .limitExceeded }
        await pair.close()
    }

    @Test(
        "A length over the limit is refused before its bytes come",
        arguments: [
            [0x81, 0x80, 0x04], [0xFF, 0xFF, 0x7F], [0xFF, 0xFF, 0xFF, 0xFF, 0x0F], [0x80, 0x80, 0x80, 0x00],
            [UInt8](repeating: 0xFF, count: 10),
        ] as [[UInt8]])
    func tooLarge(length: [UInt8]) async throws {
        let good = try framed(WireFailure())
        let outcome = try await outcome(of: good + good + length, isEnded: false)
        #expect(outcome.count == 2)
        #expect(outcome.error?.code == .internal)
    }

    @Test("END in the middle of a record is an error, END between records is the end")
    func cut() async throws {
        var record = WireFailure()
        record.message = String(repeating: "x", count: 200)
        let bytes = try framed(record)
        for count in [1, 2, 3, 100, bytes.count - 1] {
            let outcome = try await outcome(of: bytes + bytes.prefix(count))
            #expect(outcome.count == 1)
            #expect(outcome.error?.code == .internal, "cut after \(count)")
        }
        let whole = try await outcome(of: bytes + bytes)
        #expect(whole.count == 2 && whole.error == nil)
        let empty = try await outcome(of: [])
        #expect(empty.count == 0 && empty.error == nil)
    }

    @Test("Bytes that are no message of the type")
    func unreadable() async throws {
        let outcome = try await outcome(of: [3, 0x0A, 0x7F, 0x00])
        #expect(outcome.count == 0)
        #expect(outcome.error?.code == .internal)
    }

    @Test("A reset says why by its code")
    func reset() async throws {
        let pair = try await ConnectedPair()
        let (asker, answerer) = try await pair.stream()
        let reading = Task { () -> HandoffError? in
            do throws(HandoffError) {
                for try await _ in answerer.records(of: WireFailure.self) {}
                return nil
            } catch {
                return error
            }
        }
        await asker.reset(.sourceChanged)
        #expect(await reading.value?.code == .documentChanged)
        await pair.close()
    }
}
