import BatonDocuments
import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import BatonTransport
import Testing

@testable import BatonNode

/// What of a document is on its way before the receiver has it for good, and would be sent again.
@Suite("Open ranges of a document", .timeLimit(.minutes(1)))
struct OpenRangesTests {
    /// The receiver's side of a transfer takes a record, and the next one when that is verified, written and noted.
    @Test("One chunk of each open range is on its way, and another range opens when a chunk is there")
    func credit() async throws {
        // The second end's limits are the receiver's.
        let (origin, receiver) = try await connectedPair(
            on: EventLoop(name: "origin"), limits: NodeLimits().session)
        let asked = try await receiver.open([1])
        let arrivals = origin.incoming.makeAsyncIterator()
        let answered = try #require(await arrivals.next()).stream
        try await answered.respond([2])
        _ = try await asked.response()

        let (record, count) = (ChunkRecord.plainSize, 12)
        let document = Buffer(capacity: count * record)
        document.count = count * record
        _ = try await answered.write(document, queueBound: document.count)
        let open = NodeLimits.openRanges.lowerBound
        var read: Buffer?
        for noted in 0..<(count - open) {
            read = try await asked.read(atLeast: record, reusing: read)
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
