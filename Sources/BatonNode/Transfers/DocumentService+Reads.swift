// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf
import SystemPackage

/// Serves single ranges of documents to the applications that continue them.
///
/// At most one chunk of each is here at a time, in a buffer of the pool that all reads share. An application that
/// does not read stops the origin.
extension DocumentService {
    /// Sends bytes of a document that is on this device.
    ///
    /// - Parameter path: of the document.
    func read(
        _ range: FileRange, ofDocumentAt path: FilePath, to stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        let document = range.path.isRoot ? try await scan(path) : try await scan(range, in: path)
        // Of a folder one file was looked at, which is the document then.
        let part = try DocumentPart(
            FileRange(bytes: range.bytes, version: range.version), of: DocumentDescription(tree: document.tree))
        let reader = try await withHandoffErrors { try await DocumentReader.open(document, ranges: [part.chunks]) }
        try await stream.respond(.documentRead(part.response))
        do {
            try await withStallWatch(stallDeadline) { watch in
                let step = ChunkLayout.chunkSize
                for start in stride(from: part.range.lowerBound, to: part.range.upperBound, by: step) {
                    // One at a time: were each read to wait for a second, all could hold what all of them wait for.
                    let buffer = try await acquire(within: watch)
                    defer { readPool.release(buffer) }
                    let end = min(start + UInt64(step), part.range.upperBound)
                    try await reader.readContent(start..<end, into: buffer)
                    try await hand(buffer, to: stream, within: watch)
                }
            }
            await stream.finish()
        } catch {
            await stream.reset(HandoffError(documentCause: error).resetCode)
        }
        await reader.close()
    }

    /// Looks at the file that is wanted of a folder of this device.
    private func scan(_ range: FileRange, in folder: FilePath) async throws(HandoffError) -> ScannedDocument {
        do {
            return try await scan(range.path, in: folder)
        } catch {
            // Bytes of it were read before: it was there.
            guard error.code == .invalidRequest, range.version != nil else { throw error }
            throw HandoffError(.documentChanged, "\(error.message) any more: read it anew")
        }
    }

    /// Describes a document anew that is another one at its origin than it was described as.
    typealias DescribingAnew = @Sendable (DocumentDescription) async throws(HandoffError) -> DocumentDescription

    /// Sends bytes of a claimed document that its origin is asked for, which are verified first.
    ///
    /// - Parameters:
    ///   - description: what the origin described it as.
    ///   - describe: called if it is another one there now, and nothing of it was told yet.
    /// - Throws: what failed, also if the stream had been answered: it is aborted then.
    func read(
        _ range: FileRange, of description: DocumentDescription, from connection: Connection, claim: ClaimID,
        to stream: BatonTransport.Stream, describingAnew describe: DescribingAnew
    ) async throws(HandoffError) {
        var part = try DocumentPart(range, of: description)
        var origin: BatonTransport.Stream?
        var descriptions = 0
        while origin == nil, !part.chunks.isEmpty {
            do {
                origin = try await request(part, from: connection, claim: claim)
            } catch {
                descriptions += 1
                guard error.code == .documentChanged, descriptions <= Self.descriptionsOfRead else { throw error }
                part = try DocumentPart(range, of: try await describe(part.description))
            }
        }
        do {
            try await stream.respond(.documentRead(part.response))
            while let asked = origin {
                let rest = part
                let count = try await withStallWatch(stallDeadline) {
                    try await relay(rest, from: asked, to: stream, within: $0)
                }
                part.removeFirst(count)
                origin = part.chunks.isEmpty ? nil : try await request(part, from: connection, claim: claim)
            }
            await stream.finish()
        } catch {
            await origin?.reset(.cancelled)
            let failure = HandoffError(documentCause: error)
            await stream.reset(failure.resetCode)
            throw failure
        }
    }

    private func request(
        _ part: DocumentPart, from connection: Connection, claim: ClaimID
    ) async throws(HandoffError) -> BatonTransport.Stream {
        let origin = try await requestRanges(
            .with {
                $0.claimID = Data(claim.bytes)
                $0.ranges = [WireChunkRange(part.chunks)]
                $0.preview = true
                if part.description.version != .none { $0.version = Data(part.description.version.bytes) }
            }, open: 1, from: connection)
        await origin.finish()
        return origin
    }

    private var readPool: BufferPool { reads ?? pool }

