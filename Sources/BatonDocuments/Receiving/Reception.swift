// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import SystemPackage

/// The work of a transfer on the disk, on a thread of its own that can reach the destination and nothing else.
///
/// The thread confines itself (``Landlock``) before the part is made, and with that before the other device is asked
/// for a byte.
final class Reception: @unchecked Sendable {  // reason: it belongs to the thread on which it is made
    /// See ``DocumentWriter/Start``.
    let start: DocumentWriter.Start

    /// How large the pieces are that signatures are of; nil where there is nothing to build upon.
    let pieceSize: PieceSize?
    let tree: DocumentTree
    private let ledger: PartFileLedger
    private let bases: Bases
    private var part: Part?
    /// Other parts of the document that were taken from the ledger. They go when the new one is whole.
    private var older: [PartFileRecord]
    private var verifier: ChunkVerifier?
    private var decoder: ChunkDecoder
    /// Nanoseconds that verifying and writing took.
    private var total: UInt64 = 0

    /// Confines the thread, and makes the part on it, or opens the one of an earlier transfer.
    ///
    /// - Parameters:
    ///   - header: what is to be received, and from whom.
    ///   - openCopies: opens older copies, which a confined thread cannot.
    ///   - isCancelled: whether nobody waits for it any more.
    init(
        _ header: JournalHeader, in folder: DestinationFolder, ledger: PartFileLedger, naming: DocumentNaming,
        against openCopies: () throws(DocumentError) -> [OlderCopy], unless isCancelled: () -> Bool
    ) throws(DocumentError) {
        (tree, self.ledger) = (header.tree, ledger)
        let (umask, copies) = (ProcessUmask.current, try openCopies())
        let found = try ledger.unfinished(of: header, in: folder)
        let records = try ledger.openFolder()
        do throws(Errno) {
            try Landlock.confineThread(
                receivingIn: folder.file, recordingIn: records.descriptor, readingIn: copies.compactMap(\.folder))
        } catch {
            throw DocumentError(
                error.isShortage ? .busy : .notConfinable, folder.path.displayed, underlyingError: error)
        }
        let place = PartPlace(folder: folder, ledger: ledger, umask: umask, records: records, naming: naming)
        try folder.requireAbsent(tree.label, naming)
        var parts = PartChoice(header, at: place)
        let part: Part
        do throws(DocumentError) {
            part = try parts.open(found, unless: isCancelled)
        } catch {
            parts.release()
            throw error
        }
        (self.part, start, older) = (part, parts.start, parts.older.map(\.record))
        decoder = ChunkDecoder(label: tree.label)
        let (bases, incomplete) = (Bases(of: tree), part.incompleteFiles)
        for copy in parts.older.map(\.copy) + copies { bases.add(copy, where: incomplete.contains) }
        (self.bases, pieceSize) = (bases, bases.pieceSize)
    }
    /// Signatures of what comes next, none where reading it takes long; nil when all is told.
    func nextSignatures() -> SignatureBatch? { bases.nextSignatures() }

    /// Chunks that have not come yet, rising, at most ``DocumentWriter/rangeLimit`` ranges of them.
    func missing() throws(DocumentError) -> [Range<UInt64>] {
        let missing = try requirePart().verified.missing(in: tree.layout.allChunks)
        return Array(missing.ranges.prefix(DocumentWriter.rangeLimit))
    }

    /// The records of these chunks come next.
    func begin(_ ranges: [Range<UInt64>]) throws(DocumentError) {
        guard let verifier = ChunkVerifier(layout: tree.layout, ranges: ranges, label: tree.label) else {
            throw DocumentError(.badRange, tree.label.description)
        }
        self.verifier = consume verifier
    }

    /// Verifies and writes the next bytes.
    ///
    /// - Returns: how far it is by now.
    func write(_ bytes: Buffer) throws(DocumentError) -> DocumentWriter.Progress {
        let part = try requirePart()
        let start = MonotonicClock.nanoseconds()
        defer { total += MonotonicClock.nanoseconds() - start }
        do throws(DocumentError) {
            try bytes.withBytes { (bytes) throws(DocumentError) in
                try verifier?.receive(
                    bytes,
                    decode: { (encoding, payload, room) throws(DocumentError) in
                        try self.decoder.decode(encoding, payload, into: room, from: self.bases)
                    },
                    handle: { (chunk) throws(DocumentError) in try part.take(chunk) })
            }
        } catch {
            // Bytes that are under way say nothing any more.
            verifier = nil
            // Chunks that came before the error are kept, unless the disk has failed as well.
            try? part.note()
            throw error
        }
        try part.note()
        return try progress()
    }

