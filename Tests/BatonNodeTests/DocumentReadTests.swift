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

/// Ranges of a document that a scripted origin has, read by an application over a real connection each.
@Suite("Reading a document before it has arrived", .timeLimit(.minutes(5)))
struct DocumentReadTests {
    private final class Scene: Sendable {
        private let scratch: ScratchFolder
        let content: Data
        let tree: DocumentTree
        let service: DocumentService
        private let loop = ControlLoop.loop
        private let origin: (near: Connection, far: Connection)
        private let application: (near: Connection, far: Connection)
        /// A byte of the records that is changed on the way.
        private let damage: Int?
        private let serving: Task<Void, Never>

        /// - Parameters:
        ///   - files: of a folder, by path and size, in the order of a manifest; the document is one file by default.
        ///   - version: of the document that is one file.
        init(
            bytes: Int, seed: UInt64, damage: Int? = nil, files: [(path: String, size: Int)] = [],
            version: FileVersion = .none, pool: BufferPool = BufferPool()
        ) async throws {
            scratch = try ScratchFolder("read")
            var generator = SeededGenerator(seed: seed)
            content = Data(generator.bytes(bytes))
            tree = try Self.tree(bytes, files, version)
            self.damage = damage
            let files = SharedFiles(
                path: "/nonexistent/roots", on: try BlockingExecutor(name: "files"),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            service = DocumentService(
                offers: Offers(files: files) {}, pool: pool,
                ledger: try PartFileLedger(stateFolder: scratch.filePath.appending("parts")), limit: TransferLimit())
            origin = try await connectedPair(on: loop)
            application = try await connectedPair(on: loop, limits: .local)
            let (far, content, layout) = (origin.far, content, tree.layout)
            serving = Task {
                for await incoming in far.incoming {
                    Task { try? await Self.answer(incoming, content, layout, damage: damage) }
                }
            }
        }

        private static func tree(
            _ bytes: Int, _ files: [(path: String, size: Int)], _ version: FileVersion
        ) throws -> DocumentTree {
            let label = try DocumentLabel(Array("big".utf8))
            guard !files.isEmpty else {
                return try DocumentTree(file: .init(size: UInt64(bytes), version: version), called: label)
            }
            var builder = DocumentTree.Builder(label)
            try builder.append(DocumentEntry(path: .root, kind: .folder))
            var folders = Set([EntryPath.root])
            for file in files {
                let path = try EntryPath(Array(file.path.utf8))
                if folders.insert(path.parent).inserted {
                    try builder.append(DocumentEntry(path: path.parent, kind: .folder))
                }
                try builder.append(DocumentEntry(path: path, kind: .file(.init(size: UInt64(file.size)))))
            }
            return try builder.finish()
        }

        func close() async {
            for connection in [origin.near, origin.far, application.near, application.far] { await connection.close() }
            await serving.value
            scratch.remove()
        }

        /// Reads as an application does.
        ///
        /// - Parameters:
        ///   - file: of a folder.
        ///   - version: of which the bytes have to be.
        func read(
            _ range: Range<UInt64>, file: String? = nil, version: FileVersion? = nil
        ) async throws -> Data {
            try await content(of: open(range, file: file, version: version))
        }

        /// The content of the opened stream, to its end.
        func content(of opened: (BatonTransport.Stream, Task<Void, Never>)) async throws -> Data {
            let (stream, serving) = opened
            defer { serving.cancel() }
            guard case .documentRead = try await response(of: stream) else {
                throw HandoffError(.internal, "no answer")
            }
            var read = Data()
            while let buffer = try await stream.read() { buffer.withBytes { read.append(contentsOf: $0) } }
            await serving.value
            return read
        }

        /// - Parameter version: of which the bytes have to be.
        func open(
            _ range: Range<UInt64>, file: String? = nil, version: FileVersion? = nil
        ) async throws -> (BatonTransport.Stream, Task<Void, Never>) {
            let stream = try await application.far.open([])
            let incoming = try #require(await application.near.incoming.makeAsyncIterator().next())
            await stream.finish()
            let (service, tree, near) = (service, tree, origin.near)
            let path = try file.map { try EntryPath(Array($0.utf8)) } ?? .root
            let range = FileRange(bytes: range, path: path, version: version)
            return (
                stream,
                Task {
                    do throws(HandoffError) {
                        let description = DocumentDescription(tree: tree, version: tree.version)
                        try await service.read(
                            range, of: description, from: near, claim: ClaimID(), to: incoming.stream)
                    } catch {
                        await incoming.stream.fail(error)
                    }
                }
            )
        }

        func response(of stream: BatonTransport.Stream) async throws -> WireResponse.OneOf_Kind? {
            let response = try await WireResponse(serializedBytes: stream.response()).kind
            if case .failure(let failure)? = response { throw HandoffError(failure) }
            return response
        }

        /// An honest origin, save for one byte.
        private static func answer(
            _ incoming: IncomingStream, _ content: Data, _ layout: ChunkLayout, damage: Int?
        ) async throws {
            guard case .documentRanges(let request) = try WireRequest.decode(incoming.request),
                let range = request.ranges.first, request.ranges.count == 1, range.count != 0, request.preview
            else { return await incoming.stream.reset(.refused) }
            guard range.first + range.count <= layout.chunkCount else {
                return await incoming.stream.fail(HandoffError(.invalidRequest, "no such range"))
            }
            try await incoming.stream.respond(.documentRanges(.with { $0.chunkSize = UInt32(ChunkLayout.chunkSize) }))
            for chunk in range.first..<range.first + range.count {
                let start = Int(layout.offset(of: chunk))
                var bytes = [UInt8](content[start..<start + layout.size(of: chunk)])
                let checksum = bytes.withUnsafeBytes { ChunkChecksum(of: $0) }
                if let damage, (start..<start + bytes.count).contains(damage) { bytes[damage - start] ^= 1 }
                bytes = [0, 0] + bytes
                withUnsafeBytes(of: checksum.high.bigEndian) { bytes += $0 }
                withUnsafeBytes(of: checksum.low.bigEndian) { bytes += $0 }
                try await incoming.stream.write(Buffer(copying: bytes))
            }
            await incoming.stream.finish()
        }
    }

