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

/// The origin's description of a claimed document.
struct DocumentDescription: Sendable {
    let tree: DocumentTree
    /// Which of its origin's documents it is.
    var identity = DocumentIdentity.unknown
    /// Which state of it, as its origin tells that; none where it does not.
    var version = FileVersion.none
}

/// The older copies of a document on this device, for all attempts of one handoff.
///
/// The origin says which of their bytes make a chunk, and hears whether they did. With more than one such answer it
/// could find out the content of a copy byte by byte. An honest origin is wrong only if a copy changes meanwhile.
final class OlderCopies: Sendable {
    /// The copies that the user has named.
    let paths: [FilePath]
    private let state = Lock((areTrusted: true, wereOpened: false))

    init(_ paths: [FilePath] = []) {
        self.paths = paths
    }

    /// Whether copies, also others than these, are still built upon.
    var areTrusted: Bool { state.withLock { $0.areTrusted } }

    /// Whether all of them could be opened once. If one disappears later, for example with its disk, the transfer
    /// continues.
    var wereOpened: Bool { state.withLock { $0.wereOpened } }

    func distrust() { state.withLock { $0.areTrusted = false } }

    func noteOpened() { state.withLock { $0.wereOpened = true } }
}

/// The continuing device's side: fetches a claimed document into a folder.
extension DocumentService {
    /// Fetches a claimed document, or what is missing of it.
    ///
    /// - Parameters:
    ///   - description: what the origin described it as.
    ///   - plan: what was accepted.
    ///   - folder: the destination, held open since the user said yes.
    ///   - usesCopies: whether this attempt builds upon older copies, or upon anything else that is here.
    ///   - report: is kept up to date.
    ///   - begin: hears, before any of it comes, what was here of it.
    ///   - told: hears whenever the origin has taken signatures of older copies.
    ///   - progress: hears how far it is.
    /// - Returns: where it is now.
    func fetch(
        _ description: DocumentDescription, for plan: Handoff.Plan, into folder: DestinationFolder,
        usingCopies usesCopies: Bool = true, from connection: Connection, claim: ClaimID, noting report: TransferReport,
        begin: @Sendable (DocumentWriter.Start) -> Void = { _ in }, told: @Sendable () -> Void = {},
        progress: @escaping @Sendable (WireProgressReport) -> Void
    ) async throws(HandoffError) -> [UInt8] {
        let tree = description.tree
        try Self.refuseHidden(tree.label, title: plan.activity.title, wasSeen: plan.rule == nil)
        try Self.refuseFolder(tree, listedAs: plan.activity.type)
        try plan.rule?.require(type: nil, size: AcceptPolicy.Rule.size(of: tree))
        let copies = plan.copies
        let isTrusted = copies.areTrusted && usesCopies
        let writer = try await withHandoffErrors {
            try await DocumentWriter.create(
                tree, from: plan.origin.id, in: folder, ledger: ledger, against: isTrusted ? copies.paths : [],
                requiringCopies: !copies.wereOpened, identity: description.identity, naming: plan.naming,
                on: connection.loop)
        }
        copies.noteOpened()
        do {
            begin(writer.start)
            return try await receive(
                description.version, into: writer, tellingBases: isTrusted, from: connection, claim: claim,
                noting: report, told: told
            ) { progress(report.tell()) }
        } catch {
            let hasMisbuilt = await writer.hasMisbuilt
            report.end(keeping: await writer.end())
            if hasMisbuilt {
                copies.distrust()
                // The transfer goes on by itself, and with none of them.
                throw HandoffError(
                    .documentChanged,
                    "an older copy that \(tree.label) was built upon changed, and none is used any more")
            }
            let failure = HandoffError(documentCause: error)
            guard failure.code == .documentChanged, !(error is DocumentError) else { throw failure }
            throw HandoffError(.documentChanged, "\(tree.label) changed while it was being sent")
        }
    }

    /// A folder was listed as one, or as of a type that says nothing of that.
    static func refuseFolder(_ tree: DocumentTree, listedAs type: String) throws(HandoffError) {
        let type = type.lowercased()
        guard !tree.isFolder || !type.hasPrefix("public.") || type == ActivityType.folder else {
            throw HandoffError(.refused, "\(tree.label) is a folder now, and something of type \(type) was accepted")
        }
    }

