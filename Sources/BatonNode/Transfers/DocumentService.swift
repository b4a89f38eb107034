import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf
import SystemPackage

/// Sends and fetches documents over streams: what joins reader and writer with the protocol.
struct DocumentService: Sendable {
    /// Progress is told this often.
    private static let progressInterval = Duration.milliseconds(200)
    /// How long the other side may take to answer.
    private static let answerDeadline = Duration.seconds(15)

    let offers: Offers
    let pool: BufferPool
    let ledger: PartFileLedger
    let limit: TransferLimit
    /// See ``NodeLimits/stallDeadline``.
    var stallDeadline = NodeLimits().stallDeadline
    /// See ``NodeLimits/leastProgress``.
    var leastProgress = NodeLimits().leastProgress

    // MARK: Origin

    /// Answers what a claimed activity's document consists of, as it is now.
    func manifest(
        of claimID: ClaimID, for device: PeerName, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        let activity = try await offers.claim(claimID, of: device).activity
        // The other device is told the title, and not in which folder of this one the document is.
        let source = try await inspect(document(of: activity).path, calledInErrors: activity.title)
        await offers.setDocument(source, of: claimID)
        try await stream.respond(
            .documentManifest(
                .with {
                    $0.entries = 1
                    $0.totalSize = source.size
                }))
        try await stream.send(
            record: WireDocumentEntry.with {
                $0.name = Data(source.label.bytes)
                $0.size = source.size
                $0.executable = source.permissions & 0o111 != 0
            })
        await stream.finish()
    }

    /// Sends ranges of a claimed document.
    func send(
        _ request: WireDocumentRangesRequest, of claimID: ClaimID, to device: PeerName,
        on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        let claim = try await offers.claim(claimID, of: device)
        guard let source = claim.document else {
            throw HandoffError(.invalidRequest, "the document's manifest has to be asked for first")
        }
        let chunks = try Self.chunks(of: request, in: source)
        // To the end, a range is the transfer; any other is what an application looks at meanwhile.
        let isTransfer = request.ranges.first?.length == 0
        try await limit.begin(for: device)
        do {
            try await send(chunks, of: source, for: claim, claimID, isTransfer: isTransfer, on: stream)
            await limit.end(for: device)
        } catch {
            await limit.end(for: device)
            throw error
        }
        if pool.lentCount == 0 { pool.trim() }
    }

    private func send(
        _ chunks: Range<UInt64>, of source: DocumentSource, for claim: Claim, _ claimID: ClaimID, isTransfer: Bool,
        on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        let reader: DocumentReader
        do {
            reader = try await DocumentReader.open(source, chunks: chunks, pool: pool)
        } catch {
            throw HandoffError(error)
        }
        try await stream.respond(.documentRanges(.with { $0.chunkSize = UInt32(ChunkLayout.chunkSize) }))
        do {
            try await pump(reader, to: stream) { bytes in
                guard isTransfer else { return }
                await offers.report(
                    .progress(
                        .with {
                            $0.bytes = bytes
                            $0.total = source.size
                            $0.device = claim.device.name
                        }), of: claim.activity.id)
            }
        } catch {
            await reader.close()
            if isTransfer { await offers.fail(claimID, by: claim.device, with: error) }
            await stream.reset(error.code == .documentChanged ? .sourceChanged : .internalError)
        }
    }

    /// Hands chunk after chunk to the stream while the disk reads the next.
    private func pump(
        _ reader: DocumentReader, to stream: BatonTransport.Stream, progress: @Sendable (UInt64) async -> Void
    ) async throws(HandoffError) {
        var lent: [Buffer] = []
        var lentBytes = 0
        var sent: UInt64 = 0
        var lastReport = Instant.now
        defer { for buffer in lent { pool.release(buffer) } }
        do {
            while let buffer = try await reader.next() {
                sent += UInt64(buffer.count - ChunkLayout.checksumSize)
                lent.append(buffer)
                lentBytes += buffer.count
                let queued = try await withDeadline(stallDeadline, "the other side did not read") {
                    try await stream.write(buffer)
                }
                while let first = lent.first, lentBytes - first.count >= queued {
                    lentBytes -= first.count
                    pool.release(lent.removeFirst())
                }
                if Instant.now - lastReport >= Self.progressInterval {
                    lastReport = .now
                    await progress(sent)
                }
            }
            try await withDeadline(stallDeadline, "the other side did not read") { try await stream.drained() }
            await progress(sent)
            await stream.finish()
        } catch let error as DocumentError {
            throw HandoffError(error)
        } catch {
            throw HandoffError(wrapping: error)
        }
    }

