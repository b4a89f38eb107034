// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import Foundation
import Logging
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonAccount
@testable import BatonNode

/// Bounds of activities and documents, each reached.
@Suite("Limits of activities and documents", .timeLimit(.minutes(5)))
struct DocumentLimitsTests {
    private let desktop = PeerName(id: "desktop", name: "desktop")
    private let phone = PeerName(id: "phone", name: "phone")

    @Test("So many documents sent to one device")
    func transfers() async throws {
        let bound = NodeLimits().transfersPerDevice
        let limit = TransferLimit(perDevice: bound)
        for _ in 0..<bound { try await limit.begin(for: desktop) }
        let error = await #expect(throws: HandoffError.self) { try await limit.begin(for: desktop) }
        #expect(error?.code == .limitExceeded)
        // Another device is sent its own, and the same one again when one has ended.
        try await limit.begin(for: phone)
        await limit.end(for: desktop)
        try await limit.begin(for: desktop)
        await #expect(throws: HandoffError.self) { try await limit.begin(for: desktop) }
        // What is described has places of its own, as many.
        for _ in 0..<bound { try await limit.begin(for: desktop, .description) }
        await #expect(throws: HandoffError.self) { try await limit.begin(for: desktop, .description) }
        await limit.end(for: desktop, .description)
        try await limit.begin(for: desktop, .description)
    }

    @Test("Of what a device's applications look at two are read at once, and so many wait in line")
    func previews() async throws {
        let bound = NodeLimits().transfersPerDevice
        let limit = TransferLimit(perDevice: bound)
        for _ in 0..<2 { try await limit.begin(for: desktop, .preview) }
        let (served, serve) = AsyncStream<Int>.makeStream()
        var order = served.makeAsyncIterator()
        var waiting: [Task<Void, any Error>] = []
        for number in 0..<bound {
            waiting.append(
                Task {
                    try await limit.begin(for: desktop, .preview)
                    serve.yield(number)
                })
            try await eventually("it waits") { await limit.waiting == number + 1 }
        }
        let error = await #expect(throws: HandoffError.self) { try await limit.begin(for: desktop, .preview) }
        #expect(error?.code == .limitExceeded)
        // Another device does not wait for them.
        try await limit.begin(for: phone, .preview)
        for (number, task) in waiting.enumerated() {
            await limit.end(for: desktop, .preview)
            #expect(await order.next() == number)
            try await task.value
            #expect(await limit.waiting == bound - 1 - number)
        }
        for _ in 0..<2 { await limit.end(for: desktop, .preview) }
        try await limit.begin(for: desktop, .preview)
        #expect(await limit.waiting == 0)
    }