    /// A name that begins with a dot is obeyed by shells and desktops and seen by nobody: it is taken only when the
    /// user said yes to one.
    ///
    /// - Parameter wasSeen: a user looked, and not a rule.
    private static func refuseHidden(
        _ label: DocumentLabel, title: String, wasSeen: Bool
    ) throws(HandoffError) {
        // The listed title may have been cut to fit into an advertisement.
        let isListed = wasSeen && title.utf8.first == UInt8(ascii: ".")
        guard label.bytes.first == UInt8(ascii: "."), !isListed else { return }
        throw HandoffError(
            .destinationUnwritable,
            "the other device calls “\(title)” by a hidden name, \(label): not taken")
    }

    /// Asks the origin for a new description of a claimed document.
    func describe(
        from connection: Connection, claim: ClaimID
    ) async throws(HandoffError) -> DocumentDescription {
        let late = "the document was not described"
        let (answer, stream) = try await withDeadline(descriptionDeadline, late) {
            try await connection.request(.documentManifest(.with { $0.claimID = Data(claim.bytes) }))
        }
        guard case .documentManifest(let manifest) = answer else {
            await stream.reset(.protocolError)
            throw HandoffError(.internal, "the other side gave an answer that cannot be read")
        }
        var room: ByteReservation?
        if case .device(let device) = await connection.peer { room = descriptions?.reservation(of: device) }
        return try await withDeadline(descriptionDeadline, late) { [room] in
            await stream.finish()
            do {
                return DocumentDescription(
                    tree: try await DocumentTree.received(
                        stream.records(of: WireDocumentEntry.self), room: room),
                    identity: DocumentIdentity(file: manifest.fileIdentity, place: manifest.placeIdentity),
                    version: FileVersion(bytes: manifest.version) ?? .none)
            } catch let error as DocumentError {
                await stream.reset(.protocolError)
                throw HandoffError(error)
            }
        }
    }

    /// Asks the origin for chunks of a claimed document, whose records then come.
    ///
    /// - Parameter open: ranges that are open from the beginning.
    func requestRanges(
        _ request: WireDocumentRangesRequest, open: Int, from connection: Connection
    ) async throws(HandoffError) -> BatonTransport.Stream {
        let (answer, stream) = try await withDeadline(answerDeadline, "the document was not sent") {
            try await connection.request(.documentRanges(request), window: open * ChunkRecord.plainSize)
        }
        guard case .documentRanges(let ranges) = answer, Int(ranges.chunkSize) == ChunkLayout.chunkSize else {
            await stream.reset(.protocolError)
            throw HandoffError(.unsupported, "the other side sends chunks of another size: update Baton on both")
        }
        return stream
    }

    /// Receives what is missing of one version, which each request names: the document may be described anew meanwhile,
    /// to an application that reads a range of it.
    private func receive(
        _ version: FileVersion, into writer: DocumentWriter, tellingBases: Bool,
        from connection: Connection, claim: ClaimID, noting report: TransferReport, told: @Sendable () -> Void,
        progress: @escaping @Sendable () -> Void
    ) async throws -> [UInt8] {
        report.begin(of: writer.tree.size, resumed: await writer.progress.verifiedByteCount)
        progress()
        while true {
            let missing = try await writer.missing()
            guard !missing.isEmpty else { break }
            let pieceSize = tellingBases ? writer.pieceSize : nil
            let stream = try await requestRanges(
                .with {
                    $0.claimID = Data(claim.bytes)
                    $0.ranges = missing.map(WireChunkRange.init)
                    $0.pieceSize = UInt64(pieceSize?.average ?? 0)
                    $0.takesCompressed = true
                    if version != .none { $0.version = Data(version.bytes) }
                }, open: NodeLimits.openRanges, from: connection)
            let upstream = UpstreamWriter(stream, of: report, deadline: stallDeadline)
            do {
                if pieceSize != nil {
                    let there = await writer.progress
                    report.advance(to: there.verifiedByteCount, keeping: there.keptByteCount)
                    try await tellSignatures(
                        of: writer, by: upstream, on: stream, noting: report, told: told, progress: progress)
                }
                try await writer.begin(missing)
                let lowerReadBound: @Sendable () async -> Void = { await stream.lowerReadBound() }
                let path = try await upstream.reporting(every: repeatInterval) { () -> [UInt8]? in
                    try await withStallWatch(stallDeadline, shortening: lowerReadBound) { watch in
                        try await receive(stream, into: writer, noting: report, within: watch) {
                            progress()
                            try upstream.requireReports()
                        }
                    }
                    // More than can be asked for at once may have been missing.
                    guard try await writer.missing().isEmpty else { return nil }
                    report.begin(.disk)
                    return try await writer.commit().bytes
                }
                if path != nil { await upstream.tellCommitted() }
                await stream.finish()
                if let path { return path }
            } catch {
                await stream.reset(.cancelled)
                throw error
            }
        }
        // All of it had come before.
        return try await writer.commit().bytes
    }