    private func document(of activity: OfferedActivity) throws(HandoffError) -> DocumentSource {
        guard let document = activity.document else {
            throw HandoffError(.invalidRequest, "the activity “\(activity.title)” has no document")
        }
        return document
    }

    /// One entry, and one range that begins with a chunk: more comes with folders.
    private static func chunks(
        of request: WireDocumentRangesRequest, in source: DocumentSource
    ) throws(HandoffError) -> Range<UInt64> {
        guard let range = request.ranges.first, request.ranges.count == 1, range.entry == 0,
            let layout = ChunkLayout(documentSize: source.size)
        else { throw HandoffError(.invalidRequest, "one range of entry 0 has to be asked for") }
        let chunkSize = UInt64(ChunkLayout.chunkSize)
        let end = range.length == 0 ? source.size : range.offset.addingReportingOverflow(range.length).partialValue
        guard range.offset % chunkSize == 0, range.offset <= end, end <= source.size,
            end == source.size || end % chunkSize == 0
        else { throw HandoffError(.invalidRequest, "the document has no such range of whole chunks") }
        let upper = end == source.size ? layout.chunkCount : end / chunkSize
        return min(range.offset / chunkSize, upper)..<upper
    }

    /// Looks at a file on a thread that may block.
    ///
    /// - Parameter name: what an error calls the document, its path if `nil`.
    func inspect(_ path: FilePath, calledInErrors name: String? = nil) async throws(HandoffError) -> DocumentSource {
        do {
            return try await DocumentInspector().inspect(path)
        } catch let error as DocumentError {
            throw HandoffError(
                DocumentError(error.code, name ?? error.subject, underlyingError: error.underlyingError))
        } catch {
            throw HandoffError(.limitExceeded, "the system has no thread to give: \(error)")
        }
    }

    // MARK: Continuing side

    /// Opens the folder that a document is to go to, before the other device hears of anything.
    func openDestination(_ path: FilePath) async throws(HandoffError) -> DestinationFolder {
        do {
            return try await DestinationFolder.open(path)
        } catch {
            throw HandoffError(error)
        }
    }

    /// Fetches a claimed document into a folder.
    ///
    /// - Parameters:
    ///   - title: what the user saw and accepted.
    ///   - folder: the destination, held open since the user said yes.
    ///   - rule: what accepted it in place of the user, who then has seen no title.
    ///   - entry: what the origin has described it as; it is asked where it has not.
    /// - Returns: where it is now, and its size.
    func fetch(
        from connection: Connection, claim: ClaimID, title: String, into folder: DestinationFolder,
        acceptedBy rule: AcceptPolicy.Rule? = nil, describedAs entry: WireDocumentEntry? = nil,
        progress: @escaping @Sendable (WireProgressReport) -> Void
    ) async throws(HandoffError) -> (path: [UInt8], size: UInt64) {
        var described = entry
        if described == nil { described = try await manifestEntry(from: connection, claim: claim) }
        guard let entry = described else { throw HandoffError(.internal, "the other side described no document") }
        if folder.checks.contains(.shownName) { try Self.refuseHidden(entry, title: title, wasSeen: rule == nil) }
        try rule?.require(type: nil, size: entry.size)
        do {
            let writer = try await DocumentWriter.create(
                DocumentLabel(entry.name), documentSize: entry.size, permissions: entry.executable ? 0o777 : 0o666,
                in: folder, ledger: ledger)
            do {
                try await receive(entry, from: connection, claim: claim, into: writer, progress: progress)
                let path = try await writer.commit()
                return (path.bytes, entry.size)
            } catch {
                await writer.abort()
                throw error
            }
        } catch let error as DocumentError {
            throw HandoffError(error)
        } catch {
            throw HandoffError(wrapping: error)
        }
    }

    /// A name that begins with a dot is obeyed by shells and desktops and seen by nobody: it is taken only when the user
    /// said yes to one.
    ///
    /// - Parameter wasSeen: a user looked, and not a rule.
    private static func refuseHidden(
        _ entry: WireDocumentEntry, title: String, wasSeen: Bool
    ) throws(HandoffError) {
        // What was listed may have been cut to what an advertisement has room for.
        let isListed = wasSeen && title.utf8.first == UInt8(ascii: ".")
        guard entry.name.first == UInt8(ascii: "."), !isListed else { return }
        throw HandoffError(
            .destinationUnwritable,
            "the other device calls “\(title)” by a hidden name, \(NameDisplay.escaped(Array(entry.name))): not taken")
    }

    /// What the origin says that a claimed document is, from now on.
    func manifestEntry(
        from connection: Connection, claim: ClaimID
    ) async throws(HandoffError) -> WireDocumentEntry {
        try await withDeadline(Self.answerDeadline, "the document was not described") {
            try await Self.entry(from: connection, claim: claim)
        }
    }

