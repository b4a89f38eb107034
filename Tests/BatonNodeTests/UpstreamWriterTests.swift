// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import Foundation
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonDocuments
@testable import BatonNode

/// An origin receives reports while it sends a document.
@Suite("The reports to an origin about its document", .timeLimit(.minutes(5)))
struct UpstreamWriterTests {
    /// The one who asks, as the origin knows it.
    private static let phone = PeerName(id: "phone", name: "phone")

    private let parts: NodeParts
    private let inbox: FilePath

    init() throws {
        parts = try NodeParts(TestAccount(devices: 1))
        inbox = parts.account.root.appending("inbox")
        try FileManager.default.createDirectory(atPath: inbox.string, withIntermediateDirectories: true)
    }

    /// A folder with small files in it.
    private func folder(_ name: String, files: Int) throws -> FilePath {
        let folder = parts.account.root.appending(name)
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        for number in 0..<files {
            try Data("\(number)".utf8).write(to: URL(fileURLWithPath: "\(folder)/\(number)"))
        }
        return folder
    }

    @Test("An origin that takes no reports while the document is put in place does not keep it from being there")
    func unreadAtCommit() async throws {
        // Each of these files has some bytes of each copy: they are what fills what may wait to be sent.
        let copy = try folder("copy", files: 200)
        let copies = Array(repeating: copy, count: OlderCopy.limit)
        // The folders make putting it in place last for a while.
        let tree = try Self.tree(files: 200, folders: 5_000)
        let told = Lock(0)
        try await fetch(tree, against: copies, window: 1 << 20, to: "first") { stream in
            // The reports that came until all of it was there.
            for try await record in stream.records(of: WireDocumentUpstream.self) {
                told.withLock { $0 += (try? record.serializedData().count + 1) ?? 0 }
                if record.report.verifiedBytes == tree.size { break }
            }
            while try await stream.read() != nil {}
        }
        // That just fits, and not a byte more.
        let window = told.withLock { $0 } - BatonTransport.Stream.recordQueueBound
        try #require(window > 0)
        try await fetch(tree, against: copies, window: window, to: "second") { stream in
            await stream.untilClosedOrCancelled()
        }
    }

    /// Fetches a document, which has to arrive.
    ///
    /// - Parameters:
    ///   - window: how many bytes its origin takes of a stream before it reads any.
    ///   - hear: what that one does when it has sent all.
    private func fetch(
        _ tree: DocumentTree, against copies: [FilePath], window: Int, to name: String,
        hear: @escaping @Sendable (BatonTransport.Stream) async throws -> Void
    ) async throws {
        var service = parts.documents
        service.stallDeadline = .seconds(2)
        service.repeatInterval = .milliseconds(50)
        var limits = Limits()
        limits.initialStreamWindow = window
        let (near, far) = try await connectedPair(on: parts.loop, limits: limits)
        let serving = Task {
            for await incoming in far.incoming {
                let stream = incoming.stream
                try? await stream.respond(.documentRanges(.with { $0.chunkSize = UInt32(ChunkLayout.chunkSize) }))
                _ = try? await stream.write(Buffer(copying: Self.records(of: tree)))
                await stream.finish()
                try? await hear(stream)
            }
        }
        let place = inbox.appending(name)
        try FileManager.default.createDirectory(atPath: place.string, withIntermediateDirectories: true)
        let path = try await service.fetch(
            DocumentDescription(tree: tree), for: .fetching("folder", from: "desktop", against: copies),
            into: DestinationFolder(place), from: near, claim: ClaimID(), noting: TransferReport(),
            progress: { _ in })
        #expect(path == Array("\(place)/folder".utf8))
        await near.close()
        await far.close()
        await serving.value
    }

    /// A folder with files of a byte and empty folders in it.
    private static func tree(files: Int, folders: Int) throws -> DocumentTree {
        var builder = DocumentTree.Builder(try DocumentLabel(Data("folder".utf8)))
        try builder.append(DocumentEntry(path: .root, kind: .folder, modified: nil))
        let entries =
            (0..<files).map { ("\($0)", DocumentEntry.Kind.file(.init(size: 1))) }
            + (0..<folders).map { ("folder \($0)", .folder) }
        for (name, kind) in entries.sorted(by: { $0.0.utf8.lexicographicallyPrecedes($1.0.utf8) }) {
            try builder.append(DocumentEntry(path: EntryPath(Data(name.utf8)), kind: kind, modified: nil))
        }
        return try builder.finish()
    }

    /// Each file has a byte that is 0x2A.
    private static func records(of tree: DocumentTree) -> [UInt8] {
        let checksum = [UInt8(0x2A)].withUnsafeBytes { ChunkChecksum(of: $0) }
        var record: [UInt8] = [0, 0, 0x2A]
        withUnsafeBytes(of: checksum.high.bigEndian) { record += $0 }
        withUnsafeBytes(of: checksum.low.bigEndian) { record += $0 }
        return (0..<tree.layout.fileCount).flatMap { _ in record }
    }