    @Test("A new request for a document ends the earlier sending of it, and takes that place")
    func superseded() async throws {
        let limit = TransferLimit(perDevice: 1)
        let (claim, other) = (ClaimID(), ClaimID())
        let (aborted, abort) = AsyncStream<Void>.makeStream()
        try await limit.begin(for: desktop, claim: claim) { abort.finish() }
        #expect(await !limit.isSuperseded(claim))
        let error = await #expect(throws: HandoffError.self) {
            try await limit.begin(for: desktop, claim: other) {}
        }
        #expect(error?.code == .limitExceeded)
        // The connection of the first may be dead: it ends when it is told to, and then the next has the place.
        let next = Task { try await limit.begin(for: desktop, claim: claim) {} }
        for await _ in aborted {}
        #expect(await limit.isSuperseded(claim))
        await limit.end(for: desktop, claim: claim)
        try await next.value
        #expect(await !limit.isSuperseded(claim))
        await #expect(throws: HandoffError.self) { try await limit.begin(for: desktop, claim: other) {} }
        await limit.end(for: desktop, claim: claim)
        try await limit.begin(for: desktop, claim: other) {}
    }

    @Test("A description that nobody reads ends, and gives its place back")
    func unread() async throws {
        let scratch = try ScratchFolder("unread")
        defer { scratch.remove() }
        let source = scratch.url.appendingPathComponent("source")
        try FileManager.default.createDirectory(at: source, withIntermediateDirectories: true)
        // More than the window of a stream holds.
        let name = String(repeating: "n", count: 200)
        for number in 0..<6000 {
            #expect(FileManager.default.createFile(atPath: source.path + "/\(name)\(number)", contents: nil))
        }
        let loop = ControlLoop.loop
        let files = SharedFiles(
            path: "/nonexistent/roots", on: try BlockingExecutor(name: "files"),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let offers = Offers(files: files) {}
        let limit = TransferLimit(perDevice: 1)
        let service = DocumentService(
            offers: offers, pool: BufferPool(),
            ledger: try PartFileLedger(stateFolder: scratch.filePath.appending("parts")), limit: limit,
            stallDeadline: .milliseconds(300))
        let (node, application) = try await connectedPair(on: loop)
        let document = try await DocumentService.inspect(FilePath(source.path), countedIn: nil)
        let activity = try OfferedActivity(.with { $0.type = "org.example.album" }, document: document)
        let events = try await offers.offer(activity, from: node)
        let (claim, _) = try await offers.claim(activity.id, by: desktop)
        let (near, far) = try await connectedPair(on: loop)
        let asked = try await near.open([1])
        let iterator = far.incoming.makeAsyncIterator()
        let incoming = try #require(await iterator.next())
        let error = await #expect(throws: HandoffError.self) {
            try await service.manifest(of: claim, for: desktop, on: incoming.stream)
        }
        #expect(error?.code == .timedOut)
        // No more than what is reserved for it waits here.
        let queued = try await incoming.stream.drained(to: .max)
        #expect(queued <= 2 * BatonTransport.Stream.recordQueueBound)
        try await limit.begin(for: desktop, .description)
        withExtendedLifetime((asked, events)) {}
        for connection in [near, far, node, application] { await connection.close() }
        await offers.decide { $0.stop() }
    }

    @Test("Looking at a document ends when whoever asked has gone")
    func gone() async throws {
        let scratch = try ScratchFolder("gone")
        defer { scratch.remove() }
        let source = scratch.url.appendingPathComponent("source")
        try FileManager.default.createDirectory(at: source, withIntermediateDirectories: true)
        let loop = ControlLoop.loop
        let files = SharedFiles(
            path: "/nonexistent/roots", on: try BlockingExecutor(name: "files"),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let offers = Offers(files: files) {}
        let part = ByteBudget(bytes: 64 << 20).part(reserved: 0, ceiling: 64 << 20)
        let service = DocumentService(
            offers: offers, pool: BufferPool(),
            ledger: try PartFileLedger(stateFolder: scratch.filePath.appending("parts")), limit: TransferLimit(),
            descriptions: SharedPart(part), absence: .seconds(600))
        let (node, application) = try await connectedPair(on: loop)
        let document = try await DocumentService.inspect(FilePath(source.path), countedIn: service.descriptions)
        // The node waits for it to come back, and so looks until nobody asks any more.
        try FileManager.default.removeItem(at: source)
        let activity = try OfferedActivity(.with { $0.type = "org.example.album" }, document: document)
        let events = try await offers.offer(activity, from: node)
        let (near, far) = try await connectedPair(on: loop)
        let iterator = far.incoming.makeAsyncIterator()
        let (claim, _) = try await offers.claim(activity.id, by: desktop)
        let asked = try await near.open([1])
        let incoming = try #require(await iterator.next())
        let looking = Task { try await service.manifest(of: claim, for: desktop, on: incoming.stream) }
        await asked.reset(.cancelled)
        let error = await #expect(throws: HandoffError.self) { try await looking.value }
        #expect(error?.code == .cancelled)
        try await eventually("nothing of it is kept") { part.held == 0 }
        withExtendedLifetime(events) {}
        for connection in [near, far, node, application] { await connection.close() }
        await offers.decide { $0.stop() }
    }

    @Test("What an application looks at comes at once, though documents that stand still hold all of their buffers")
    func previewBesideDocuments() async throws {
        let account = try TestAccount(devices: 1)
        let parts = try NodeParts(account)
        let (service, size) = (parts.documents, 3 << 20)
        let source = account.root.appending("film")
        #expect(FileManager.default.createFile(atPath: source.string, contents: Data(repeating: 1, count: size)))
        let (node, application) = try await connectedPair(on: parts.loop)
        let activity = try OfferedActivity(
            .with { $0.type = "org.example.film" }, document: try DocumentSource(DocumentScan.scan(source)))
        let events = try await parts.offers.offer(activity, from: node)
        let (claim, _) = try await parts.offers.claim(activity.id, by: desktop)
        let scanned = try await service.scan(source)
        await parts.offers.decide { $0.update(claim) { $0.document = scanned } }
        var held: [Buffer] = []
        while let buffer = service.pool.acquireIfAvailable() { held.append(buffer) }

        let (near, far) = try await connectedPair(on: parts.loop)
        let asked = try await near.open([1])
        let incoming = try #require(await far.incoming.makeAsyncIterator().next())
        await asked.finish()
        let sending = Task { [desktop] in
            let request = WireDocumentRangesRequest.with {
                $0.ranges = [WireChunkRange(0..<3)]
                $0.preview = true
            }
            try await service.send(request, of: claim, to: desktop, on: incoming.stream)
        }
        let received = Lock(0)
        let reading = Task {
            while let buffer = try await asked.read() { received.withLock { $0 += buffer.count } }
        }
        await #expect(throws: Never.self) {
            try await eventually("all of it came") { received.withLock { $0 } > size }
        }
        for buffer in held { service.pool.release(buffer) }
        try await sending.value
        try await reading.value
        withExtendedLifetime(events) {}
        for connection in [near, far, node, application] { await connection.close() }
        await parts.offers.decide { $0.stop() }
    }

    @Test("So many activities offered")
    func offers() async throws {
        let loop = ControlLoop.loop
        let files = SharedFiles(
            path: "/nonexistent/roots", on: try BlockingExecutor(name: "files"),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let bound = NodeLimits().offers
        let offers = Offers(files: files, bound: bound) {}
        let (node, application) = try await connectedPair(on: loop)
        @discardableResult
        func offer() async throws -> ActivityID {
            let activity = try OfferedActivity(.with { $0.type = "org.example.note" }, document: nil)
            _ = try await offers.offer(activity, from: node)
            return activity.id
        }
        let first = try await offer()
        for _ in 1..<bound { try await offer() }
        let error = await #expect(throws: HandoffError.self) { try await offer() }
        #expect(error?.code == .limitExceeded)
        #expect(await offers.visible.count == bound)
        await offers.withdraw(first)
        try await offer()
        await offers.decide { $0.stop() }
        await application.close()
        await node.close()
    }

    /// How far an origin goes before it says no more.
    enum Silence: CaseIterable { case insteadOfDescription, inDescription, insteadOfRanges }

    @Test(
        "An origin that says nothing of its document, or stops to, is waited for so long", arguments: Silence.allCases)
    func silence(_ silence: Silence) async throws {
        let parts = try NodeParts(TestAccount(devices: 1))
        var service = parts.documents
        if silence == .insteadOfRanges {
            service.answerDeadline = .milliseconds(200)
        } else {
            service.descriptionDeadline = .milliseconds(200)
        }
        let (near, far) = try await connectedPair(on: parts.loop)
        let serving = Task {
            for await incoming in far.incoming {
                if silence == .inDescription {
                    try? await incoming.stream.respond(.documentManifest(.with { $0.entries = 2 }))
                }
                await incoming.stream.untilClosedOrCancelled()
            }
        }
        let asking = Task { [service] in
            if silence == .insteadOfRanges {
                _ = try await service.requestRanges(WireDocumentRangesRequest(), open: 1, from: near)
            } else {
                _ = try await service.describe(from: near, claim: ClaimID())
            }
        }
        let error = await #expect(throws: HandoffError.self) { try await asking.value }
        #expect(error?.code == .timedOut)
        await near.close()
        await far.close()
        await serving.value
    }

    @Test(
        "Who sends a document waits so long to hear which bytes are there, and how far it is", arguments: [true, false])
    func silentReceiver(hasSignatures: Bool) async throws {
        #expect(try NodeParts(TestAccount(devices: 1)).documents.commitDeadline == .seconds(60))
        let (near, far) = try await connectedPair(on: EventLoop(name: "receiver"))
        let asking = Task { try? await near.request(.documentRanges(.with { $0.pieceSize = 16_384 })) }
        let incoming = far.incoming.makeAsyncIterator()
        let stream = try #require(await incoming.next()).stream
        let error = await #expect(throws: HandoffError.self) {
            let short = Duration.milliseconds(200)
            try await withStallWatch(short) { watch in
                var upstream = UpstreamRecords(stream, within: watch)
                if hasSignatures {
                    _ = try await upstream.signatures(pieceSize: 16_384)
                } else {
                    _ = try await upstream.report()
                }
            }
        }
        #expect(error?.code == .timedOut)
        await near.close()
        await far.close()
        _ = await asking.value
    }

    @Test("So many older copies of a document can be named")
    func olderCopies() throws {
        func request(_ copies: Int) -> WireAcceptRequest {
            .with { $0.against = Array(repeating: Data("/copy".utf8), count: copies) }
        }
        #expect(try ControlService.copies(in: request(OlderCopy.limit)).count == OlderCopy.limit)
        let error = #expect(throws: HandoffError.self) {
            try ControlService.copies(in: request(OlderCopy.limit + 1))
        }
        #expect(error?.code == .invalidRequest)
    }

    @Test("So many events of an activity wait for an application that does not read, and the oldest go first")
    func events() async throws {
        let loop = ControlLoop.loop
        let files = SharedFiles(
            path: "/nonexistent/roots", on: try BlockingExecutor(name: "files"),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let offers = Offers(files: files) {}
        let (node, application) = try await connectedPair(on: loop)
        // The last one is that it was withdrawn.
        for (reported, first) in [(Offers.eventBound - 1, 0), (Offers.eventBound, 1)] {
            let activity = try OfferedActivity(.with { $0.type = "org.example.note" }, document: nil)
            let id = OfferID()
            let events = try await offers.offer(activity, from: node, as: id)
            for number in 0..<reported {
                await offers.decide { $0.fail(id, because: HandoffError(.internal, "\(number)")) }
            }
            await offers.withdraw(activity.id)
            let told = await events.reduce(into: []) { $0.append($1) }
            #expect(told.dropLast().map(\.failed.message) == (first..<reported).map { "\($0)" })
            #expect(told.count == Offers.eventBound && told.last?.withdrawn == .init())
        }
        await application.close()
        await node.close()
    }

    @Test("So many batches of signatures in a row may be empty", arguments: [true, false])
    func emptyBatches(areKept: Bool) throws {
        var order = try #require(
            try UpstreamSignatures(pieceSize: UInt64(PieceSize.smallest.average), areKept: areKept))
        var signature: [UInt8] = []
        PieceSignature(length: UInt32(PieceSize.smallest.maximum), digest: PieceDigest(high: 1, low: 2))
            .append(to: &signature)
        for _ in 0..<2 {
            for _ in 0..<UpstreamSignatures.silenceBound {
                let isEnd = try order.take(.signatures(.init()))
                #expect(!isEnd)
            }
            _ = try order.take(.signatures(.with { $0.pieces = Data(signature) }))
        }
        for _ in 0..<UpstreamSignatures.silenceBound { _ = try order.take(.signatures(.init())) }
        let error = #expect(throws: HandoffError.self) { _ = try order.take(.signatures(.init())) }
        #expect(error?.code == .invalidRequest)
        // Nor is less than one something.
        var cut = try #require(try UpstreamSignatures(pieceSize: UInt64(PieceSize.smallest.average), areKept: areKept))
        #expect(throws: HandoffError.self) { _ = try cut.take(.signatures(.with { $0.pieces = Data([1]) })) }
    }
}

extension TransferLimit {
    /// How many wait for a place.
    fileprivate var waiting: Int { lines.values.reduce(0) { $0 + $1.waiting.count } }
}
