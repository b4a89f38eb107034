// SPDX-License-Identifier: Apache-2.0

import BatonCore
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
        let folder = try ScratchFolder("many")
        defer { folder.remove() }
        let source = folder.url.appendingPathComponent("source")
        for group in 0..<100 {
            let place = source.appendingPathComponent("\(group)")
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            for number in 0..<100 {
                try Data("file \(group) \(number)".utf8).write(to: place.appendingPathComponent("\(number)"))
            }
        }
        let inbox = folder.url.appendingPathComponent("inbox")
        try FileManager.default.createDirectory(at: inbox, withIntermediateDirectories: false)

        let loop = ControlLoop.loop
        let (near, far) = try await connectedPair(on: loop)
        let document = try DocumentScan.scan(FilePath(source.path))
        let serving = Task {
            var kinds: [String] = []
            for await incoming in far.incoming { kinds.append(try await Self.answer(incoming, document)) }
            return kinds
        }
        let files = SharedFiles(
            path: "/nonexistent/roots", on: try BlockingExecutor(name: "files"),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let service = DocumentService(
            offers: Offers(files: files) {}, pool: BufferPool(),
            ledger: try PartFileLedger(stateFolder: folder.filePath.appending("parts")), limit: TransferLimit())
        let described = try await service.describe(from: near, claim: ClaimID())
        let path = try await service.fetch(
            described, for: .fetching("source", from: "their-device"), into: DestinationFolder(FilePath(inbox.path)),
            from: near, claim: ClaimID(), noting: TransferReport()
        ) { _ in }
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

    @Test("An entry is told with its permissions; what else a device puts among them does not count")
    func permissions() throws {
        let tree = try DocumentTree(
            file: .init(size: 1), called: try DocumentLabel(Data("key".utf8)), permissions: 0o640)
        var told = WireDocumentEntry(tree[0], of: tree)
        #expect(told.mode == 0o640)
        #expect(try told.entry(at: .root) == tree[0])
        told.mode = 0o106755
        #expect(try told.entry(at: .root).permissions == 0o755)
        told.clearMode()
        #expect(try told.entry(at: .root).permissions == nil)
    }

    @Test("A description goes in pieces that one record's room is enough for, each entry once and in its order")
    func pieces() throws {
        #expect(DocumentService.entriesAtOnce == 256 && DocumentService.entryBytesAtOnce == 32 << 10)
        for (name, count) in [("short", 1_000), (String(repeating: "long", count: 60), 700)] {
            var builder = DocumentTree.Builder(try DocumentLabel(Data("folder".utf8)))
            try builder.append(DocumentEntry(path: .root, kind: .folder, modified: nil))
            for number in 0..<count {
                let path = try EntryPath(Data("\(name) \(100_000 + number)".utf8))
                try builder.append(DocumentEntry(path: path, kind: .folder, modified: nil))
            }
            let tree = try builder.finish()
            var told: [WireDocumentEntry] = []
            var pieces: [Int] = []
            while told.count < tree.entryCount {
                let entries = DocumentService.entries(of: tree, from: told.count)
                try #require(!entries.isEmpty && entries.count <= DocumentService.entriesAtOnce)
                let bytes = try entries.reduce(0) { try $0 + $1.serializedData().count + 3 }
                #expect(bytes <= BatonTransport.Stream.recordQueueBound)
                pieces.append(entries.count)
                told += entries
            }
            #expect(told == (0...count).map { WireDocumentEntry(tree[$0], of: tree) })
            // As many as may be by number, and fewer of those that have long names.
            #expect(pieces.max() == (name == "short" ? DocumentService.entriesAtOnce : 134), "\(pieces)")
        }
    }

    @Test("The longest entries, of which few go at once, fit as well")
    func longestPieces() throws {
        let name = String(repeating: "n", count: 255)
        var builder = DocumentTree.Builder(try DocumentLabel(Data("folder".utf8)))
        try builder.append(DocumentEntry(path: .root, kind: .folder, modified: nil))
        var folder = ""
        for depth in 1...15 {
            folder += depth == 1 ? name : "/" + name
            try builder.append(DocumentEntry(path: EntryPath(Data(folder.utf8)), kind: .folder, modified: nil))
        }
        for number in 0..<10 {
            let path = try EntryPath(Data("\(folder)/\(name.dropLast())\(number)".utf8))
            #expect(path.bytes.count == EntryPath.maximumLength)
            let bytes = Data(String(repeating: "t/", count: LinkTarget.maximumLength).utf8)
            let target = try #require(LinkTarget(bytes.prefix(LinkTarget.maximumLength), at: path))
            try builder.append(
                DocumentEntry(path: path, kind: .link(target), modified: .init(seconds: -1, nanoseconds: 1)))
        }
        let entries = DocumentService.entries(of: try builder.finish(), from: 16)
        let bytes = try entries.reduce(0) { try $0 + $1.serializedData().count + 3 }
        #expect(entries.count == 5 && bytes <= BatonTransport.Stream.recordQueueBound, "\(entries.count): \(bytes)")
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
            var index = 0
            while index < document.tree.entryCount {
                let entries = DocumentService.entries(of: document.tree, from: index)
                try await stream.send(records: entries)
                index += entries.count
            }
            await stream.finish()
            return "manifest"
        case .documentRanges(let request):
            let pool = BufferPool()
            try await stream.respond(.documentRanges(.with { $0.chunkSize = UInt32(ChunkLayout.chunkSize) }))
            let reader = try await DocumentReader.open(
                document, ranges: request.ranges.map { $0.first..<$0.first + $0.count })
            while let records = try await reader.next(from: pool) {
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

extension DocumentReader {
    /// Reads the next records into a buffer of a pool; nil after the last.
    func next(
        from pool: BufferPool, telling bottleneck: Bottleneck = .unknown, linkWait: Duration = .zero
    ) async throws(DocumentError) -> (buffer: Buffer, contentByteCount: UInt64)? {
        guard try hasMore() else { return nil }
        let buffer = try await pool.acquire()
        do throws(DocumentError) {
            return (buffer, try read(into: buffer, telling: bottleneck, linkWait: linkWait))
        } catch {
            pool.release(buffer)
            throw error
        }
    }
}
