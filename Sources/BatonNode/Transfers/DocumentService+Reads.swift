// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// Serves single ranges of documents to the applications that continue them.
///
/// At most one chunk of each is here at a time, in a buffer of the pool that all reads share. An application that
/// does not read stops the origin.
extension DocumentService {
    /// Sends bytes of a claimed document that its origin is asked for, which are verified first.
    ///
    /// - Parameter description: what the origin described it as.
    /// - Throws: what failed, also if the stream had been answered: it is aborted then.
    func read(
        _ range: FileRange, of description: DocumentDescription, from connection: Connection, claim: ClaimID,
        to stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        let part = try DocumentPart(range, of: description)
        let origin = part.chunks.isEmpty ? nil : try await request(part, from: connection, claim: claim)
        do {
            try await stream.respond(.documentRead(part.response))
            if let origin {
                try await withStallWatch(stallDeadline) { try await relay(part, from: origin, to: stream, within: $0) }
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
    private func relay(
        _ part: DocumentPart, from origin: BatonTransport.Stream, to stream: BatonTransport.Stream,
        within watch: StallWatch
    ) async throws {
        var verifier = try part.verifier()
        // Not before something has come: origins that answer and then hang would hold all that there are.
        var chunk: Buffer?
        defer { if let chunk { readPool.release(chunk) } }
        var spent: Buffer?
        var (count, start) = (0, Instant.now)
        while !verifier.isComplete {
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
            try await hand(received, of: part, through: &verifier, by: buffer, to: stream, within: watch)
        }
    }

    /// Takes records apart, and hands on what is wanted of each chunk that was verified.
    ///
    /// - Parameter buffer: the verifier's room, for what is wanted of a chunk as well.
    private func hand(
        _ records: Buffer, of part: DocumentPart, through verifier: inout ChunkVerifier, by buffer: Buffer,
        to stream: BatonTransport.Stream, within watch: StallWatch
    ) async throws {
        var taken = 0
        while taken < records.count {
            let before = verifier.verifiedChunkCount
            taken += try records.withBytes { (bytes) throws(DocumentError) in
                try verifier.receiveRecord(UnsafeRawBufferPointer(rebasing: bytes[taken...])) {
                    (chunk) throws(DocumentError) in part.keep(chunk, in: buffer)
                }
            }
            guard verifier.verifiedChunkCount > before else { continue }
            try await hand(buffer, to: stream, within: watch)
            buffer.count = 0
        }
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
    let chunks: Range<UInt64>
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

    fileprivate static func hasChanged(_ tree: DocumentTree) -> HandoffError {
        HandoffError(.documentChanged, "“\(tree.label)” has changed since what stands before was read: read it anew")
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
