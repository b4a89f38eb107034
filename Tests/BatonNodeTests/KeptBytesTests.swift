// SPDX-License-Identifier: Apache-2.0

import BatonAccount
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

/// A document of eight chunks that stops coming after three, and goes on.
@Suite("The kept part of a document that stopped coming", .timeLimit(.minutes(5)))
struct KeptBytesTests {
    private let parts: NodeParts
    private let origin: PeerName
    private let tree: DocumentTree
    /// A chunk as it travels: all are the same.
    private let record: [UInt8]

    init() throws {
        parts = try NodeParts(TestAccount(devices: 2))
        origin = PeerName(id: parts.account.devices[1].id.description, name: "laptop")
        tree = try DocumentTree(
            file: .init(size: 8 << 20, version: FileVersion(high: 0, low: 3)),
            called: DocumentLabel(Array("report".utf8)))
        let content = [UInt8](repeating: 5, count: ChunkLayout.chunkSize)
        let checksum = content.withUnsafeBytes { ChunkChecksum(of: $0) }
        var record = [0, 0] + content
        withUnsafeBytes(of: checksum.high.bigEndian) { record += $0 }
        withUnsafeBytes(of: checksum.low.bigEndian) { record += $0 }
        self.record = record
    }

    /// An origin that sends at most so many chunks of a request, and then waits.
    private func serve(_ connection: Connection, chunks limit: Int) {
        Task {
            for await incoming in connection.incoming {
                try? await answer(try WireRequest.decode(incoming.request), incoming.stream, limit)
            }
        }
    }

    private func answer(
        _ request: WireRequest.OneOf_Kind, _ stream: BatonTransport.Stream, _ limit: Int
    ) async throws {
        switch request {
        case .payload:
            try await stream.respond(
                .payload(
                    .with {
                        $0.claimID = Data(repeating: 7, count: 16)
                        $0.payload.summary.kind = .document
                    }))
        case .documentManifest:
            try await stream.respond(
                .documentManifest(
                    .with {
                        $0.entries = UInt64(tree.entryCount)
                        $0.totalSize = tree.size
                    }))
            try await stream.send(records: DocumentService.entries(of: tree, from: 0))
        case .documentRanges(let request):
            try await stream.respond(.documentRanges(.with { $0.chunkSize = UInt32(ChunkLayout.chunkSize) }))
            let count = request.ranges.reduce(0) { $0 + Int($1.count) }
            for _ in 0..<min(count, limit) { try await stream.write(Buffer(copying: record)) }
            if count <= limit { await stream.finish() }
            while try await stream.read() != nil {}
            return
        case .continued: try await stream.respond(.continued(.init()))
        case .release: try await stream.respond(.release(.init()))
        default: Issue.record("it asked for something else: \(request)")
        }
        await stream.finish()
    }

    @Test("As much is told as the next attempt begins with: nothing where it was removed", arguments: [false, true])
    func told(isLost: Bool) async throws {
        let inbox = parts.account.root.appending("inbox")
        try FileManager.default.createDirectory(atPath: inbox.string, withIntermediateDirectories: true)
        let folder = try DestinationFolder(inbox)
        let handoff = parts.handoff(
            Handoff.Plan(activity: .init(), origin: origin, candidates: [], destination: folder))
        let table = HandoffTable()
        try await table.insert(handoff)
        let (near, far) = try await connectedPair(on: parts.loop)
        try await parts.connections.adopt(near, of: origin.id, isDialled: false)
        serve(far, chunks: 3)
        await table.begin(handoff)
        var events = handoff.events.makeAsyncIterator()
        while let event = await events.next(), event.progress.bytes == 0 {}
        if isLost {
            for name in try FileManager.default.contentsOfDirectory(atPath: inbox.string) {
                try FileManager.default.removeItem(atPath: inbox.appending(name).string)
            }
        }
        await far.abort()
        let (second, other) = try await connectedPair(on: parts.loop)
        try await parts.connections.adopt(second, of: origin.id, isDialled: false)
        serve(other, chunks: 8)
        var interruption: WireAcceptEvent.Interrupted?
        while interruption == nil, let event = await events.next() {
            if case .interrupted(let told)? = event.kind { interruption = told }
        }
        let kept = try #require(interruption?.keptBytes)
        #expect(isLost == (kept == 0) && kept <= 3 << 20)
        var last = WireProgressReport()
        var continued: WireAcceptEvent.Continued?
        while let event = await events.next() {
            switch event.kind {
            case .progress(let report): last = report
            case .continued(let told): continued = told
            default: break
            }
        }
        #expect(continued?.bytes == 8 << 20)
        #expect(last.bytes == 8 << 20 && last.keptBytes == 8 << 20 && last.resumedBytes == kept)
        #expect(try FileManager.default.contentsOfDirectory(atPath: inbox.string) == ["report"])
        for connection in [near, far, second, other] { await connection.close() }
    }
}
