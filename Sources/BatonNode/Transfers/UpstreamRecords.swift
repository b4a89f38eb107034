// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials

/// Reads the statements of a device that is sent a document: first which bytes it has, then how far it is.
struct UpstreamRecords {
    private var records: RecordSequence<WireDocumentUpstream>.Iterator
    /// Bounds each wait. One watch for all statements: a deadline of its own for each would stay in memory until it is
    /// over.
    private let watch: StallWatch
    private var budget = ReportBudget(now: .now)

    init(_ stream: BatonTransport.Stream, within watch: StallWatch) {
        records = stream.records(of: WireDocumentUpstream.self).makeAsyncIterator()
        self.watch = watch
    }

    /// The signatures that come first.
    ///
    /// - Parameters:
    ///   - pieceSize: of the pieces, in bytes; 0 where none come.
    ///   - areKept: whether there is room for them; without, they are read and forgotten.
    ///   - heard: called when some have come, be it none.
    /// - Returns: nil where none come, or none are kept.
    mutating func signatures(
        pieceSize: UInt64, areKept: Bool = true, heard: () -> Void = {}
    ) async throws(HandoffError) -> SignatureIndex? {
        guard var order = try UpstreamSignatures(pieceSize: pieceSize, areKept: areKept) else { return nil }
        while let kind = try await next() {
            heard()
            if try order.take(kind) { return order.index }
        }
        throw HandoffError(.invalidRequest, "the signatures ended early")
    }

    /// The next report; nil when no more come.
    mutating func report() async throws(HandoffError) -> WireDocumentUpstream.Report? {
        guard let kind = try await next() else { return nil }
        guard case .report(let report) = kind else {
            throw HandoffError(.invalidRequest, "signatures came after their end")
        }
        return report
    }

    private mutating func next() async throws(HandoffError) -> WireDocumentUpstream.OneOf_Kind? {
        let kind = try await watch.bound("the other side did not say how far it is") { try await records.next()?.kind }
        // The number of signatures is bounded: only records without any could go on for ever.
        if case .signatures(let batch)? = kind, !batch.pieces.isEmpty { return kind }
        if kind != nil { try budget.spend(now: .now) }
        return kind
    }
}

/// How many reports a device may send about one document: ``burst``, and ``rate`` more in each second.
///
/// Each report costs this device some 20 µs and wakes the offering application. Baton reports five times a second at
/// the most. Silent seconds count as well, because a link that stood still brings all that waited at once. A value.
struct ReportBudget {
    /// Reports in a second: 20.
    static let rate = 20
    /// Reports beyond that: 256.
    static let burst = 256

    private let start: Instant
    private var count = 0

    init(now: Instant) {
        start = now
    }

    /// Takes note of one more report.
    ///
    /// - Throws: `invalidRequest` where there were too many.
    mutating func spend(now: Instant) throws(HandoffError) {
        count += 1
        let seconds = Int(clamping: (now - start).components.seconds)
        guard count - Self.burst <= seconds * Self.rate else {
            throw HandoffError(
                .invalidRequest, "the other side reports more than \(Self.rate) times a second how far it is")
        }
    }
}

/// In which order what the continuing device says may come: signatures, their end, and from then on reports. A value.
struct UpstreamSignatures {
    /// The signatures that came, if they are kept.
    private(set) var index: SignatureIndex?
    /// How many came, kept or not.
    private var count = 0
    /// Batches in a row without any: the other device reads on, and says so once a second.
    private var silence = 0
    /// The most of them: an hour of a disk that gives next to nothing.
    static let silenceBound = 3600

    /// - Returns: `nil` where no signatures come (a piece size of 0).
    /// - Throws: `invalidRequest` for a size that pieces cannot have.
    init?(pieceSize: UInt64, areKept: Bool) throws(HandoffError) {
        guard pieceSize > 0 else { return nil }
        guard let size = PieceSize(average: pieceSize) else {
            throw HandoffError(.invalidRequest, "pieces cannot be of this size")
        }
        index = areKept ? SignatureIndex(size: size) : nil
    }

    /// Takes what came next.
    ///
    /// - Returns: whether it was the signatures' end.
    mutating func take(_ kind: WireDocumentUpstream.OneOf_Kind) throws(HandoffError) -> Bool {
        let batch: WireDocumentUpstream.Signatures
        switch kind {
        case .signatures(let signatures): batch = signatures
        case .signaturesEnd: return true
        case .report: throw HandoffError(.invalidRequest, "a report came before the end of the signatures")
        }
        guard batch.pieces.count.isMultiple(of: PieceSignature.byteCount) else {
            throw HandoffError(.invalidRequest, "a signature is cut")
        }
        silence = batch.pieces.isEmpty ? silence + 1 : 0
        guard silence <= Self.silenceBound else {
            throw HandoffError(.invalidRequest, "signatures are promised and do not come")
        }
        // As many as can be kept, also where none are, so that nobody goes on for ever.
        count += batch.pieces.count / PieceSignature.byteCount
        guard count <= PieceSignature.limit else {
            throw HandoffError(.invalidRequest, "there are too many signatures")
        }
        do {
            try batch.pieces.withUnsafeBytes { try index?.append($0, basis: Int(batch.basis)) }
        } catch {
            throw HandoffError(.invalidRequest, "the signatures cannot be read")
        }
        return false
    }
}
