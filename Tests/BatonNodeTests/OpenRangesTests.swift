// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonNode
@testable import BatonTransport

/// The part of a document on its way that the receiver does not yet have for good, and that would be sent again.
@Suite("Open ranges of a document", .timeLimit(.minutes(1)))
struct OpenRangesTests {
    /// The receiver's side of a transfer takes a record, and the next one when that is verified, written and noted.
    @Test(
        "One chunk of each open range is on its way, and another range opens when a chunk is there",
        arguments: [NodeLimits.openRanges, 6])
    func credit(_ open: Int) async throws {
        // The second end's limits are the receiver's.
        let limits = NodeLimits().session
        let (origin, receiver) = try await connectedPair(on: EventLoop(name: "origin"), limits: limits)
        let asked = try await receiver.open([1], window: open * ChunkRecord.plainSize)
        let arrivals = origin.incoming.makeAsyncIterator()
        let answered = try #require(await arrivals.next()).stream
        try await answered.respond([2])
        _ = try await asked.response()

        let (record, count) = (ChunkRecord.plainSize, open + 10)
        let document = Buffer(capacity: count * record)
        document.count = count * record
        // A record each, as a receiver reads them, which is there before the first comes.
        let framing = Framing(recordSize: record, alignedByte: ChunkRecord.headerSize, distance: 0)
        let first = Task { try await asked.read(atLeast: record, framing: framing) }
        try await eventually("the receiver waits") { await receiver.waitsForRecord(of: asked.id) }
        _ = try await answered.write(document, queueBound: document.count)
        var read: Buffer?
        for noted in 0..<(count - open) {
            read = if let read { try await asked.read(atLeast: record, reusing: read) } else { try await first.value }
            #expect(read?.count == record)
            // Credit is told of a quarter of a window at once.
            guard noted.isMultiple(of: (open + 3) / 4) else { continue }
            // The origin sends all that credit allows, and no byte more.
            let left = document.count - (noted + open) * record
            #expect(try await answered.drained(to: left) == left, "\(noted) chunks are noted")
        }
        await answered.reset(.cancelled)
        await origin.close()
        await receiver.close()
    }

    /// Other connections leave all, the share of a second device, or the floor of each.
    @Test(
        "Documents whose chunks are not written hold up nothing that an application looks at meanwhile",
        arguments: [0, 1, 40])
    func stuckDocuments(others: Int) async throws {
        let limits = NodeLimits()
        let budget = NodeBudget(limits).devices
        let taken = (0..<others).map { _ in budget.share() }
        let (origin, receiver) = try await connectedPair(
            on: EventLoop(name: "origin"), limits: limits.session, budget: budget)
        let arrivals = origin.incoming.makeAsyncIterator()
        func ask(open: Int) async throws -> (asked: BatonTransport.Stream, answered: BatonTransport.Stream) {
            let asked = try await receiver.open([1], window: open * ChunkRecord.plainSize)
            let answered = try #require(await arrivals.next()).stream
            try await answered.respond([2])
            return (asked, answered)
        }
        let bulk = Buffer(copying: [UInt8](repeating: 1, count: 16 << 20))
        var documents: [(asked: BatonTransport.Stream, answered: BatonTransport.Stream)] = []
        for _ in 0..<limits.transfersPerDevice {
            documents.append(try await ask(open: NodeLimits.openRanges))
            // Some was read, as of every document.
            let stream = try #require(documents.last)
            _ = try await stream.answered.write(bulk, queueBound: bulk.count)
            let first = try #require(try await stream.asked.read(atLeast: 16 << 10))
            _ = try await stream.asked.read(reusing: first)
        }
        let look = try await ask(open: 1)
        let writing = Task {
            _ = try await look.answered.write(Buffer(copying: [UInt8](repeating: 2, count: 4 << 20)))
            await look.answered.finish()
        }
        var (count, spent): (Int, Buffer?) = (0, nil)
        while let buffer = try await look.asked.read(atLeast: ChunkRecord.plainSize, reusing: spent) {
            count += buffer.count
            spent = buffer
        }
        #expect(count == 4 << 20)
        try await writing.value
        for stream in documents { await stream.answered.reset(.cancelled) }
        await origin.close()
        await receiver.close()
        withExtendedLifetime(taken) {}
    }

    /// In simulated time: 30 MB would be on their way if the link alone had a say.
    @Test("However long and fast the link is, no more of a document is on the way than its open ranges")
    func growth() throws {
        let link = EndpointPair.Link(latency: .milliseconds(150), bandwidth: 100_000_000, fragments: false)
        let pair = EndpointPair(link: link, dialerLimits: NodeLimits().session)
        pair.run { pair.dialer.session.peer != nil && pair.acceptor.session.peer != nil }
        pair.dialer.keepsReceived = false
        pair.dialer.consumesAtOnce = false
        let (record, count) = (ChunkRecord.plainSize, 150)
        let chunk = Buffer(copying: [UInt8](repeating: 1, count: record))
        pair.acceptor.onEvent = { end, event, _ in
            guard case .opened(let id, _) = event else { return }
            try? end.session.respond(id, Buffer(capacity: 0))
            for _ in 0..<count { end.session.send(id, chunk) }
        }
        let id = try pair.dialer.session.open(Buffer(copying: [1]), now: pair.now)
        pair.dialer.session.widenWindow(of: id, to: NodeLimits.openRanges * record)
        pair.run { pair.acceptor.session.queuedBytes(of: id) > 0 }
        var (noted, most) = (0, 0)
        while noted < count {
            // Verified, written and noted are whole chunks.
            pair.run { pair.dialer.unconsumed[id] ?? 0 >= record }
            let sent = count * record - pair.acceptor.session.queuedBytes(of: id)
            most = max(most, sent - noted * record)
            try #require(pair.dialer.consume(id, record, now: pair.now) == record, "\(noted) chunks are noted")
            noted += 1
        }
        #expect(pair.dialer.session.window(of: id) == NodeLimits.openRanges * record)
        #expect(most == NodeLimits.openRanges * record)
    }
}

extension Connection {
    /// Whether somebody waits for a whole record.
    fileprivate func waitsForRecord(of stream: StreamID) -> Bool {
        streams[stream]?.readerBound == ChunkRecord.plainSize
    }
}