    private static func entry(
        from connection: Connection, claim: ClaimID
    ) async throws(HandoffError) -> WireDocumentEntry {
        let (_, stream) = try await connection.request(.documentManifest(.with { $0.claimID = Data(claim.bytes) }))
        await stream.finish()
        var entries = stream.records(of: WireDocumentEntry.self).makeAsyncIterator()
        guard let entry = try await entries.next() else {
            throw HandoffError(.internal, "the other side described no document")
        }
        guard try await entries.next() == nil else {
            throw HandoffError(.unsupported, "folders cannot be accepted yet: update Baton here")
        }
        return entry
    }

    /// Asks the origin for a range of a claimed document, whose records then come.
    func requestRange(
        _ range: WireDocumentRange, from connection: Connection, claim: ClaimID
    ) async throws(HandoffError) -> BatonTransport.Stream {
        let (answer, stream) = try await withDeadline(Self.answerDeadline, "the document was not sent") {
            try await connection.request(
                .documentRanges(
                    .with {
                        $0.claimID = Data(claim.bytes)
                        $0.ranges = [range]
                    }))
        }
        guard case .documentRanges(let ranges) = answer, Int(ranges.chunkSize) == ChunkLayout.chunkSize else {
            await stream.reset(.protocolError)
            throw HandoffError(.unsupported, "the other side sends chunks of another size: update Baton on both")
        }
        await stream.finish()
        return stream
    }

    private func receive(
        _ entry: WireDocumentEntry, from connection: Connection, claim: ClaimID, into writer: DocumentWriter,
        progress: @Sendable (WireProgressReport) -> Void
    ) async throws {
        func report(_ bytes: UInt64) {
            progress(
                .with {
                    $0.bytes = bytes
                    $0.total = entry.size
                })
        }
        let stream = try await requestRange(.init(), from: connection, claim: claim)
        // Each chunk is followed by its checksum.
        let chunkCount: UInt64 = ChunkLayout(documentSize: entry.size)?.chunkCount ?? 0
        let checksums = chunkCount * UInt64(ChunkLayout.checksumSize)
        var left = entry.size + checksums
        report(0)
        var lastReport = Instant.now
        var buffer = try await piece(of: stream, left)
        while let received = buffer {
            // More than there is to come is refused by the writer.
            left -= min(left, UInt64(received.count))
            let verified = try await writer.write(received)
            if Instant.now - lastReport >= Self.progressInterval {
                lastReport = .now
                report(verified)
            }
            buffer = try await piece(of: stream, left, reusing: received)
        }
        report(await writer.verifiedByteCount)
    }

    /// The next bytes of a document, of which so many are left: much at once, or what a slow link brings in the time.
    private func piece(
        of stream: BatonTransport.Stream, _ left: UInt64, reusing spent: Buffer? = nil
    ) async throws(HandoffError) -> Buffer? {
        let missing = "nothing more of the document came"
        do {
            return try await withDeadline(stallDeadline, missing) {
                try await stream.read(atLeast: Connection.readBound, reusing: spent)
            }
        } catch {
            guard error.code == .timedOut else { throw error }
        }
        let some = try await withDeadline(stallDeadline / 30, missing) { try await stream.read() }
        if let some, UInt64(some.count) < min(UInt64(leastProgress), left) {
            throw HandoffError(.timedOut, "only \(some.count) bytes of the document came in \(stallDeadline)")
        }
        return some
    }
}

/// Looks at files on a thread of its own, because a dead network file system blocks.
private actor DocumentInspector {
    private nonisolated let executor: BlockingExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init() throws(Errno) {
        executor = try BlockingExecutor(name: "baton-inspector")
    }

    func inspect(_ path: FilePath) throws(DocumentError) -> DocumentSource {
        try DocumentSource.inspect(path)
    }
}

extension FilePath {
    /// The path as the system has it.
    var bytes: [UInt8] {
        withPlatformString { pointer in
            UnsafeBufferPointer(start: pointer, count: length).map { UInt8(bitPattern: $0) }
        }
    }

    /// A path from the bytes that the system has; `nil` for none and for bytes with a NUL.
    init?(bytes: some Collection<UInt8>) {
        guard !bytes.isEmpty, !bytes.contains(0) else { return nil }
        let terminated = bytes.map { CChar(bitPattern: $0) } + [0]
        self = terminated.withUnsafeBufferPointer { buffer in
            buffer.baseAddress.map { FilePath(platformString: $0) } ?? FilePath()
        }
    }
}
