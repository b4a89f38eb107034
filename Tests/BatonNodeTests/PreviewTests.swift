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

/// Documents of one device that applications of another read meanwhile, with a node's services on both sides.
@Suite("Documents that are looked at beside each other", .timeLimit(.minutes(3)))
struct PreviewTests {
    private static let desktop = PeerName(id: "desktop", name: "desktop")

    @Test("A slow or stopped reader of one document keeps nobody from reading another of the same device")
    func slowReader() async throws {
        let parts = try NodeParts(TestAccount(devices: 1))
        let documents = parts.documents
        let (owner, application) = try await connectedPair(on: parts.loop)
        let (near, far) = try await connectedPair(on: parts.loop)
        let serving = Task {
            await withTaskGroup(of: Void.self) { group in
                for await incoming in far.incoming { group.addTask { await Self.serve(incoming, documents) } }
            }
        }
        func description(seed: UInt64) async throws -> (Data, DocumentDescription, ClaimID) {
            let path = parts.account.root.appending("document \(seed)")
            var generator = SeededGenerator(seed: seed)
            let content = Data(generator.bytes(5 << 20))
            try content.write(to: URL(filePath: path.string))
            let source = try await DocumentService.inspect(path, countedIn: nil)
            let activity = try OfferedActivity(.with { $0.type = "org.example.film" }, document: source)
            _ = try await parts.offers.offer(activity, from: owner)
            let (claim, _) = try await parts.offers.claim(activity.id, by: Self.desktop)
            return (content, try await documents.describe(from: near, claim: claim), claim)
        }
        let (first, second) = (try await description(seed: 91), try await description(seed: 92))

        let (node, reader) = try await connectedPair(on: parts.loop)
        let iterator = node.incoming.makeAsyncIterator()
        func open(
            _ range: Range<UInt64>, of document: (Data, description: DocumentDescription, claim: ClaimID)
        ) async throws -> (BatonTransport.Stream, Task<Void, Never>) {
            let stream = try await reader.open([])
            await stream.finish()
            let incoming = try #require(await iterator.next()).stream
            let serving = Task {
                do throws(HandoffError) {
                    try await documents.read(
                        FileRange(bytes: range), of: document.description, from: near, claim: document.claim,
                        to: incoming)
                } catch {
                    await incoming.fail(error)
                }
            }
            return (stream, serving)
        }
        // It takes nothing, until the other has been read.
        let (slow, slowly) = try await open(0..<5 << 20, of: first)
        _ = try await slow.response()
        let (quick, quickly) = try await open(100..<200, of: second)
        defer { for serving in [slowly, quickly] { serving.cancel() } }
        let hasEnded = Lock(false)
        let reading = Task {
            defer { hasEnded.withLock { $0 = true } }
            _ = try await quick.response()
            return try await Self.rest(of: quick)
        }
        try await eventually("the second is read") { hasEnded.withLock(\.self) }
        #expect(try await reading.value == second.0[100..<200])
        #expect(try await Self.rest(of: slow) == first.0)
        for serving in [slowly, quickly] { await serving.value }
        // Of both sides: the origin gives back what it has read for a stream that was left.
        try await eventually("all buffers are back") { documents.pool.lentCount == 0 }
        for connection in [near, far, node, reader, owner, application] { await connection.close() }
        await serving.value
        await parts.offers.decide { $0.stop() }
    }

    /// Answers as the origin's node does.
    private static func serve(_ incoming: IncomingStream, _ documents: DocumentService) async {
        let stream = incoming.stream
        do throws(HandoffError) {
            switch try? WireRequest.decode(incoming.request) {
            case .documentManifest(let request):
                try await documents.manifest(of: Self.claim(request.claimID), for: desktop, on: stream)
            case .documentRanges(let request):
                try await documents.send(request, of: Self.claim(request.claimID), to: desktop, on: stream)
            default: await stream.reset(.refused)
            }
        } catch {
            await stream.fail(error)
        }
    }

    private static func claim(_ bytes: Data) throws(HandoffError) -> ClaimID {
        guard let claim = ClaimID(bytes) else { throw HandoffError(.invalidRequest, "an id has 16 bytes") }
        return claim
    }

    private static func rest(of stream: BatonTransport.Stream) async throws -> Data {
        var read = Data()
        while let buffer = try await stream.read() { buffer.withBytes { read.append(contentsOf: $0) } }
        return read
    }
}
