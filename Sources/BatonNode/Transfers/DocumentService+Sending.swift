// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// The origin's side: what a claimed activity's document consists of, and its bytes.
extension DocumentService {
    /// Answers what a claimed activity's document consists of, as it is now.
    func manifest(
        of claimID: ClaimID, for device: PeerName, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        let activity = try await offers.decide { $0.present(claimID, by: device) }.get().kept.activity
        guard let source = activity.document else {
            throw HandoffError(.invalidRequest, "the activity “\(activity.title)” has no document")
        }
        try await limit.begin(for: device, .description)
        defer { ControlLoop.execute { [limit] in limit.end(for: device, .description) } }
        // The other device is told the title, and not in which folder of this one the document is.
        // Nobody waits for it any more once the stream is gone: then looking ends as well.
        let document = try await withHandoffErrors {
            try await running(
                { try await scan(source.path, source.selection, for: device, calledInErrors: activity.title) },
                until: { await stream.untilClosedOrCancelled() })
        }
        await offers.decide { $0.update(claimID) { $0.document = document } }
        try await tell(document, on: stream)
    }

    /// Tells what a document consists of; who does not read it is not waited for.
    private func tell(_ document: ScannedDocument, on stream: BatonTransport.Stream) async throws(HandoffError) {
        // Room for what waits to be sent, and for the record behind it.
        try await withHandoffErrors { try await stream.reserve(2 * BatonTransport.Stream.recordQueueBound) }
        try await stream.respond(
            .documentManifest(
                .with {
                    $0.entries = UInt64(document.tree.entryCount)
                    $0.totalSize = document.tree.size
                    $0.leftOut = UInt64(document.leftOut.count)
                    $0.fileIdentity = Data(document.identity.file)
                    $0.placeIdentity = Data(document.identity.place)
                    $0.version = Data(document.tree.version.bytes)
                }))
        var index = 0
        while index < document.tree.entryCount {
            let entries = Self.entries(of: document.tree, from: index)
            index += entries.count
            try await withDeadline(stallDeadline, "the other side did not read") {
                try await stream.send(records: entries)
            }
        }
        await stream.finish()
    }

    /// The entries that are sent at once, beginning with `first`. Each write costs a change of threads, and small
    /// records cost more than their content.
    static func entries(of tree: DocumentTree, from first: Int) -> [WireDocumentEntry] {
        var (entries, bytes): ([WireDocumentEntry], Int) = ([], 0)
        for index in first..<tree.entryCount {
            guard entries.count < entriesAtOnce, bytes < entryBytesAtOnce else { break }
            let entry = tree[index]
            entries.append(WireDocumentEntry(entry, of: tree))
            bytes += entry.path.bytes.count
            if case .link(let target) = entry.kind { bytes += target.bytes.count }
        }
        return entries
    }

    /// Sends chunks of a claimed document.
    func send(
        _ request: WireDocumentRangesRequest, of claimID: ClaimID, to device: PeerName,
        on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        let claim = try await offers.decide { $0.present(claimID, by: device) }.get()
        guard let document = claim.kept.document else {
            throw HandoffError(.invalidRequest, "the document's manifest has to be asked for first")
        }
        try Self.requireVersion(of: request, in: document.tree)
        let ranges = try Self.ranges(of: request, in: document.tree.layout)
        if request.preview {
            try await limit.begin(for: device, .preview)
        } else {
            try await limit.begin(for: device, claim: claimID) { await stream.reset(.cancelled) }
        }
        defer {
            ControlLoop.execute { [limit] in
                if request.preview { limit.end(for: device, .preview) } else { limit.end(for: device, claim: claimID) }
            }
        }
        // The user may have cancelled it while an earlier attempt ended.
        _ = try await offers.decide { $0.present(claimID, by: device) }.get()
        if !request.preview { await offers.decide { $0.goOn(claimID) } }
        let reader = try await open(document, ranges)
        let pool = request.preview ? previews ?? self.pool : self.pool
        try await stream.respond(.documentRanges(.with { $0.chunkSize = UInt32(ChunkLayout.chunkSize) }))
        if request.preview {
            await show(reader, pool, on: stream)
        } else {
            // Where there is none the document is sent whole.
            let room = olderCopies?.reservation(of: device.id)
            let keepsCopies = room?.grow(by: request.pieceSize > 0 ? SignatureIndex.memoryBound : 0) ?? true
            await transfer(reader, request, keepingCopies: keepsCopies, for: claim, on: stream)
            withExtendedLifetime(room) {}
        }
        await reader.close()
        if pool.lentCount == 0 { pool.trim() }
    }

