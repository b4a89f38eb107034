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

@testable import BatonDocuments
@testable import BatonNode

/// How often an origin is asked for a document, whose round trips are what many small files would cost.
@Suite("Requests of a document", .timeLimit(.minutes(3)))
struct DocumentRequestTests {
    @Test("Ten thousand files are one request for what they are, and one for all that is in them")
    func manyFiles() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("baton-many-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let source = folder.appendingPathComponent("source")
        for group in 0..<100 {
            let place = source.appendingPathComponent("\(group)")
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            for number in 0..<100 {
                try Data("file \(group) \(number)".utf8).write(to: place.appendingPathComponent("\(number)"))
            }
        }
        let inbox = folder.appendingPathComponent("inbox")
        try FileManager.default.createDirectory(at: inbox, withIntermediateDirectories: false)

        let loop = EventLoop(name: "node")
        let (near, far) = try await connectedPair(on: loop)
        let document = try DocumentScan.scan(FilePath(source.path))
        let serving = Task {
            var kinds: [String] = []
            for await incoming in far.incoming { kinds.append(try await Self.answer(incoming, document)) }
            return kinds
        }
        let files = SharedFiles(
            path: "/nonexistent/roots", userHome: nil, on: try BlockingExecutor(name: "files"),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let service = DocumentService(
            offers: Offers(on: loop, files: files) { _ in }, pool: BufferPool(),
            ledger: try PartFileLedger(stateFolder: FilePath(folder.path + "/parts")), limit: TransferLimit())
        let described = try await service.describe(from: near, claim: ClaimID())
        let order = DocumentOrder(
            title: "source", origin: "their-device", folder: try await DestinationFolder.open(FilePath(inbox.path)))
        let path = try await service.fetch(described, for: order, from: near, claim: ClaimID()) { _ in }
        #expect(path == Array("\(inbox.path)/source".utf8))
        await near.close()
        await far.close()
        #expect(try await serving.value == ["manifest", "ranges"])
        for group in [0, 57, 99] {
            let text = try String(contentsOf: inbox.appendingPathComponent("source/\(group)/99"), encoding: .utf8)
            #expect(text == "file \(group) 99")
        }
        #expect(described.tree.layout.fileCount == 10_000)
    }

    /// An honest origin; returns what was asked for.
    private static func answer(_ incoming: IncomingStream, _ document: ScannedDocument) async throws -> String {
        let stream = incoming.stream
        switch try WireRequest.decode(incoming.request) {
        case .documentManifest:
            try await stream.respond(
                .documentManifest(
                    .with {
                        $0.entries = UInt64(document.tree.entryCount)
                        $0.totalSize = document.tree.size
                    }))
            for index in 0..<document.tree.entryCount {
                try await stream.send(record: WireDocumentEntry(document.tree[index], of: document.tree))
            }
            await stream.finish()
            return "manifest"
        case .documentRanges(let request):
            let pool = BufferPool()
            try await stream.respond(.documentRanges(.with { $0.chunkSize = UInt32(ChunkLayout.chunkSize) }))
            let reader = try await DocumentReader.open(
                document, ranges: request.ranges.map { $0.first..<$0.first + $0.count }, pool: pool)
            while let records = try await reader.next() {
                _ = try await stream.write(records.buffer, queueBound: 0)
                pool.release(records.buffer)
            }
            await stream.finish()
            // How far the other side is, until it has all in place.
            while try await stream.read() != nil {}
            return "ranges"
        default:
            await stream.reset(.refused)
            return "something else"
        }
    }
}
