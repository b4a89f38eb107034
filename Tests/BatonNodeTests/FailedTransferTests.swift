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

@testable import BatonNode

/// The origin's application hears of a document whose transfer was cut and goes on with the same claim.
@Suite("Transfers that failed and go on", .timeLimit(.minutes(1)))
struct FailedTransferTests {
    enum End: CaseIterable { case release, lapse, arrival }

    private static let device = PeerName(id: "desktop", name: "desktop")

    @Test("A transfer that was cut is told as interrupted, and then how it ends", arguments: End.allCases)
    func goesOn(_ end: End) async throws {
        let origin = try await Origin()
        let (first, firstSending) = try await origin.ask()
        await first.connection.close()
        await firstSending.value
        try await eventually("it is interrupted") { origin.told == [.interrupted] }
        let (second, secondSending) = try await origin.ask()
        switch end {
        case .release: await origin.offers.decide { $0.release(origin.claim, by: Self.device) }
        case .lapse: await origin.offers.decide { $0.connectionEnded(of: Self.device) }
        case .arrival: try await origin.offers.decide { $0.setContinued(origin.claim, by: Self.device) }.get()
        }
        let last: Origin.Told = end == .arrival ? .continued : .failed
        try await eventually("its end is told") { origin.told == [.interrupted, last] }
        await second.reset(.cancelled)
        await secondSending.value
        await origin.end()
        #expect(origin.told == [.interrupted, last])
    }

    @Test("A device that ends a transfer itself says what becomes of it, and nothing is told before")
    func cancelled() async throws {
        let origin = try await Origin()
        let (stream, sending) = try await origin.ask()
        await stream.reset(.cancelled)
        await sending.value
        await origin.offers.decide { $0.release(origin.claim, by: Self.device) }
        try await eventually("its end is told") { origin.told == [.failed] }
        await origin.end()
        #expect(origin.told == [.failed])
    }

    @Test("A device that reports without end how far it is is cut off")
    func tooManyReports() async throws {
        let origin = try await Origin()
        let (stream, sending) = try await origin.ask()
        let report = WireDocumentUpstream.with { $0.report = .with { $0.verifiedBytes = 1 } }
        let limit = 100_000
        var count = 0
        while count < limit, (try? await stream.send(records: Array(repeating: report, count: 100))) != nil {
            count += 100
        }
        #expect(count >= ReportBudget.burst / 100 * 100 && count < limit)
        await stream.reset(.cancelled)
        await sending.value
        #expect(origin.told == [.progress, .failed])
        await origin.end()
    }

    @Test("Reports count against the time that they had, however late they come")
    func budget() throws {
        let start = Instant.now
        var budget = ReportBudget(now: start)
        for _ in 0..<ReportBudget.burst { try budget.spend(now: start) }
        let error = #expect(throws: HandoffError.self) { try budget.spend(now: start + .milliseconds(900)) }
        #expect(error?.code == .invalidRequest)
        budget = ReportBudget(now: start)
        for _ in 0..<ReportBudget.burst + 600 * ReportBudget.rate { try budget.spend(now: start + .seconds(600)) }
        #expect(throws: HandoffError.self) { try budget.spend(now: start + .seconds(600)) }
    }

    @Test("No progress is told once the device has the document, although its last report comes later")
    func nothingAfterTheEnd() async throws {
        let origin = try await Origin()
        let (stream, sending) = try await origin.ask()
        try await stream.send(record: WireDocumentUpstream.with { $0.report = .with { $0.verifiedBytes = 1 } })
        try await eventually("progress is told") { origin.told == [.progress] }
        try await origin.offers.decide { $0.setContinued(origin.claim, by: Self.device) }.get()
        let last = WireDocumentUpstream.Report.with { ($0.verifiedBytes, $0.committed) = (16 << 20, true) }
        try await stream.send(record: WireDocumentUpstream.with { $0.report = last })
        while try await stream.read() != nil {}
        await sending.value
        await origin.end()
        #expect(origin.told == [.progress, .continued])
    }

    /// A device that offers a document of 16 MiB, which another one has claimed.
    private final class Origin: Sendable {
        /// The messages to the offering application.
        enum Told: Equatable { case progress, interrupted, failed, continued }

        private final class Events: Sendable {
            let all = Lock<[WireOfferEvent]>([])
        }

        let offers: Offers
        let claim: ClaimID

        private let scratch: ScratchFolder
        private let loop = ControlLoop.loop
        private let service: DocumentService
        private let events = Events()
        private let hearing: Task<Void, Never>
        private let connections: Lock<[Connection]>

        init() async throws {
            scratch = try ScratchFolder("failed")
            let source = try scratch.write([UInt8](repeating: 1, count: 16 << 20), to: "film")
            let files = SharedFiles(
                path: "/nonexistent/roots", on: try BlockingExecutor(name: "files"),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            offers = Offers(files: files, lease: .milliseconds(100)) {}
            service = DocumentService(
                offers: offers, pool: BufferPool(),
                ledger: try PartFileLedger(stateFolder: scratch.filePath.appending("parts")), limit: TransferLimit())
            let (node, application) = try await connectedPair(on: loop)
            connections = Lock([node, application])
            let document = try await DocumentService.inspect(source, countedIn: nil)
            let activity = try OfferedActivity(.with { $0.type = "org.example.film" }, document: document)
            let told = try await offers.offer(activity, from: node)
            hearing = Task { [events] in
                for await event in told { events.all.withLock { $0.append(event) } }
            }
            (claim, _) = try await offers.claim(activity.id, by: FailedTransferTests.device)
            let scanned = try DocumentScan.scan(document.path)
            await offers.decide { [claim] in $0.update(claim) { $0.document = scanned } }
        }

        /// The messages about the claim since it was made. Consecutive progress reports count as one.
        var told: [Told] {
            events.all.withLock { events in
                events.reduce(into: []) { told, event in
                    guard event.claim > 0 else { return }
                    switch event.kind {
                    case .progress: if told.last != .progress { told.append(.progress) }
                    case .interrupted: told.append(.interrupted)
                    case .failed: told.append(.failed)
                    case .continued: told.append(.continued)
                    case .taken, .withdrawn, nil: break
                    }
                }
            }
        }

        /// Asks for all of the document on a connection of its own, and reads nothing.
        func ask() async throws -> (BatonTransport.Stream, sending: Task<Void, Never>) {
            let (near, far) = try await connectedPair(on: loop)
            connections.withLock { $0 += [near, far] }
            let asked = try await near.open([1])
            let arrivals = far.incoming.makeAsyncIterator()
            let incoming = try #require(await arrivals.next()).stream
            let sending = Task { [service, claim] in
                let request = WireDocumentRangesRequest.with { $0.ranges = [WireChunkRange(0..<16)] }
                try? await service.send(request, of: claim, to: FailedTransferTests.device, on: incoming)
            }
            _ = try await asked.response()
            return (asked, sending)
        }

        /// Ends the offer, after which nothing more is told.
        func end() async {
            await offers.decide { $0.stop() }
            await hearing.value
            for connection in connections.withLock(\.self) { await connection.close() }
        }
    }
}