    /// Takes a buffer; one that comes too late goes back.
    private func acquire(within watch: StallWatch) async throws(HandoffError) -> Buffer {
        var acquired: Buffer?
        do throws(HandoffError) {
            return try await watch.bound("others read documents, and no room came") {
                let buffer = try await readPool.acquire()
                acquired = buffer
                return buffer
            }
        } catch {
            if let acquired { readPool.release(acquired) }
            throw error
        }
    }

    /// Hands on what was asked for of each chunk once its checksum has come.
    ///
    /// - Returns: how many chunks: fewer than were asked for where the application took so long that the origin was
    ///   left.
    private func relay(
        _ part: DocumentPart, from origin: BatonTransport.Stream, to stream: BatonTransport.Stream,
        within watch: StallWatch
    ) async throws -> UInt64 {
        var verifier = try part.verifier()
        // Not before something has come: origins that answer and then hang would hold all that there are.
        var chunk: Buffer?
        defer { if let chunk { readPool.release(chunk) } }
        var spent: Buffer?
        var (count, start) = (0, Instant.now)
        var isLeft = false
        while !verifier.isComplete, !isLeft {
            let last = spent
            guard
                let received = try await watch.bound(
                    "nothing more of the document came", { try await origin.read(reusing: last) })
            else {
                try verifier.finish()
                break
            }
            spent = received
            count += received.count
            if Instant.now - start >= stallDeadline {
                // An origin that sends slowly holds a buffer that others wait for.
                guard count >= leastProgress else {
                    throw HandoffError(.timedOut, "only \(count) bytes of the document came in \(stallDeadline)")
                }
                (count, start) = (0, .now)
            }
            let buffer: Buffer
            if let chunk {
                buffer = chunk
            } else {
                buffer = try await acquire(within: watch)
                chunk = buffer
                verifier.room = buffer
                // That nobody had one to give is not for the origin to answer for.
                start = .now
            }
            isLeft = try await hand(
                received, of: part, from: origin, through: &verifier, by: buffer, to: stream, within: watch)
        }
        return verifier.verifiedChunkCount
    }

    /// Takes records apart, and hands on what is wanted of each chunk that was verified.
    ///
    /// - Parameter buffer: the verifier's room, for what is wanted of a chunk as well.
    /// - Returns: whether the origin was left, with what had come behind the last chunk that was handed on.
    private func hand(
        _ records: Buffer, of part: DocumentPart, from origin: BatonTransport.Stream,
        through verifier: inout ChunkVerifier, by buffer: Buffer, to stream: BatonTransport.Stream,
        within watch: StallWatch
    ) async throws -> Bool {
        var taken = 0
        while taken < records.count {
            let before = verifier.verifiedChunkCount
            taken += try records.withBytes { (bytes) throws(DocumentError) in
                try verifier.receiveRecord(UnsafeRawBufferPointer(rebasing: bytes[taken...])) {
                    (chunk) throws(DocumentError) in part.keep(chunk, in: buffer)
                }
            }
            guard verifier.verifiedChunkCount > before else { continue }
            let patience = part.isVersioned && !verifier.isComplete ? Self.readPatience : nil
            let isLeft = try await leaving(origin, after: patience) { () async throws(HandoffError) in
                try await hand(buffer, to: stream, within: watch)
            }
            buffer.count = 0
            if isLeft { return true }
        }
        return false
    }

    /// Leaves the origin where something takes longer than its patience: the place there is wanted by others.
    ///
    /// - Returns: whether it was left.
    private func leaving(
        _ origin: BatonTransport.Stream, after patience: Duration?,
        _ body: () async throws(HandoffError) -> Void
    ) async throws(HandoffError) -> Bool {
        guard let patience else {
            try await body()
            return false
        }
        let isLeft = Lock(false)
        do {
            async let _: Void = {
                guard (try? await Alarm.sleep(for: patience)) != nil else { return }
                await origin.reset(.cancelled)
                isLeft.withLock { $0 = true }
            }()
            try await body()
        }
        return isLeft.withLock { $0 }
    }

    /// Writes a buffer, and waits until it can be filled again.
    private func hand(
        _ buffer: Buffer, to stream: BatonTransport.Stream, within watch: StallWatch
    ) async throws(HandoffError) {
        do throws(HandoffError) {
            let queued = try await watch.bound("the application did not read") {
                try await stream.write(buffer, queueBound: 0)
            }
            guard queued == 0 else { throw HandoffError(documentCause: CancellationError()) }
        } catch {
            // Drops what is queued, which nobody may fill before.
            await stream.reset(error.resetCode)
            throw error
        }
    }
}

