// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import SwiftProtobuf

@testable import BatonDocuments
@testable import BatonMessages
@testable import BatonNode

/// The records of a continuing device while it is sent a document: signatures, their end, then reports.
///
/// No report counts before the signatures' end, and no signature after it. No more signatures are kept than there is
/// room for, and records that are read without being kept have the same order.
enum UpstreamTarget: FuzzTarget {
    static let name = "upstream"
    static let maximumLength = 4096

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        var input = Input(bytes)
        // Every size that there is, some that there are not, and none.
        let code = input.byte()
        let pieceSize = code & 0x80 != 0 ? UInt64(code) : code == 0 ? 0 : UInt64(1) << UInt64(code & 0x3F)
        let records = records(input.remainder())
        do throws(HandoffError) {
            try check(records, pieceSize)
        } catch {
            expect(error.code == .invalidRequest, "\(error)")
        }
    }

    private static func check(
        _ records: [WireDocumentUpstream.OneOf_Kind], _ pieceSize: UInt64
    ) throws(HandoffError) {
        var rest = records[...]
        if var kept = try UpstreamSignatures(pieceSize: pieceSize, areKept: true) {
            guard var forgotten = try UpstreamSignatures(pieceSize: pieceSize, areKept: false) else {
                fatalError("none are expected where they are not kept")
            }
            var isOver = false
            while !isOver, let next = rest.popFirst() {
                isOver = try kept.take(next)
                expect(isOver == isEnd(next), "\(next) was taken for another")
                // Everything that can be kept can be read without being kept.
                expect((try? forgotten.take(next)) == isOver, "\(next) is only refused where it is not kept")
                let count = kept.index?.signatureCount ?? 0
                expect(count <= PieceSignature.limit, "\(count) signatures are kept")
                expect(forgotten.index == nil, "signatures are kept")
            }
            guard isOver else { return }
        } else {
            expect(pieceSize == 0, "signatures of \(pieceSize) bytes are not expected")
        }
    }

    private static func isEnd(_ kind: WireDocumentUpstream.OneOf_Kind) -> Bool {
        if case .signaturesEnd = kind { true } else { false }
    }

    /// The records of a stream, up to the first that is none.
    private static func records(_ stream: [UInt8]) -> [WireDocumentUpstream.OneOf_Kind] {
        var parser = RecordParser<WireDocumentUpstream>()
        stream.withUnsafeBytes { parser.append($0) }
        var kinds: [WireDocumentUpstream.OneOf_Kind] = []
        while let record = try? parser.next() {
            guard let kind = record.kind else { continue }
            kinds.append(kind)
        }
        return kinds
    }

    static func seeds() throws -> [[UInt8]] {
        func record(_ kind: WireDocumentUpstream.OneOf_Kind) throws -> [UInt8] {
            let bytes: [UInt8] = try WireDocumentUpstream.with { $0.kind = kind }.serializedBytes()
            return [UInt8(bytes.count)] + bytes
        }
        func signatures(_ lengths: [UInt32], basis: UInt32 = 0) throws -> [UInt8] {
            var pieces: [UInt8] = []
            for (number, length) in lengths.enumerated() {
                PieceSignature(length: length, digest: PieceDigest(high: UInt64(number), low: 7)).append(to: &pieces)
            }
            return try record(
                .signatures(
                    .with {
                        $0.basis = basis
                        $0.pieces = Data(pieces)
                    }))
        }
        let end = try record(.signaturesEnd(.init()))
        let report = try record(.report(.with { $0.verifiedBytes = 1 << 20 }))
        let last = try record(.report(.with { $0.committed = true }))
        let some = try signatures([40_000, 30_000, 20_000]) + signatures([65_536, 100], basis: 1)
        return [
            [0] + report + last, [0] + some, [0] + end, [14] + some + end + report + last, [15] + some + end,
            [14] + some, [14] + some + report, [14] + end + report, [14] + end + some, [14] + end + end,
            try [14] + signatures([100, 100]) + end, try [14] + signatures([1 << 30]), [13] + end, [0x81] + end,
            try [14] + signatures([20_000], basis: 2) + signatures([20_000], basis: 1) + end, [14, 0x80, 0x80, 0x08],
        ]
    }
}