    @Test("Any range is exactly what the document has there")
    func ranges() async throws {
        let seed: UInt64 = 71
        let size = 3 * ChunkLayout.chunkSize + 12_345
        let scene = try await Scene(bytes: size, seed: seed)
        var generator = SeededGenerator(seed: seed)
        let chunk = UInt64(ChunkLayout.chunkSize)
        let end = UInt64(size)
        var ranges: [Range<UInt64>] = [
            0..<0, 0..<1, 0..<end, chunk - 1..<chunk + 1, chunk..<2 * chunk, end - 1..<end, end..<end + 5, end..<end,
            end - 65_536..<end + 65_536, 7 * chunk..<8 * chunk, 0..<UInt64.max, chunk..<chunk,
        ]
        for _ in 0..<20 {
            let start = UInt64.random(in: 0..<end, using: &generator)
            ranges.append(start..<UInt64.random(in: start...end + 1000, using: &generator))
        }
        for range in ranges {
            let clamped = range.clamped(to: 0..<end)
            let expected = scene.content[Int(clamped.lowerBound)..<Int(clamped.upperBound)]
            #expect(try await scene.read(range) == expected, "\(range), seed \(seed)")
        }
        #expect(scene.service.pool.lentCount == 0)
        await scene.close()
    }

    @Test("Bytes that belong together are of one version, or an error says that there is another")
    func versions() async throws {
        let scene = try await Scene(bytes: 10, seed: 79, version: FileVersion(high: 1, low: 2))
        func read(version: FileVersion?) async throws -> FileVersion? {
            let (stream, serving) = try await scene.open(0..<10, version: version)
            defer { serving.cancel() }
            guard case .documentRead(let answer) = try await scene.response(of: stream) else { return nil }
            while try await stream.read() != nil {}
            await serving.value
            return FileVersion(bytes: answer.version)
        }
        let version = try #require(try await read(version: nil))
        #expect(try await read(version: version) == version)
        let error = await #expect(throws: HandoffError.self) {
            _ = try await read(version: FileVersion(high: 3, low: 4))
        }
        #expect(error?.code == .documentChanged)
        await scene.close()
    }