    /// The records that were begun have ended.
    func finish() throws(DocumentError) { try verifier?.finish() }

    /// Puts the document in place, or throws what is wrong; then the part is still there.
    ///
    /// - Parameter isCancelled: whether nobody wants it any more.
    func commit(unless isCancelled: () -> Bool) throws(DocumentError) -> FilePath {
        let path = try requirePart().commit(unless: isCancelled)
        for record in older { ledger.removePart(of: record) }
        older = []
        return path
    }

    /// Ends it: keeps the part when a transfer could go on with it, and removes it when not.
    ///
    /// - Returns: bytes that are kept.
    func end() -> UInt64 {
        bases.end()
        for record in older { ledger.release(record) }
        older = []
        // Here, and not whenever this object goes: what is open keeps its room on the disk after it was removed.
        defer { part = nil }
        return part?.end() ?? 0
    }

    /// How far it is.
    func progress() throws(DocumentError) -> DocumentWriter.Progress {
        let part = try requirePart()
        return DocumentWriter.Progress(
            verifiedByteCount: part.verifiedByteCount, keptByteCount: part.keptByteCount,
            sender: verifier?.senderBottleneck ?? .unknown, bytesToNextRecord: verifier?.bytesToNextRecord ?? 0,
            diskTime: .nanoseconds(part.diskTime), processorTime: .nanoseconds(total - min(total, part.diskTime)))
    }

    private func requirePart() throws(DocumentError) -> Part {
        guard let part else { throw DocumentError(.cancelled, tree.label.description) }
        return part
    }
}

/// Makes the content of chunks that came encoded.
struct ChunkDecoder: ~Copyable {
    private let label: DocumentLabel
    private var decompressor: ChunkDecompressor?

    init(label: DocumentLabel) {
        self.label = label
    }

    /// Fills `content` from what came.
    mutating func decode(
        _ encoding: ChunkRecord.Encoding, _ payload: UnsafeRawBufferPointer,
        into content: UnsafeMutableRawBufferPointer, from bases: Bases
    ) throws(DocumentError) {
        switch encoding {
        case .zstd: try decompress(payload, into: content)
        case .delta: try assemble(payload, into: content, from: bases)
        case .plain, .zeros: throw DocumentError(.badRecord, label.description)
        }
    }

    private mutating func decompress(
        _ payload: UnsafeRawBufferPointer, into content: UnsafeMutableRawBufferPointer
    ) throws(DocumentError) {
        do {
            if decompressor == nil { decompressor = try ChunkDecompressor() }
            try decompressor?.decompress(payload, into: content)
        } catch {
            throw DocumentError(.badRecord, label.description)
        }
    }

    private func assemble(
        _ payload: UnsafeRawBufferPointer, into content: UnsafeMutableRawBufferPointer, from bases: Bases
    ) throws(DocumentError) {
        let operationsEnd = payload.count - ContentDigest.byteCount
        guard operationsEnd > 0 else { throw DocumentError(.badRecord, label.description) }
        let digest = ContentDigest(wire: UnsafeRawBufferPointer(rebasing: payload[operationsEnd...]))
        var decoder = DeltaDecoder(
            UnsafeRawBufferPointer(rebasing: payload[..<operationsEnd]), contentSize: content.count,
            basisSizes: bases.sizes)
        var filled = 0
        // Of older copies of its own this device tells no more than that it was right of all, or not: see CopyTrust.
        var isWhole = true
        while let operation = try next(&decoder) {
            switch operation {
            case .literal(let bytes):
                UnsafeMutableRawBufferPointer(rebasing: content[filled..<filled + bytes.count]).copyMemory(from: bytes)
                filled += bytes.count
            case .copy(let basis, let offset, let length):
                let room = UnsafeMutableRawBufferPointer(rebasing: content[filled..<filled + length])
                // A copy that cannot be read has changed, and the other device sends the bytes.
                isWhole = (try? bases.read(basis, at: offset, into: room)) == length && isWhole
                filled += length
            }
        }
        guard isWhole, ContentDigest(of: UnsafeRawBufferPointer(content)) == digest else {
            throw DocumentError(.basisChanged, label.description)
        }
    }

    private func next(_ decoder: inout DeltaDecoder) throws(DocumentError) -> DeltaOperation? {
        do {
            return try decoder.next()
        } catch {
            throw DocumentError(.badRecord, label.description)
        }
    }
}
