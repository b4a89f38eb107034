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
    /// - Parameter pieceSize: of the pieces, in bytes; 0 where none come.
    /// - Returns: nil where none come.
    func signatures(pieceSize: UInt64) async throws(HandoffError) -> SignatureIndex? {
        guard pieceSize > 0 else { return nil }
        guard let size = PieceSize(average: pieceSize) else {
            throw HandoffError(.invalidRequest, "pieces cannot be of this size")
        }
        var index = SignatureIndex(size: size)
        while let kind = try await next(within: stallDeadline) {
            switch kind {
            case .signatures(let batch):
                do {
                    let pieces = Array(batch.pieces)
                    try pieces.withUnsafeBufferPointer { (pieces) throws(DeltaError) in
                        try index.append(UnsafeRawBufferPointer(pieces), basis: Int(batch.basis))
                    }
                } catch {
                    throw HandoffError(.invalidRequest, "the signatures cannot be read: \(error)")
                }
            case .signaturesEnd: return index
            case .report: throw HandoffError(.invalidRequest, "a report came before the end of the signatures")
            }
        }
        throw HandoffError(.invalidRequest, "the signatures ended early")
    }

    /// The next report; nil when no more come.
    func report(deadline: Duration) async throws(HandoffError) -> WireDocumentUpstream.Report? {
        switch try await next(within: deadline) {
        case .report(let report)?: report
        case .signatures?, .signaturesEnd?: throw HandoffError(.invalidRequest, "signatures came after their end")
        case nil: nil
        }
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