    /// Tells the origin which bytes of older copies are here, which have to be read for that. Nothing of the document
    /// comes meanwhile.
    ///
    /// - Parameters:
    ///   - told: hears of each batch that was taken.
    ///   - progress: tells what is waited for.
    private func tellSignatures(
        of writer: DocumentWriter, by upstream: UpstreamWriter, on stream: BatonTransport.Stream,
        noting report: TransferReport, told: () -> Void, progress: () -> Void
    ) async throws {
        // The disk is what is waited for, for as long as this lasts.
        report.begin(.disk)
        var lastReport = Instant.now
        while let batch = try await writer.nextSignatures() {
            try await upstream.tell(
                .signatures(
                    .with {
                        $0.basis = UInt32(batch.basis)
                        $0.pieces = Data(batch.bytes)
                    }))
            told()
            guard Instant.now - lastReport >= Self.progressInterval else { continue }
            lastReport = .now
            progress()
        }
        try await upstream.tell(.signaturesEnd(.init()))
    }

    /// Receives the records of one request to their end: much at once, or what a slow link brings in the time.
    private func receive(
        _ stream: BatonTransport.Stream, into writer: isolated DocumentWriter, noting report: TransferReport,
        within watch: StallWatch, reporting tell: @Sendable () throws -> Void
    ) async throws {
        var last = writer.progress
        var lastReport = Instant.now
        var spent: Buffer?
        while true {
            report.begin(.link)
            let (start, reused) = (LinkWait.Mark(stream.connection.loop), spent)
            // A whole chunk in one piece, with its content where it can be written from.
            let framing = Framing(
                recordSize: ChunkRecord.plainSize, alignedByte: ChunkRecord.headerSize,
                distance: writer.bytesToNextRecord)
            let received = try await watch.bound("nothing more of the document came") {
                try await stream.read(atLeast: ChunkRecord.plainSize, reusing: reused, framing: framing)
            }
            guard let received else { break }
            var waited = LinkWait()
            waited.add(from: start, to: LinkWait.Mark(stream.connection.loop))
            if waited.whole >= stallDeadline {
                let left = writer.tree.size - min(writer.tree.size, last.verifiedByteCount)
                guard UInt64(received.count) >= min(UInt64(leastProgress), left) else {
                    throw HandoffError(
                        .timedOut, "only \(received.count) bytes of the document came in \(stallDeadline)")
                }
            }
            report.add(received: received.count)
            report.begin(.disk)
            spent = try await writer.submit(received)
            let written = writer.progress
            report.advance(to: written.verifiedByteCount, keeping: written.keptByteCount)
            report.hear(written.sender)
            report.note(
                link: waited.link, disk: written.diskTime - last.diskTime,
                processor: written.processorTime - last.processorTime + waited.processor)
            last = written
            let now = Instant.now
            if now - lastReport >= Self.progressInterval {
                lastReport = now
                try tell()
            }
        }
        try await writer.finish()
        report.advance(to: writer.progress.verifiedByteCount, keeping: writer.progress.keptByteCount)
        try tell()
    }
}

extension WireChunkRange {
    /// The message of a range.
    init(_ range: Range<UInt64>) {
        self.init()
        first = range.lowerBound
        count = UInt64(range.count)
    }
}

extension TransferReport {
    /// How far it is, for the origin.
    func upstream(committed: Bool = false) -> WireDocumentUpstream {
        .with {
            $0.report = .with {
                $0.verifiedBytes = committed ? size : bytes
                $0.bottleneck = UInt32(bottleneckHere.rawValue)
                $0.committed = committed
            }
        }
    }
}
