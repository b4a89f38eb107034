// SPDX-License-Identifier: Apache-2.0

import SwiftProtobuf

@testable import BatonMessages

/// Length-delimited records in DATA, cut anywhere: the same records come out as of the whole, or the same error.
enum RecordsTarget: FuzzTarget {
    static let name = "records"
    static let maximumLength = 4096

    private struct Outcome: Equatable {
        var records: [WireActivitySummary] = []
        var error: HandoffError?
        var isWhole = false
    }

    static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = Input(bytes)
        let size = Int(input.byte())
        let stream = input.remainder()
        let (cut, whole) = (outcome(of: stream, inPiecesOf: size), outcome(of: stream, inPiecesOf: 0))
        expect(cut == whole, "pieces of \(size) bytes make a difference")
    }

    private static func outcome(of stream: [UInt8], inPiecesOf size: Int) -> Outcome {
        var parser = RecordParser<WireActivitySummary>()
        var outcome = Outcome()
        do throws(HandoffError) {
            for piece in stream.pieces(of: size) {
                piece.withUnsafeBytes { parser.append($0) }
                while let record = try parser.next() { outcome.records.append(record) }
                expect(parser.pending.count - parser.position <= MessageLimits.size + 3, "more than a record is kept")
            }
            outcome.isWhole = parser.isBetweenRecords
        } catch {
            outcome.error = error
        }
        return outcome
    }

    static func seeds() throws -> [[UInt8]] {
        var stream: [UInt8] = []
        for count in [0, 1, 100, 130, 600] {
            let record: [UInt8] = try WireActivitySummary.with {
                $0.title = String(repeating: "x", count: count)
                $0.since = UInt64(count)
            }.serializedBytes()
            stream += record.count < 128 ? [] : [UInt8(record.count & 0x7F) | 0x80]
            stream += [UInt8(record.count < 128 ? record.count : record.count >> 7)] + record
        }
        return [
            [0] + stream, [1] + stream, [7] + stream, [7] + stream.dropLast(), [3, 0x81, 0x80, 0x04],
            [0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F], [1, 0x80, 0x80, 0x80, 0], [0, 0x80, 0x80, 0x04, 0x0A],
        ]
    }
}
