// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import FoundationEssentials
import Glibc
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonDocuments
@testable import BatonNode

/// A document changes and is described anew on the same claim, for example for an application that reads a range of it.
/// Meanwhile a device fetches the version described before.
@Suite("Versions of a document that is fetched", .timeLimit(.minutes(3)))
struct DocumentVersionTests {
    enum Change: CaseIterable {
        case sameSize, larger, smaller, inFolder, linkInFolder

        var isInFolder: Bool { self == .inFolder || self == .linkInFolder }
    }

    /// A device that offers a document, and one that has claimed it: both are this one.
    private struct Scene {
        let device = PeerName(id: "other-device", name: "other")
        let parts: NodeParts
        let document: FilePath
        /// The file that is changed.
        let file: FilePath
        let claim: ClaimID
        let near: Connection
        private let far: Connection
        private let application: (Connection, Connection)
        private let serving: Task<Void, Never>
        let inbox: FilePath

        init(isFolder: Bool, _ content: [UInt8]) async throws {
            parts = try NodeParts(TestAccount(devices: 1))
            let root = parts.account.root
            inbox = root.appending("inbox")
            document = root.appending("image")
            try FileManager.default.createDirectory(atPath: inbox.string, withIntermediateDirectories: true)
            if isFolder {
                try FileManager.default.createDirectory(atPath: document.string, withIntermediateDirectories: true)
                try Data(content).write(to: URL(filePath: document.appending("first").string))
            }
            file = isFolder ? document.appending("second") : document
            try Data(content).write(to: URL(filePath: file.string))
            application = try await connectedPair(on: parts.loop)
            let activity = try OfferedActivity(
                .with { $0.type = "org.example.image" }, document: .init(DocumentScan.scan(document)))
            _ = try await parts.offers.offer(activity, from: application.0)
            claim = try await parts.offers.claim(activity.id, by: device).claim
            let service = PeerService(
                offers: parts.offers, documents: parts.documents, exchange: parts.exchange,
                streams: ByteBudget(bytes: 4 << 20).part(reserved: 0, ceiling: 4 << 20))
            (near, far) = try await connectedPair(on: parts.loop)
            serving = Task { [far, device] in
                for await incoming in far.incoming {
                    Task { await service.serve(incoming, from: device, on: far) }
                }
            }
        }

        func close() async {
            for connection in [near, far, application.0, application.1] { await connection.close() }
            await serving.value
            await parts.offers.decide { $0.stop() }
        }

        func describe() async throws -> DocumentDescription {
            try await parts.documents.describe(from: near, claim: claim)
        }

        func fetch(
            _ description: DocumentDescription, for plan: Handoff.Plan? = nil, usingCopies: Bool = true,
            from connection: Connection? = nil, told: @Sendable () -> Void = {}
        ) async throws(HandoffError) {
            _ = try await parts.documents.fetch(
                description, for: plan ?? .fetching("image", from: device.id),
                into: parts.documents.openDestination(inbox), usingCopies: usingCopies, from: connection ?? near,
                claim: claim, noting: TransferReport(), told: told
            ) { _ in }
        }

        /// Receives the first chunk, and leaves it for whoever goes on.
        func begin(_ description: DocumentDescription) async throws {
            let writer = try await DocumentWriter.create(
                description.tree, from: device.id, in: try DestinationFolder(inbox),
                ledger: parts.documents.ledger, identity: description.identity, on: EventLoop(name: "test"))
            try await writer.begin([0..<1])
            let pool = BufferPool()
            let reader = try await DocumentReader.open(try DocumentScan.scan(document), ranges: [0..<1])
            while let records = try await reader.next(from: pool) {
                _ = try await writer.submit(records.buffer)
                try await writer.settle(leaving: 0)
                pool.release(records.buffer)
            }
            await reader.close()
            #expect(await writer.end() > 0)
        }

        /// Writes to the file until that shows.
        func edit(_ content: [UInt8]) async throws {
            let before = try DocumentScan.scan(file).tree[0].file?.version
            try await eventually("the edit shows") {
                let writing = try FileDescriptor.open(file, .writeOnly, options: .truncate)
                try writing.closeAfter { _ = try writing.writeAll(content) }
                return try DocumentScan.scan(file).tree[0].file?.version != before
            }
        }

        /// Has the folder's link lead elsewhere.
        func retarget(to target: String) throws {
            let link = document.appending("third").string
            try? FileManager.default.removeItem(atPath: link)
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
        }

        func arrived() -> [UInt8]? {
            let place = file == document ? inbox.appending("image") : inbox.appending("image").appending("second")
            return FileManager.default.contents(atPath: place.string).map { Array($0) }
        }
    }

