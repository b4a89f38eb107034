// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import FoundationEssentials
import SwiftProtobuf
import Testing

import struct SystemPackage.FilePath

@testable import BatonDocuments
@testable import BatonNode

/// An origin that drips: what comes of its document in the time has to be ``NodeLimits/leastProgress``.
@Suite("The least that has to come of a document", .timeLimit(.minutes(5)))
struct LeastProgressTests {
    private static let bound = NodeLimits().leastProgress
    private let content: [UInt8]
    private let tree: DocumentTree
    /// The document as it travels.
    private let records: [UInt8]

    init() throws {
        var generator = SeededGenerator(seed: 61)
        content = generator.bytes(64 << 10)
        tree = try DocumentTree(file: .init(size: UInt64(content.count)), called: DocumentLabel(Array("report".utf8)))
        let checksum = content.withUnsafeBytes { ChunkChecksum(of: $0) }
        var records = [0, 0] + content
        withUnsafeBytes(of: checksum.high.bigEndian) { records += $0 }
        withUnsafeBytes(of: checksum.low.bigEndian) { records += $0 }
        self.records = records
    }

    /// Answers who asks for the document: with pieces of so many bytes, a pause behind each, and the rest.
    private func serve(
        _ connection: Connection, pieces: [Int], pause: @escaping @Sendable (BatonTransport.Stream) async throws -> Void
    ) -> Task<Void, Never> {
        Task {
            for await incoming in connection.incoming {
                let stream = incoming.stream
                do {
                    try await stream.respond(.documentRanges(.with { $0.chunkSize = UInt32(ChunkLayout.chunkSize) }))
                    var rest = records[...]
                    for piece in pieces {
                        try await stream.write(Buffer(copying: rest.prefix(piece)))
                        rest = rest.dropFirst(piece)
                        try await pause(stream)
                    }
                    try await stream.write(Buffer(copying: rest))
                    await stream.finish()
                } catch {
                    // It was given up.
                    await stream.reset(.cancelled)
                }
            }
        }
    }

    @Test("A document of which so much came in the time is fetched on, and one of which a byte less did is given up")
    func fetched() async throws {
        #expect(Self.bound == 16 << 10)
        let onTime = try await fetch(missing: 0)
        #expect(try onTime.get() == content)
        let late = try await fetch(missing: 1)
        #expect(throws: HandoffError.self) { try late.get() }
        #expect("\(late)".contains("only \(Self.bound - 1) bytes"), "\(late)")
    }

    /// Fetches a document of which the bound comes at first, less so many bytes.
    private func fetch(missing: Int) async throws -> Result<[UInt8], HandoffError> {
        let parts = try NodeParts(TestAccount(devices: 1))
        let inbox = parts.account.root.appending("inbox")
        try FileManager.default.createDirectory(atPath: inbox.string, withIntermediateDirectories: true)
        var service = parts.documents
        service.stallDeadline = .seconds(10)
        let (near, far) = try await connectedPair(on: parts.loop)
        let (over, end) = AsyncStream<Void>.makeStream()
        let serving = serve(far, pieces: [Self.bound - missing]) { _ in for await _ in over {} }
        let folder = try DestinationFolder(inbox)
        let result: Result<[UInt8], HandoffError>
        do throws(HandoffError) {
            let count = Lock(0)
            defer { end.finish() }
            _ = try await service.fetch(
                DocumentDescription(tree: tree), for: .fetching("report", from: "phone"), into: folder, from: near,
                claim: ClaimID(), noting: TransferReport()
            ) { _ in
                // How far it is before anything comes, and now that the time is over.
                let isOver = count.withLock { count in
                    count += 1
                    return count == 2
                }
                if isOver { end.finish() }
            }
            let file = inbox.appending("report").string
            result = .success(FileManager.default.contents(atPath: file).map { Array($0) } ?? [])
        } catch {
            result = .failure(error)
        }
        await near.close()
        await far.close()
        await serving.value
        return result
    }

    @Test("What an application looks at meanwhile is held to the same")
    func read() async throws {
        // When more comes after the time is over, the node compares the bytes with the bound. Here that is two bytes
        // later.
        #expect(try await read(first: Self.bound - 2, stallDeadline: .seconds(8)) == content)
        #expect(try await read(first: Self.bound - 3, stallDeadline: .seconds(8)) == nil)
    }

    /// - Returns: what an application got of it, or nil where that was given up.
    private func read(first: Int, stallDeadline: Duration) async throws -> [UInt8]? {
        let parts = try NodeParts(TestAccount(devices: 1))
        var service = parts.documents
        service.stallDeadline = stallDeadline
        let (near, far) = try await connectedPair(on: parts.loop)
        let serving = serve(far, pieces: [first, 1, 1]) { _ in try await Task.sleep(for: stallDeadline * 0.6) }
        let (node, application) = try await connectedPair(on: parts.loop)
        let stream = try await application.open([])
        let incoming = try #require(await node.incoming.makeAsyncIterator().next())
        let relaying = Task { [service, tree] in
            try await service.read(
                FileRange(bytes: 0..<tree.size), of: DocumentDescription(tree: tree), from: near, claim: ClaimID(),
                to: incoming.stream)
        }
        var read: [UInt8]? = []
        do {
            _ = try await stream.response()
            while let buffer = try await stream.read() { buffer.withBytes { read?.append(contentsOf: $0) } }
        } catch {
            #expect(error.code == .reset(.timeout))
            read = nil
        }
        _ = await relaying.result
        for connection in [near, far, node, application] { await connection.close() }
        await serving.value
        return read
    }
}
