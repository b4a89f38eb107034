// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import FoundationEssentials
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonDocuments
@testable import BatonNode

/// Files of a folder that an application of another device reads slowly, while the folder changes and is described
/// anew.
@Suite("Reading a document that changes meanwhile", .timeLimit(.minutes(3)))
struct ChangingDocumentReadTests {
    private static let device = PeerName(id: "other-device", name: "other")
    private static let size = 8 << 20

    /// The requests that the origin received.
    private final class Served: Sendable {
        private let manifests = Lock(0)

        /// How often the origin was asked what the document is.
        var manifestCount: Int { manifests.withLock(\.self) }

        func begin(_ request: [UInt8]) {
            guard case .documentManifest = try? WireRequest.decode(request) else { return }
            manifests.withLock { $0 += 1 }
        }
    }

    /// A device that offers a folder of two files, and one that has claimed it: both are this one.
    private struct Scene {
        let parts: NodeParts
        let folder: FilePath
        let claim: ClaimID
        let near: Connection
        let handoff: Handoff
        let application: Connection
        private let ends: [Connection]
        private let serving: Task<Void, Never>
        private let arrivals: IncomingStreams.AsyncIterator
        let served = Served()

        init(_ files: [(String, [UInt8])]) async throws {
            parts = try NodeParts(TestAccount(devices: 1))
            folder = parts.account.root.appending("films")
            try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
            for (name, content) in files { try Data(content).write(to: URL(filePath: folder.appending(name).string)) }
            let (owner, offering) = try await connectedPair(on: parts.loop)
            let activity = try OfferedActivity(
                .with { $0.type = "org.example.films" }, document: .init(DocumentScan.scan(folder)))
            _ = try await parts.offers.offer(activity, from: owner)
            let claim = try await parts.offers.claim(activity.id, by: ChangingDocumentReadTests.device).claim
            let service = PeerService(
                offers: parts.offers, documents: parts.documents, exchange: parts.exchange,
                streams: ByteBudget(bytes: 4 << 20).part(reserved: 0, ceiling: 4 << 20))
            let (near, far) = try await connectedPair(on: parts.loop)
            (self.claim, self.near) = (claim, near)
            serving = Task { [served] in
                for await incoming in far.incoming {
                    Task {
                        served.begin(incoming.request)
                        await service.serve(incoming, from: ChangingDocumentReadTests.device, on: far)
                    }
                }
            }
            handoff = parts.handoff()
            try await handoff.hold(claim, on: near)
            await handoff.setHasDocument()
            let node: Connection
            (node, application) = try await connectedPair(on: parts.loop)
            arrivals = node.incoming.makeAsyncIterator()
            ends = [near, far, owner, offering, node, application]
        }

        func close() async {
            for connection in ends { await connection.close() }
            await serving.value
            await parts.offers.decide { $0.stop() }
        }

        /// Begins to read a whole file, as an application does, and takes the answer alone.
        func open(_ file: String) async throws -> BatonTransport.Stream {
            let stream = try await application.open([])
            await stream.finish()
            let incoming = try #require(await arrivals.next()).stream
            let range = FileRange(bytes: 0..<UInt64.max, path: try EntryPath(Array(file.utf8)))
            Task { [handoff] in
                do throws(HandoffError) {
                    try await handoff.read(range, to: incoming)
                } catch {
                    await incoming.fail(error)
                }
            }
            let response = try await WireResponse(serializedBytes: stream.response())
            if case .failure(let failure)? = response.kind { throw HandoffError(failure) }
            return stream
        }

        /// Writes to a file until that shows.
        func edit(_ file: String, _ content: [UInt8]) async throws {
            let path = folder.appending(file)
            let before = try DocumentScan.scan(path).tree[0].file?.version
            try await eventually("the edit shows") {
                let writing = try FileDescriptor.open(path, .writeOnly, options: .truncate)
                try writing.closeAfter { _ = try writing.writeAll(content) }
                return try DocumentScan.scan(path).tree[0].file?.version != before
            }
        }
    }