/// Bytes of one file of a document.
struct FileRange: Sendable {
    /// Which bytes; what the file does not have is left out.
    var bytes: Range<UInt64>
    /// Which file of a folder; the root is a document that is one file.
    var path = EntryPath.root
    /// The version that earlier bytes were read of; `nil`, the default, accepts any.
    var version: FileVersion?
}

/// Bytes of a document that an application wants, and the chunks that hold them.
struct DocumentPart: Sendable {
    /// What the document is.
    let description: DocumentDescription
    /// Cut to what the file has, among the bytes of the document.
    let range: Range<UInt64>
    private(set) var chunks: Range<UInt64>
    /// Of the file.
    let version: FileVersion

    /// - Throws: `invalidRequest` for a folder and for a file that the document has not;
    ///   `documentChanged` for another version than is wanted, also if the file is gone.
    init(_ wanted: FileRange, of description: DocumentDescription) throws(HandoffError) {
        let tree = description.tree
        guard let file = tree.file(at: wanted.path) else {
            guard wanted.version == nil else { throw Self.hasChanged(tree) }
            throw HandoffError(
                .invalidRequest,
                wanted.path.isRoot
                    ? "a folder has no bytes of its own: name a file that is in it"
                    : "“\(tree.label)” has no file “\(wanted.path)”")
        }
        let whole = tree.layout.bytes(ofFile: file)
        let bytes = wanted.bytes.clamped(to: 0..<UInt64(whole.count))
        self.description = description
        version = tree.entry(ofFile: file).file?.version ?? .none
        guard wanted.version == nil || wanted.version == version else { throw Self.hasChanged(tree) }
        range = whole.lowerBound + bytes.lowerBound..<whole.lowerBound + bytes.upperBound
        chunks = tree.layout.chunks(covering: range)
    }

    private var tree: DocumentTree { description.tree }

    /// Of one version is only what says which: else all has to be asked for at once.
    fileprivate var isVersioned: Bool { version != .none && description.version != .none }

    fileprivate static func hasChanged(_ tree: DocumentTree) -> HandoffError {
        HandoffError(.documentChanged, "“\(tree.label)” has changed since what stands before was read: read it anew")
    }

    /// The first chunks have been handed on.
    mutating func removeFirst(_ count: UInt64) {
        chunks = chunks.lowerBound + count..<chunks.upperBound
    }

    /// The answer to the application before the bytes.
    fileprivate var response: WireDocumentReadResponse {
        .with { if version != .none { $0.version = Data(version.bytes) } }
    }

    /// Which bytes of a chunk are wanted, counted from its start.
    func bytes(of chunk: UInt64) -> Range<Int> {
        let start = tree.layout.offset(of: chunk)
        let wanted = range.clamped(to: start..<tree.layout.offset(of: chunk + 1))
        return Int(wanted.lowerBound - start)..<Int(wanted.upperBound - start)
    }

    /// A verifier of the chunks' checksums.
    fileprivate func verifier() throws(DocumentError) -> ChunkVerifier {
        guard let verifier = ChunkVerifier(layout: tree.layout, ranges: [chunks], label: tree.label) else {
            throw DocumentError(.badRange, tree.label.description)
        }
        return verifier
    }

    /// Keeps what is wanted of a chunk's content, which may be in the same buffer.
    fileprivate func keep(_ chunk: ChunkVerifier.Chunk, in buffer: Buffer) {
        let wanted = bytes(of: chunk.number)
        guard let content = chunk.content else {
            UnsafeMutableRawBufferPointer(rebasing: buffer.writable[..<wanted.count])
                .initializeMemory(as: UInt8.self, repeating: 0)
            buffer.count = wanted.count
            return
        }
        _ = buffer.append(UnsafeRawBufferPointer(rebasing: content[wanted]))
    }
}

extension HandoffError {
    /// The code that a stream is aborted with once it was answered.
    var resetCode: ApplicationErrorCode {
        switch code {
        case .documentChanged: .sourceChanged
        case .timedOut: .timeout
        case .limitExceeded: .limitExceeded
        case .cancelled: .cancelled
        case .refused: .refused
        default: .internalError
        }
    }
}