    private func open(
        _ document: ScannedDocument, _ ranges: [Range<UInt64>]
    ) async throws(HandoffError) -> DocumentReader {
        do {
            return try await DocumentReader.open(document, ranges: ranges)
        } catch {
            let failure = HandoffError(error)
            throw failure.code == .documentUnreadable ? .unreadableAtOrigin : failure.withoutPlaces
        }
    }

    /// Sends what an application looks at meanwhile: nobody is told of it.
    private func show(_ reader: DocumentReader, _ pool: BufferPool, on stream: BatonTransport.Stream) async {
        // A failure has aborted the stream, and nobody is told more.
        let report = TransferReport(of: reader.document.tree.size)
        // Somebody waits for it now; a document in full has time.
        await stream.setWeight(Limits.maximumWeight)
        try? await withStallWatch(stallDeadline) {
            try await pump(
                reader, SendingBuffers(of: pool, atMost: Self.buffersOfPreview), to: stream, report: report, within: $0)
        }
    }

    private func transfer(
        _ reader: DocumentReader, _ request: WireDocumentRangesRequest, keepingCopies keepsCopies: Bool,
        for claim: Claim<NodeWorld>, on stream: BatonTransport.Stream
    ) async {
        let report = TransferReport(of: reader.document.tree.size, device: claim.device.name)
        let signatures = FirstResult<SignatureIndex?>()
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    try await follow(
                        stream, request, keepingCopies: keepsCopies, in: reader.document.tree.layout, report,
                        of: claim.id, telling: signatures)
                }
                group.addTask {
                    let known = await signatures.value(ifCancelled: .some(nil))
                    try Task.checkCancellation()
                    await reader.take(
                        DocumentReader.Encodings(signatures: known, takesCompressed: request.takesCompressed))
                    try await withStallWatch(stallDeadline) {
                        try await pump(
                            reader, SendingBuffers(of: pool, atMost: Self.buffersOfTransfer), to: stream,
                            report: report, within: $0)
                    }
                }
                for try await () in group {}
            }
        } catch {
            let failure = HandoffError(documentCause: error)
            if await !limit.isSuperseded(claim.id) { await tell(failure, of: claim.id) }
            await stream.reset(failure.resetCode)
        }
    }

    /// Tells the offering application why a transfer has ended, if the other device does not say what becomes of it.
    private func tell(_ failure: HandoffError, of claimID: ClaimID) async {
        switch failure.code {
        case .documentChanged, .cancelled:
            // The device asks for what differs, or goes on by another connection, or lets the claim go.
            return
        case .connectionLost, .timedOut:
            // The device goes on by itself as soon as it can reach this one again.
            await offers.decide { $0.interrupt(claimID, because: failure) }
        default:
            await offers.decide { $0.fail(claimID, because: failure) }
        }
    }

    /// Hands chunk after chunk to the stream while the disk reads the next, on the reader's own thread; aborts the
    /// stream before it throws.
    private func pump(
        _ reader: isolated DocumentReader, _ buffers: consuming SendingBuffers, to stream: BatonTransport.Stream,
        report: TransferReport, within watch: StallWatch
    ) async throws(HandoffError) {
        let unread: StaticString = "the other side did not read"
        var waited = LinkWait()
        var times = DocumentReader.Times()
        let loop = stream.connection.loop
        do {
            while try reader.hasMore() {
                report.begin(.link)
                let start = LinkWait.Mark(loop)
                let buffer = try await buffers.next { bound in
                    _ = try await watch.bound(unread) { try await stream.drained(to: bound) }
                }
                let hasBuffer = LinkWait.Mark(loop)
                report.begin(.disk)
                do {
                    _ = try reader.read(into: buffer, telling: report.bottleneckHere, linkWait: waited.whole)
                } catch {
                    buffers.giveBack(buffer)
                    throw error
                }
                buffers.add(buffer)
                report.begin(.link)
                let read = LinkWait.Mark(loop)
                buffers.release(queued: try await watch.bound(unread) { try await stream.write(buffer) })
                let spent = reader.times
                waited = LinkWait()
                // The wait for a buffer is a wait for the link as well: all buffers are on their way.
                waited.add(from: start, to: hasBuffer)
                waited.add(from: read, to: LinkWait.Mark(loop))
                report.note(
                    link: waited.link, disk: spent.disk - times.disk,
                    processor: spent.processor - times.processor + waited.processor)
                times = spent
            }
            _ = try await watch.bound(unread) { try await stream.drained() }
            await stream.finish()
        } catch {
            let failure = HandoffError(documentCause: error)
            // What is queued is dropped before its buffers can be filled by somebody else.
            await stream.reset(failure.resetCode)
            buffers.releaseAll()
            throw failure
        }
        buffers.releaseAll()
    }

    /// Hears which bytes the other device has, and then how far it is, which the offering application is told. The
    /// application is told as well while the other device takes long to read its older copies.
    ///
    /// - Parameter signatures: gets the bytes that the other device has.
    private func follow(
        _ stream: BatonTransport.Stream, _ request: WireDocumentRangesRequest, keepingCopies keepsCopies: Bool,
        in layout: ChunkLayout, _ report: TransferReport, of claim: ClaimID,
        telling signatures: FirstResult<SignatureIndex?>
    ) async throws(HandoffError) {
        // With the most ranges more may be missing than is asked for, and nobody knows how much.
        if request.pieceSize > 0, request.ranges.count < DocumentWriter.rangeLimit {
            // The device has all of the document that it does not ask for. It may ask for the same more than once.
            let missing = request.ranges.reduce(UInt64(0)) { sum, range in
                let size = layout.offset(of: range.first + range.count) - layout.offset(of: range.first)
                return sum + min(size, report.size - sum)
            }
            report.advance(to: report.size - missing)
            // Its disk for as long as it says anything, which is once a second.
            report.begin(.link)
            report.hear(.disk)
            report.tell()
        }
        try await report.repeating(
            { [offers] progress in
                await offers.decide { $0.report(progress, of: claim) }
            },
            during: { () throws(HandoffError) in
                try await withStallWatch(commitDeadline) { [offers] watch in
                    var upstream = UpstreamRecords(stream, within: watch)
                    signatures.decide(
                        try await upstream.signatures(pieceSize: request.pieceSize, areKept: keepsCopies) {
                            report.hear(.disk)
                        })
                    while let received = try await upstream.report() {
                        report.hear(Bottleneck(rawValue: UInt8(clamping: received.bottleneck)) ?? .unknown)
                        report.advance(to: received.verifiedBytes)
                        let told = report.tell()
                        await offers.decide { $0.report(told, of: claim) }
                        if received.committed { break }
                    }
                }
            })
    }

    /// Makes sure that a request is of the version that is sent. The device counts chunks by the last description that
    /// it had. In another version the same numbers name other bytes, or none.
    ///
    /// - Parameter tree: what the document was described as last.
    /// - Throws: `documentChanged`.
    static func requireVersion(
        of request: WireDocumentRangesRequest, in tree: DocumentTree
    ) throws(HandoffError) {
        guard request.version.isEmpty || tree.version.bytes == [UInt8](request.version) else {
            throw HandoffError(.documentChanged, "“\(tree.label)” has changed since it was described")
        }
    }

    /// Rising or not, each has to be there.
    static func ranges(
        of request: WireDocumentRangesRequest, in layout: ChunkLayout
    ) throws(HandoffError) -> [Range<UInt64>] {
        guard !request.ranges.isEmpty, request.ranges.count <= DocumentWriter.rangeLimit else {
            throw HandoffError(.invalidRequest, "1 to \(DocumentWriter.rangeLimit) ranges can be asked for at once")
        }
        var ranges: [Range<UInt64>] = []
        for range in request.ranges {
            let (end, overflow) = range.first.addingReportingOverflow(range.count)
            guard !overflow, end <= layout.chunkCount else {
                throw HandoffError(.invalidRequest, "the document has no such range")
            }
            ranges.append(range.first..<end)
        }
        return ranges
    }
}