    /// - Returns: what came, and what ended it before its end.
    private func rest(of stream: BatonTransport.Stream) async -> (read: [UInt8], error: TransportError?) {
        var read: [UInt8] = []
        do throws(TransportError) {
            while let buffer = try await stream.read() { buffer.withBytes { read += $0 } }
        } catch {
            return (read, error)
        }
        return (read, nil)
    }

    @Test("An application that was slow gets no bytes of what has changed since")
    func changed() async throws {
        var generator = SeededGenerator(seed: 96)
        let content = generator.bytes(Self.size)
        let scene = try await Scene([("a", generator.bytes(1 << 20)), ("b", content)])
        let slow = try await scene.open("b")
        try await scene.edit("b", generator.bytes(2 << 20))
        _ = try await scene.parts.documents.describe(from: scene.near, claim: scene.claim)
        let (read, error) = await rest(of: slow)
        #expect(error?.code == .reset(.sourceChanged))
        #expect(read.count < content.count && read == Array(content.prefix(read.count)))
        await scene.close()
    }

    @Test("What changed while it was read is read as it is now by the very next who asks")
    func next() async throws {
        var generator = SeededGenerator(seed: 97)
        let scene = try await Scene([("a", generator.bytes(10)), ("b", generator.bytes(Self.size))])
        let first = try await scene.open("b")
        let content = generator.bytes(Self.size)
        try await scene.edit("b", content)
        #expect(await rest(of: first).error?.code == .reset(.sourceChanged))
        let second = try await scene.open("b")
        let (read, error) = await rest(of: second)
        #expect(error == nil && read == content)
        await scene.close()
    }

    @Test("A file that changed before it was read is read as it is now", arguments: ["a", "b"])
    func before(edited: String) async throws {
        var generator = SeededGenerator(seed: 99)
        let old = generator.bytes(Self.size)
        let scene = try await Scene([("a", generator.bytes(10)), ("b", old)])
        _ = try await scene.handoff.description()
        let new = generator.bytes(2 << 20)
        try await scene.edit(edited, new)
        _ = try await scene.parts.documents.describe(from: scene.near, claim: scene.claim)
        // The one who asks first learns that the description is another one.
        let first = await #expect(throws: HandoffError.self) { try await scene.open("b") }
        #expect(first?.code == .documentChanged)
        let (read, error) = await rest(of: try await scene.open("b"))
        #expect(error == nil && read == (edited == "b" ? new : old))
        await scene.close()
    }

    @Test("What an application reads comes at once, though documents that stand still hold all of their buffers")
    func besideDocuments() async throws {
        var generator = SeededGenerator(seed: 98)
        let content = generator.bytes(3 << 20)
        let scene = try await Scene([("a", []), ("b", content)])
        let pool = scene.parts.documents.pool
        var held: [Buffer] = []
        while let buffer = pool.acquireIfAvailable() { held.append(buffer) }
        let stream = try await scene.open("b")
        let received = Lock<[UInt8]>([])
        let reading = Task {
            while let buffer = try await stream.read() {
                buffer.withBytes { bytes in received.withLock { $0 += bytes } }
            }
        }
        await #expect(throws: Never.self) {
            try await eventually("all of it came") { received.withLock(\.count) == content.count }
        }
        for buffer in held { pool.release(buffer) }
        try await reading.value
        #expect(received.withLock(\.self) == content)
        await scene.close()
    }

    @Test("A device that was away is asked once what the document is, and not twice")
    func wasAway() async throws {
        let scene = try await Scene([("a", [1]), ("b", [2])])
        #expect(try await scene.handoff.description().tree.size == 2)
        try await scene.edit("b", [3, 4])
        try await scene.handoff.renewClaim()
        #expect(try await scene.handoff.description().tree.size == 3)
        #expect(scene.served.manifestCount == 2)
        await scene.close()
    }
}

extension Handoff {
    fileprivate func setHasDocument() { hasDocument = true }
}
