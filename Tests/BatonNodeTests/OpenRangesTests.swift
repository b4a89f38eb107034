import BatonDocuments
import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonNode
@testable import BatonTransport

/// What of a document is on its way before the receiver has it for good, and would be sent again.
@Suite("Open ranges of a document", .timeLimit(.minutes(1)))
struct OpenRangesTests {
    /// The receiver's side of a transfer takes a record, and the next one when that is verified, written and noted.
    @Test("One chunk of each open range is on its way, and another range opens when a chunk is there")
    func credit() async throws {
        // The second end's limits are the receiver's.
        var limits = NodeLimits().session
        // What the bandwidth-delay product is on a busy machine is anybody's guess.
        limits.maximumStreamWindow = limits.initialStreamWindow
        let (origin, receiver) = try await connectedPair(on: EventLoop(name: "origin"), limits: limits)
        let asked = try await receiver.open([1])
        let arrivals = origin.incoming.makeAsyncIterator()
        let answered = try #require(await arrivals.next()).stream
        try await answered.respond([2])
        _ = try await asked.response()

        let (record, count) = (ChunkRecord.plainSize, 12)
        let document = Buffer(capacity: count * record)
        document.count = count * record
        let open = NodeLimits.openRanges.lowerBound
        // A record each, as a receiver reads them, which is there before the first comes.
        let framing = Framing(recordSize: record, alignedByte: ChunkRecord.headerSize, distance: 0)
        let first = Task { try await asked.read(atLeast: record, framing: framing) }
        try await eventually("the receiver waits") { await receiver.waitsForRecord(of: asked.id) }
        _ = try await answered.write(document, queueBound: document.count)
        var read: Buffer?
        for noted in 0..<(count - open) {
            read = if let read { try await asked.read(atLeast: record, reusing: read) } else { try await first.value }
            #expect(read?.count == record)
            // What credit allows leaves, and no byte more.
            let left = document.count - (noted + open) * record
            #expect(try await answered.drained(to: left) == left, "\(noted) chunks are noted")
        }
        await answered.reset(.cancelled)
        await origin.close()
        await receiver.close()
    }
}

extension Connection {
    /// Whether somebody waits for a whole record.
    fileprivate func waitsForRecord(of stream: StreamID) -> Bool {
        streams[stream]?.readerBound == ChunkRecord.plainSize
    }
}