    @Test("A document whose piece takes the disk longer than its origin waits for a word arrives, and has not failed")
    func slowDisk() async throws {
        var (files, deadline) = (4000, Duration.milliseconds(300))
        var outcome = try await fetchSlowly(files: files, deadline: deadline)
        for _ in 0..<2 where outcome.isLate || outcome.longestPause <= deadline {
            // A machine that was too busy to say anything in time has more of it; a disk that was too fast gets more to
            // do.
            if outcome.isLate { deadline *= 4 }
            files *= 4
            outcome = try await fetchSlowly(files: files, deadline: deadline)
        }
        #expect(outcome.longestPause > deadline, "the disk was fast")
        #expect(!outcome.isLate)
        #expect(
            outcome.told.contains { if case .progress(let report) = $0 { report.bytes == report.total } else { false } }
        )
    }

    /// How a document was fetched.
    private struct Outcome {
        var isFetched = false
        /// The messages to the offering application.
        var told: [WireOfferEvent.OneOf_Kind] = []
        /// The longest time in which nothing was new.
        var longestPause = Duration.zero

        /// Its origin, or who fetched it, waited in vain.
        var isLate: Bool { !isFetched || hasFailed }

        var hasFailed: Bool { told.contains { if case .failed = $0 { true } else { false } } }
    }

    /// Fetches so many small files, which are one piece for the writer.
    ///
    /// - Parameter deadline: how long the origin waits for a word.
    private func fetchSlowly(files: Int, deadline: Duration) async throws -> Outcome {
        let document = try folder("\(files)", files: files)
        var (origin, receiver) = (parts.documents, parts.documents)
        origin.commitDeadline = deadline
        receiver.repeatInterval = deadline / 10
        let (node, application) = try await connectedPair(on: parts.loop)
        let source = try await DocumentService.inspect(document, countedIn: nil)
        let activity = try OfferedActivity(.with { $0.type = "org.example.album" }, document: source)
        let events = try await parts.offers.offer(activity, from: node)
        let (claim, _) = try await parts.offers.claim(activity.id, by: Self.phone)
        let (near, far) = try await connectedPair(on: parts.loop)
        let serving = Task { [origin] in
            for await incoming in far.incoming {
                switch try WireRequest.decode(incoming.request) {
                case .documentManifest:
                    try await origin.manifest(of: claim, for: Self.phone, on: incoming.stream)
                case .documentRanges(let request):
                    try await origin.send(request, of: claim, to: Self.phone, on: incoming.stream)
                case _: await incoming.stream.reset(.refused)
                }
            }
        }
        let folder = try DestinationFolder(inbox)
        let description = try await receiver.describe(from: near, claim: claim)
        var outcome = Outcome()
        let times = Lock([Instant.now])
        let path = try? await receiver.fetch(
            description, for: .fetching("\(files)", from: "desktop"), into: folder, from: near, claim: claim,
            noting: TransferReport()
        ) { _ in
            times.withLock { $0.append(.now) }
        }
        outcome.isFetched = path == Array("\(inbox)/\(files)".utf8)
        outcome.longestPause = times.withLock { times in zip(times, times.dropFirst()).map { $1 - $0 }.max() } ?? .zero
        await near.close()
        await far.close()
        _ = await serving.result
        try await parts.offers.decide { $0.setContinued(claim, by: Self.phone) }.get()
        for await event in events {
            guard let kind = event.kind else { continue }
            outcome.told.append(kind)
            if case .continued = kind { break }
            if outcome.hasFailed { break }
        }
        await parts.offers.withdraw(activity.id)
        await node.close()
        await application.close()
        return outcome
    }

    @Test("A disk that does not go on at all is spoken for so long")
    func standstill() async throws {
        #expect(UpstreamWriter.longestStandstill == .seconds(3600))
        let (near, far) = try await connectedPair(on: parts.loop)
        let asked = try await near.open([1])
        let iterator = far.incoming.makeAsyncIterator()
        let incoming = try #require(await iterator.next())
        let report = TransferReport()
        report.begin(of: 100, resumed: 10)
        let upstream = UpstreamWriter(asked, of: report, deadline: .seconds(30))
        try await upstream.report(every: .milliseconds(10), standstill: .milliseconds(500))
        await asked.finish()
        var told: [UInt64] = []
        for try await record in incoming.stream.records(of: WireDocumentUpstream.self) {
            told.append(record.report.verifiedBytes)
        }
        #expect(Set(told) == [10])
        await near.close()
        await far.close()
    }

    @Test("An origin that takes no reports is noticed, and what was to be said at last is not waited for")
    func unread() async throws {
        var limits = Limits()
        limits.initialStreamWindow = 1 << 10
        let (near, far) = try await connectedPair(on: parts.loop, limits: limits)
        let asked = try await near.open([1])
        try await asked.write(Buffer(copying: [UInt8](repeating: 0, count: 80 << 10)), queueBound: .max)
        let upstream = UpstreamWriter(asked, of: TransferReport(of: 100), deadline: .milliseconds(300))
        try await upstream.reporting(every: .milliseconds(10)) {
            try await eventually("it is noticed") { (try? upstream.requireReports()) == nil }
        }
        let error = #expect(throws: HandoffError.self) { try upstream.requireReports() }
        #expect(error?.code == .timedOut)
        await upstream.tellCommitted()
        // Also while a report waits.
        let other = UpstreamWriter(asked, of: TransferReport(of: 100), deadline: .seconds(3600))
        let queued = try await asked.drained(to: .max)
        try await other.reporting(every: .milliseconds(10)) {
            try await eventually("it waits") { try await asked.drained(to: .max) > queued }
        }
        try other.requireReports()
        await near.close()
        await far.close()
    }
}