    @Test("Any range of any file in a folder is exactly what the file has there")
    func folders() async throws {
        let seed: UInt64 = 75
        let chunk = ChunkLayout.chunkSize
        let files = [("a", chunk + 5), ("b/empty", 0), ("b/large", 2 * chunk + 7), ("b/small", 3), ("c", 0)]
        let scene = try await Scene(
            bytes: files.reduce(0) { $0 + $1.1 }, seed: seed, files: files.map { (path: $0.0, size: $0.1) })
        var start = 0
        for (path, size) in files {
            let content = scene.content[start..<start + size]
            start += size
            for range in [
                0..<1, 2..<3, 0..<size, size - 1..<size + 9, chunk - 1..<chunk + 3, size..<size, chunk..<9 * chunk,
            ]
            where range.lowerBound >= 0 {
                let here = range.clamped(to: 0..<size)
                let expected = Data(content.dropFirst(here.lowerBound).prefix(here.count))
                let wanted = UInt64(range.lowerBound)..<UInt64(range.upperBound)
                #expect(try await scene.read(wanted, file: path) == expected, "\(path), \(range)")
            }
        }
        for path in ["b", "b/nothing", "big", nil] {
            let error = await #expect(throws: HandoffError.self) { try await scene.read(0..<1, file: path) }
            #expect(error?.code == .invalidRequest, "\(path ?? "the folder itself")")
            // Bytes of it were read before, so that it was a file of the document.
            let changed = await #expect(throws: HandoffError.self) {
                try await scene.read(0..<1, file: path, version: FileVersion(high: 1, low: 2))
            }
            #expect(changed?.code == .documentChanged, "\(path ?? "the folder itself")")
        }
        #expect(scene.service.pool.lentCount == 0)
        await scene.close()
    }

    @Test("An origin that has described the document anew since refuses chunks that are elsewhere there, or nowhere")
    func otherDescription() throws {
        func description(_ files: [(String, UInt64, version: UInt64)]) throws -> DocumentDescription {
            var builder = DocumentTree.Builder(try DocumentLabel(Array("big".utf8)))
            try builder.append(DocumentEntry(path: .root, kind: .folder))
            for (name, size, version) in files {
                let file = DocumentEntry.File(size: size << 20, version: FileVersion(high: 1, low: version))
                try builder.append(DocumentEntry(path: EntryPath(Array(name.utf8)), kind: .file(file)))
            }
            let tree = try builder.finish()
            return DocumentDescription(tree: tree, version: tree.version)
        }
        let described = try description([("a", 1, version: 1), ("b", 3, version: 2)])
        func part(_ bytes: Range<UInt64>, of description: DocumentDescription) throws -> DocumentPart {
            try DocumentPart(FileRange(bytes: bytes, path: EntryPath(Array("b".utf8))), of: description)
        }
        let part = try part(10..<2 << 20 | 5, of: described)
        func request() -> WireDocumentRangesRequest {
            .with {
                $0.preview = true
                $0.version = Data(part.description.version.bytes)
                $0.ranges = [WireChunkRange(part.chunks)]
            }
        }
        #expect(part.chunks == 1..<4)
        try DocumentService.requireVersion(of: request(), in: described.tree)
        let grown = try description([("a", 2, version: 3), ("b", 3, version: 2)])
        for now in [grown, try description([("b", 3, version: 2)]), try description([])] {
            let error = #expect(throws: HandoffError.self) {
                try DocumentService.requireVersion(of: request(), in: now.tree)
            }
            #expect(error?.code == .documentChanged)
        }
    }

    @Test("Of a damaged chunk nothing reaches the application, and what came before it does")
    func damaged() async throws {
        let chunk = UInt64(ChunkLayout.chunkSize)
        let scene = try await Scene(bytes: 3 << 20, seed: 72, damage: 1 << 20)
        #expect(try await scene.read(0..<chunk).count == Int(chunk))
        #expect(try await scene.read(2 * chunk..<3 * chunk).count == Int(chunk))
        let (stream, serving) = try await scene.open(chunk - 10..<3 * chunk)
        _ = try await scene.response(of: stream)
        var read = Data()
        let error = await #expect(throws: TransportError.self) {
            while let buffer = try await stream.read() { buffer.withBytes { read.append(contentsOf: $0) } }
        }
        #expect(error?.code == .reset(.internalError))
        #expect(read.count <= 10)
        await serving.value
        #expect(scene.service.pool.lentCount == 0)
        await scene.close()
    }

    @Test("An application that reads nothing stops the origin, holds one buffer, and frees it when it goes")
    func backPressure() async throws {
        let scene = try await Scene(bytes: 16 << 20, seed: 73)
        var (stream, serving): (BatonTransport.Stream?, _) = try await scene.open(0..<16 << 20)
        _ = try await scene.response(of: try #require(stream))
        try await eventually("a buffer is filled") { scene.service.pool.lentCount == 1 }
        for _ in 0..<20 {
            try await Task.sleep(for: .milliseconds(10))
            #expect(scene.service.pool.lentCount == 1)
        }
        await stream?.reset(.cancelled)
        stream = nil
        await serving.value
        #expect(scene.service.pool.lentCount == 0)
        await scene.close()
    }

    @Test("Documents of this device are read with one buffer each: no read waits for what others hold while they wait")
    func oneBuffer() async throws {
        let scene = try await Scene(bytes: 3 << 20, seed: 76, pool: BufferPool(budget: ChunkRecord.capacity))
        #expect(scene.service.pool.limit == 1)
        var opened: [(BatonTransport.Stream, Task<Void, Never>)] = []
        for _ in 0..<2 { opened.append(try await scene.open(0..<3 << 20)) }
        defer { for (_, serving) in opened { serving.cancel() } }
        let reading = opened.map { opened in Task { try await scene.content(of: opened) } }
        for task in reading {
            let read = try await withDeadline(.seconds(30), "it was not read") { try await task.valueUnlessCancelled }
            #expect(read == scene.content)
        }
        #expect(scene.service.pool.lentCount == 0)
        await scene.close()
    }

    @Test("Who waits behind a place that is taken gets it in order; one more is refused")
    func queue() async throws {
        let bound = 8
        let queue = WaitingLine(places: 1, waiting: bound)
        #expect(await queue.enter())
        let (turns, turn) = AsyncStream<Int>.makeStream()
        var waiting: [Task<Void, any Error>] = []
        for number in 0..<bound {
            waiting.append(
                Task {
                    #expect(await queue.enter())
                    turn.yield(number)
                    await queue.leave()
                })
            try await eventually("it waits") { await queue.waiting.count == number + 1 }
        }
        #expect(await !queue.enter())
        await queue.leave()
        for task in waiting { try await task.value }
        turn.finish()
        var order: [Int] = []
        for await number in turns { order.append(number) }
        #expect(order == Array(0..<bound))
        #expect(await queue.isIdle)
        #expect(await queue.enter())
        await queue.leave()
    }
}
