// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials

/// What the continuing device says while it is sent a document: first which bytes it has, then how far it is.
actor UpstreamRecords {
    private var records: RecordSequence<WireDocumentUpstream>.Iterator
    private let stallDeadline: Duration

    init(_ stream: BatonTransport.Stream, stallDeadline: Duration) {
        records = stream.records(of: WireDocumentUpstream.self).makeAsyncIterator()
        self.stallDeadline = stallDeadline
    }

    /// The signatures that come first.
    ///
    /// - Parameters:
    ///   - pieceSize: of the pieces, in bytes; 0 where none come.
    ///   - areKept: whether there is room for them; without, they are read and forgotten.
    ///   - heard: called when some have come, be it none.
    /// - Returns: nil where none come, or none are kept.
    func signatures(
        pieceSize: UInt64, areKept: Bool = true, heard: @Sendable () -> Void = {}
    ) async throws(HandoffError) -> SignatureIndex? {
        guard var order = try UpstreamSignatures(pieceSize: pieceSize, areKept: areKept) else { return nil }
        while let kind = try await next(within: stallDeadline) {
            heard()
            if try order.take(kind) { return order.index }
        }
        throw HandoffError(.invalidRequest, "the signatures ended early")
    }

    /// The next report; nil when no more come.
    func report(deadline: Duration) async throws(HandoffError) -> WireDocumentUpstream.Report? {
        guard let kind = try await next(within: deadline) else { return nil }
        return try UpstreamSignatures.report(kind)
    }

    private func next(within deadline: Duration) async throws(HandoffError) -> WireDocumentUpstream.OneOf_Kind? {
        try await withDeadline(deadline, "the other side did not say how far it is") { try await self.next() }
    }

    private func next() async throws(HandoffError) -> WireDocumentUpstream.OneOf_Kind? {
        var iterator = records
        defer { records = iterator }
        return try await iterator.next(isolation: self)?.kind
    }
}

/// In which order what the continuing device says may come: signatures, their end, and from then on reports. A value.
struct UpstreamSignatures {
    /// What came, where it is kept.
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
        switch kind {
        case .signatures(let batch):
            try take(Array(batch.pieces), basis: Int(batch.basis))
            return false
        case .signaturesEnd: return true
        case .report: throw HandoffError(.invalidRequest, "a report came before the end of the signatures")
        }
    }

    /// What came after the signatures' end, or where there are none.
    static func report(_ kind: WireDocumentUpstream.OneOf_Kind) throws(HandoffError) -> WireDocumentUpstream.Report {
        switch kind {
        case .report(let report): return report
        case .signatures, .signaturesEnd:
            throw HandoffError(.invalidRequest, "signatures came after their end")
        }
    }

    private mutating func take(_ pieces: [UInt8], basis: Int) throws(HandoffError) {
        guard pieces.count.isMultiple(of: PieceSignature.byteCount) else {
            throw HandoffError(.invalidRequest, "a signature is cut")
        }
        silence = pieces.isEmpty ? silence + 1 : 0
        guard silence <= Self.silenceBound else {
            throw HandoffError(.invalidRequest, "signatures are promised and do not come")
        }
        guard index != nil else {
            // As many as would be kept, so that nobody goes on for ever.
            count += pieces.count / PieceSignature.byteCount
            guard count <= PieceSignature.limit else {
                throw HandoffError(.invalidRequest, "there are too many signatures")
            }
            return
        }
        do {
            try pieces.withUnsafeBufferPointer { (pieces) throws(DeltaError) in
                try index?.append(UnsafeRawBufferPointer(pieces), basis: basis)
            }
        } catch {
            throw HandoffError(.invalidRequest, "the signatures cannot be read: \(error)")
        }
    }
}
