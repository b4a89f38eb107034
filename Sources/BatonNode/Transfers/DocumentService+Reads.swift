import BatonDocuments
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf
import SystemPackage

/// Serves single ranges of documents to the applications that continue them.
///
/// At most one chunk of each is here at a time, in a buffer of the pool that all documents share, and what an application
/// does not read stops the origin.
extension DocumentService {
    /// Sends bytes of a file of this device.
    ///
    /// - Parameter range: what the file does not have is left out.
    func read(
        _ range: Range<UInt64>, ofFileAt path: FilePath, to stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        let source = try await inspect(path)
        let part = try DocumentPart(range, ofSize: source.size)
        let reader: DocumentReader
        do {
            reader = try await DocumentReader.open(source, chunks: part.chunks, pool: pool)
        } catch {
            throw HandoffError(error)
        }
        try await stream.respond(.documentRead(.init()))
        do {
            for chunk in part.chunks {
                guard let buffer = try await reader.next() else { break }
                defer { pool.release(buffer) }
                buffer.keep(part.bytes(of: chunk))
                try await hand(buffer, to: stream)
            }
            await stream.finish()
        } catch {
            await stream.reset(HandoffError(documentCause: error).resetCode)
        }
        await reader.close()
    }

    /// Sends bytes of a claimed document that its origin is asked for, which are verified first.
    ///
    /// - Parameters:
    ///   - range: what the document does not have is left out.
    ///   - entry: what the origin described it as.
    func read(
        _ range: Range<UInt64>, of entry: WireDocumentEntry, from connection: Connection, claim: ClaimID,
        to stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        let part = try DocumentPart(range, ofSize: entry.size)
        guard !part.chunks.isEmpty else {
            try await stream.respond(.documentRead(.init()))
            return await stream.finish()
        }
        let whole = part.wholeChunks
        // A length of 0 would be the transfer to the end.
        let origin = try await requestRange(
            .with {
                $0.offset = whole.lowerBound
                $0.length = whole.upperBound - whole.lowerBound
            }, from: connection, claim: claim)
        do {
            try await stream.respond(.documentRead(.init()))
            try await relay(part, of: entry, from: origin, to: stream)
            await stream.finish()
        } catch {
            await origin.reset(.cancelled)
            await stream.reset(HandoffError(documentCause: error).resetCode)
        }
    }

    /// Takes records apart, and hands on what was asked for of each chunk once its checksum has come.
    private func relay(
        _ part: DocumentPart, of entry: WireDocumentEntry, from origin: BatonTransport.Stream,
        to stream: BatonTransport.Stream
    ) async throws {
        let label = try DocumentLabel(entry.name)
        guard var verifier = ChunkVerifier(layout: part.layout, chunks: part.chunks, label: label) else {
            throw HandoffError(.internal, "the document is larger than any file")
        }
        let buffer = try await pool.acquire()
        defer { pool.release(buffer) }
        var chunk = part.chunks.lowerBound
        var recordRest = part.layout.size(of: chunk) + ChunkLayout.checksumSize
        var spent: Buffer?
        while !verifier.isComplete {
            let last = spent
            guard
                let received = try await withDeadline(
                    stallDeadline, "nothing more of the document came", { try await origin.read(reusing: last) })
            else { return try verifier.finish() }
            spent = received
            var taken = 0
            while taken < received.count {
                guard !verifier.isComplete else { throw DocumentError(.excess, label.description) }
                let piece = min(recordRest, received.count - taken)
                let wanted = part.bytes(of: chunk)
                let chunkStart = part.layout.offset(of: chunk)
                try received.withBytes { (bytes) throws(DocumentError) in
                    let slice = UnsafeRawBufferPointer(rebasing: bytes[taken..<taken + piece])
                    try verifier.receive(slice) { (event) throws(DocumentError) in
                        guard case .content(let offset, let content) = event else { return }
                        let start = Int(offset - chunkStart)
                        let kept = wanted.clamped(to: start..<start + content.count)
                        let part = content[kept.lowerBound - start..<kept.upperBound - start]
                        _ = buffer.append(UnsafeRawBufferPointer(rebasing: part))
                    }
                }
                taken += piece
                recordRest -= piece
                guard recordRest == 0 else { continue }
                try await hand(buffer, to: stream)
                buffer.count = 0
                chunk += 1
                if chunk < part.chunks.upperBound {
                    recordRest = part.layout.size(of: chunk) + ChunkLayout.checksumSize
                }
            }
        }
    }

    /// Writes a buffer, and waits until it can be filled again.
    private func hand(_ buffer: Buffer, to stream: BatonTransport.Stream) async throws(HandoffError) {
        do {
            try await withDeadline(stallDeadline, "the application did not read") {
                _ = try await stream.write(buffer, queueBound: 0)
            }
        } catch {
            // Drops what is queued, which nobody may fill before.
            await stream.reset(error.resetCode)
            throw error
        }
    }
}

/// Bytes of a document that an application wants, and the chunks that hold them.
struct DocumentPart: Sendable, Hashable {
    let layout: ChunkLayout
    /// Cut to what the document has.
    let range: Range<UInt64>
    let chunks: Range<UInt64>

    /// - Throws: `internal` for a size that no file can have.
    init(_ range: Range<UInt64>, ofSize size: UInt64) throws(HandoffError) {
        guard let layout = ChunkLayout(documentSize: size) else {
            throw HandoffError(.internal, "the document is larger than any file")
        }
        self.layout = layout
        self.range = range.clamped(to: 0..<size)
        chunks = layout.chunks(covering: self.range)
    }

    /// The bytes of all its chunks.
    var wholeChunks: Range<UInt64> { layout.offset(of: chunks.lowerBound)..<layout.offset(of: chunks.upperBound) }

    /// Which bytes of a chunk are wanted, counted from its start.
    func bytes(of chunk: UInt64) -> Range<Int> {
        let start = layout.offset(of: chunk)
        let wanted = range.clamped(to: start..<layout.offset(of: chunk + 1))
        return Int(wanted.lowerBound - start)..<Int(wanted.upperBound - start)
    }
}

extension Buffer {
    /// Keeps these bytes alone.
    fileprivate func keep(_ range: Range<Int>) {
        let bytes = writable
        UnsafeMutableRawBufferPointer(rebasing: bytes[..<range.count])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[range]))
        count = range.count
    }
}

extension HandoffError {
    /// What any error means that ended a document's way.
    fileprivate init(documentCause error: any Error) {
        if let error = error as? DocumentError { self.init(error) } else { self.init(wrapping: error) }
    }
}

extension HandoffError {
    /// What can still be told of it once a stream was answered.
    fileprivate var resetCode: ApplicationErrorCode {
        switch code {
        case .documentChanged: .sourceChanged
        case .timedOut: .timeout
        case .limitExceeded: .limitExceeded
        case .cancelled: .cancelled
        case .refused: .refused
        case .unspecified, .internal, .unsupported, .invalidRequest, .noSuchActivity, .ambiguousActivity, .claimHeld,
            .noSuchClaim, .peerUnreachable, .streamsUnsupported, .userInfoTooLarge, .documentUnreadable,
            .destinationExists, .destinationUnwritable, .destinationFull, .corrupted, .connectionLost,
            .applicationGone, .nodeStopping, .versionUnreadable, .applicationNotStarted, .handoffOff, .accessRefused,
            .notHandled, .UNRECOGNIZED:
            .internalError
        }
    }
}