    @Test("One version of the document arrives, however it was described meanwhile", arguments: Change.allCases)
    func describedAnew(_ change: Change) async throws {
        var generator = SeededGenerator(seed: 83)
        let size = 2 * ChunkLayout.chunkSize + 1000
        let before = generator.bytes(size)
        let scene = try await Scene(isFolder: change.isInFolder, before)
        if change == .linkInFolder { try scene.retarget(to: "first") }
        let described = try await scene.describe()
        try await scene.begin(described)
        let content =
            switch change {
            case .sameSize, .inFolder: generator.bytes(size)
            case .larger: generator.bytes(size + 3 * ChunkLayout.chunkSize)
            case .smaller: generator.bytes(1000)
            case .linkInFolder: before
            }
        if change == .linkInFolder { try scene.retarget(to: "second") } else { try await scene.edit(content) }
        let now = try await scene.describe()
        let error = await #expect(throws: HandoffError.self) { try await scene.fetch(described) }
        #expect(error?.code == .documentChanged)
        #expect(scene.arrived() == nil)
        try await scene.fetch(now)
        #expect(scene.arrived() == content)
        if change == .linkInFolder {
            let link = scene.inbox.appending("image").appending("third").string
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "second")
        }
        await scene.close()
    }

    @Test("A document that is described anew and has not changed is fetched on")
    func unchanged() async throws {
        var generator = SeededGenerator(seed: 84)
        let content = generator.bytes(2 * ChunkLayout.chunkSize + 1000)
        let scene = try await Scene(isFolder: true, content)
        let described = try await scene.describe()
        try await scene.begin(described)
        _ = try await scene.describe()
        try await scene.fetch(described)
        #expect(scene.arrived() == content)
        await scene.close()
    }

    /// Describes a document of one file, which is to be fetched with an older copy that is not there yet.
    private func withCopy(
        _ content: [UInt8]
    ) async throws -> (scene: Scene, described: DocumentDescription, copy: FilePath, plan: Handoff.Plan) {
        let scene = try await Scene(isFolder: false, content)
        let copy = scene.parts.account.root.appending("older")
        let plan = Handoff.Plan.fetching("image", from: scene.device.id, against: [copy])
        return (scene, try await scene.describe(), copy, plan)
    }

    @Test("An older copy that went after it was opened is done without, and one that never was there is refused")
    func copyThatGoes() async throws {
        var generator = SeededGenerator(seed: 85)
        let content = generator.bytes(2 * ChunkLayout.chunkSize + 1000)
        let (scene, described, copy, plan) = try await withCopy(content)
        let (broken, other) = try await connectedPair(on: scene.parts.loop)
        for connection in [broken, other] { await connection.close() }
        let missing = await #expect(throws: HandoffError.self) { try await scene.fetch(described, for: plan) }
        #expect(missing?.code == .documentUnreadable)
        try Data(content).write(to: URL(filePath: copy.string))
        let lost = await #expect(throws: HandoffError.self) {
            try await scene.fetch(described, for: plan, from: broken)
        }
        #expect(lost?.code == .connectionLost, "\(String(describing: lost))")
        try FileManager.default.removeItem(atPath: copy.string)
        try await scene.fetch(described, for: plan)
        #expect(scene.arrived() == content)
        await scene.close()
    }

    @Test("An older copy that changes while it is built upon is told as that, and the rest comes without it")
    func copyThatChanges() async throws {
        var generator = SeededGenerator(seed: 86)
        let content = generator.bytes(2 * ChunkLayout.chunkSize + 1000)
        let (scene, described, copy, plan) = try await withCopy(content)
        try Data(content).write(to: URL(filePath: copy.string))
        let error = await #expect(throws: HandoffError.self) {
            try await scene.fetch(described, for: plan) {
                if truncate(copy.string, 100) != 0 { Issue.record("the copy was not cut: \(errno)") }
            }
        }
        #expect(error?.code == .documentChanged)
        #expect(error?.message == "an older copy that image was built upon changed, and none is used any more")
        try await scene.fetch(described, for: plan)
        #expect(scene.arrived() == content)
        await scene.close()
    }

    @Test("An attempt that is to do without copies tells nothing of them")
    func withoutCopies() async throws {
        var generator = SeededGenerator(seed: 87)
        let content = generator.bytes(2 * ChunkLayout.chunkSize + 1000)
        let (scene, described, copy, plan) = try await withCopy(content)
        try Data(content).write(to: URL(filePath: copy.string))
        try await scene.fetch(described, for: plan, usingCopies: false) {
            Issue.record("the origin was told of a copy")
        }
        #expect(scene.arrived() == content)
        await scene.close()
    }

    /// Each of which would otherwise be looked at before the request has a place.
    @Test("Requests with a wrong version cost as little with a great document as with a small one")
    func wrongVersions() throws {
        var builder = DocumentTree.Builder(try DocumentLabel(Array("great".utf8)))
        try builder.append(DocumentEntry(path: .root, kind: .folder))
        let start = ContinuousClock.now
        for number in 10_000..<30_000 {
            let file = DocumentEntry.File(size: 1, version: FileVersion(high: 1, low: UInt64(number)))
            try builder.append(DocumentEntry(path: EntryPath(Array("\(number)".utf8)), kind: .file(file)))
        }
        let tree = try builder.finish()
        let building = ContinuousClock.now - start
        let request = WireDocumentRangesRequest.with { $0.version = Data(FileVersion(high: 2, low: 3).bytes) }
        let asking = ContinuousClock().measure {
            for _ in 0..<1000 {
                #expect(throws: HandoffError.self) { try DocumentService.requireVersion(of: request, in: tree) }
            }
        }
        #expect(asking < building * 10, "\(asking), and \(building) to look at all of it")
    }
}
