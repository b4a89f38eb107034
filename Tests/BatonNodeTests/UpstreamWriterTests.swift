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

/// What an origin is told while it sends a document.
@Suite("What an origin is told of its document", .timeLimit(.minutes(5)))
struct UpstreamWriterTests {
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
            // What came until all of it was there.
            for try await record in stream.records(of: WireDocumentUpstream.self) {
                told.withLock { $0 += (try? record.serializedData().count + 1) ?? 0 }
                if record.report.verifiedBytes == tree.size { break }
            }
            while try await stream.read() != nil {}
        }
        // That just fits, and not a byte more.
        let window = told.withLock { $0 } - BatonTransport.Stream.recordQueueBound
        try #require(window > 0)
        try await fetch(tree, against: copies, window: window, to: "second") { stream in await stream.gone() }
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
        let order = DocumentOrder(
            title: "folder", origin: "desktop", folder: try await DestinationFolder.open(place), copies: copies)
        let path = try await service.fetch(
            DocumentDescription(tree: tree), for: order, from: near, claim: ClaimID(), progress: { _ in })
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
}
