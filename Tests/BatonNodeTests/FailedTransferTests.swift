// SPDX-License-Identifier: Apache-2.0

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

@testable import BatonNode

/// What the origin's application hears of a document whose transfer was cut, and goes on with the same claim.
@Suite("Transfers that failed and go on", .timeLimit(.minutes(1)))
struct FailedTransferTests {
    enum End: CaseIterable { case failure, release, lapse }

    private static let device = PeerName(id: "desktop", name: "desktop")

    @Test("What failed and went on is told of once more where it comes to nothing after all", arguments: End.allCases)
    func goesOn(_ end: End) async throws {
        let scratch = FileManager.default.temporaryDirectory.appendingPathComponent("baton-failed-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: scratch) }
        try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: false)
        let source = scratch.appendingPathComponent("film")
        try Data(repeating: 1, count: 16 << 20).write(to: source)
        let loop = EventLoop(name: "node")
        let files = SharedFiles(
            path: "/nonexistent/roots", userHome: nil, on: try BlockingExecutor(name: "files"),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let offers = Offers(on: loop, files: files, lapse: .milliseconds(100)) { _ in }
        let service = DocumentService(
            offers: offers, pool: BufferPool(),
            ledger: try PartFileLedger(stateFolder: FilePath(scratch.path + "/parts")), limit: TransferLimit())
        let (node, application) = try await connectedPair(on: loop)
        let document = try await DocumentService.inspect(FilePath(source.path), countedIn: nil)
        let activity = try OfferedActivity(.with { $0.type = "org.example.film" }, document: document)
        let events = try await offers.offer(activity, from: node)
        let failed = Lock<[UInt64]>([])
        let hearing = Task {
            for await event in events {
                // One of no claim says that the node stops.
                if case .failed? = event.kind, event.claim > 0 { failed.withLock { $0.append(event.claim) } }
            }
        }
        let (claim, _) = try await offers.claim(activity.id, by: Self.device)
        let number = try await offers.claim(claim, of: Self.device).number
        await offers.setDocument(try ScannedDocument(document), of: claim)

        let (near, far) = try await connectedPair(on: loop)
        let arrivals = far.incoming.makeAsyncIterator()
        /// Asks for all of it, and reads nothing.
        func ask() async throws -> (BatonTransport.Stream, Task<Void, Never>) {
            let asked = try await near.open([1])
            let incoming = try #require(await arrivals.next()).stream
            let sending = Task {
                let request = WireDocumentRangesRequest.with { $0.ranges = [WireChunkRange(0..<16)] }
                try? await service.send(request, of: claim, to: Self.device, on: incoming)
            }
            _ = try await asked.response()
            return (asked, sending)
        }
        let (first, sendingFirst) = try await ask()
        await first.reset(.cancelled)
        await sendingFirst.value
        try await eventually("it has failed") { failed.withLock(\.self) == [number] }
        let (second, sendingSecond) = try await ask()
        switch end {
        case .failure: break
        case .release: await offers.release(claim, by: Self.device)
        case .lapse: await offers.connectionsEnded(of: Self.device.id)
        }
        if end != .failure {
            try await eventually("it has failed again") { failed.withLock(\.self) == [number, number] }
        }
        await second.reset(.cancelled)
        await sendingSecond.value
        await offers.withdrawAll()
        await hearing.value
        #expect(failed.withLock(\.self) == [number, number])
        for connection in [near, far, node, application] { await connection.close() }
    }
}
