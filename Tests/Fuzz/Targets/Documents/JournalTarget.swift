// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

@testable import BatonDocuments

/// The journal of an unfinished document, damaged: what it says is never more than was written of chunks that there
/// are.
///
/// It is a file of this device, which a peer fills by what it sends; a power cut damages it. The first byte of an input
/// tells how it is made: of the input's bytes alone, or of entries and checkpoints with damage.
enum JournalTarget: FuzzTarget {
    static let name = "journal"
    static let maximumLength = 1024

    private static let chunkCount: UInt64 = 24

    private static let path = Result {
        let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(base)/baton-fuzz-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Errno(rawValue: errno) }
        return FilePath(platformString: template).appending("journal")
    }

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        var input = Input(bytes)
        let setting = input.byte()
        let path = try path.get()
        var written: Set<UInt64> = []
        if setting & 1 == 0 {
            let file = try FileDescriptor.open(
                path, .writeOnly, options: [.create, .truncate], permissions: .ownerReadWrite)
            _ = try file.closeAfter { try file.writeAll(Array("baton journal 3\n".utf8) + input.remainder()) }
        } else {
            written = try write(path, &input)
        }
        guard let (journal, content) = try TransferJournal.open(path) else { return }
        let chunks = content.header.tree.layout.chunkCount
        for range in content.vouched.ranges {
            expect(!range.isEmpty && range.upperBound <= chunks, "chunks that there are not: \(range)")
            expect(setting & 1 == 0 || range.allSatisfy(written.contains), "chunks that were not written: \(range)")
        }
        expect(
            zip(content.vouched.ranges, content.vouched.ranges.dropFirst()).allSatisfy {
                $0.upperBound < $1.lowerBound
            },
            "ranges that touch")
        for (chunk, _) in content.unsure {
            expect(chunk < chunks && !content.vouched.contains(chunk), "chunk \(chunk) is unsure")
        }
        // It goes on after what was damaged.
        guard chunks > 0 else { return }
        journal.append(0, ChunkChecksum(high: 1, low: 2))
        try journal.checkpoint()
        guard let again = try TransferJournal.open(path) else {
            throw FuzzError("a journal cannot be read after it went on")
        }
        expect(again.content.vouched.contains(0), "what was written last is not there")
    }

    /// Writes a journal by its own means, and damages it.
    ///
    /// - Returns: the chunks that an entry was written of.
    private static func write(_ path: FilePath, _ input: inout Input) throws -> Set<UInt64> {
        let tree = try DocumentTree(
            file: .init(size: chunkCount << 20), called: DocumentLabel(Array("note.txt".utf8)))
        let journal = try TransferJournal.create(at: path, JournalHeader(origin: "laptop", tree: tree))
        var written: Set<UInt64> = []
        var damage: [(place: Int, with: UInt8)] = []
        while !input.isEmpty {
            let (kind, number) = (input.byte(), UInt64(input.byte()))
            switch kind & 7 {
            case 0...2:
                journal.append(number % chunkCount, ChunkChecksum(high: number, low: number))
                written.insert(number % chunkCount)
            case 3, 4: try journal.checkpoint()
            case 5: try journal.flush()
            case _: damage.append((Int(number) << 3 | Int(kind >> 5), input.byte()))
            }
        }
        try journal.flush()
        var bytes = try SystemCalls.contents(of: path, limit: 1 << 20)
        for (place, with) in damage where !bytes.isEmpty { bytes[place % bytes.count] ^= with }
        if let (place, with) = damage.last, with == 0 { bytes.removeLast(min(place, bytes.count)) }
        let file = try FileDescriptor.open(path, .writeOnly, options: .truncate)
        _ = try file.closeAfter { try file.writeAll(bytes) }
        return written
    }

    static func seeds() -> [[UInt8]] {
        [
            [1], [1, 0, 0, 0, 1, 3, 2, 0, 5], [3, 0, 0, 0, 1, 3, 2, 0, 5], [3, 0, 4, 3, 1, 4, 4, 0, 4],
            [1, 0, 3, 5, 0, 0, 4, 0xE6, 40, 7], [3, 0, 3, 0, 4, 0x26, 30, 255, 3, 2], [1, 0, 3, 0, 4, 6, 2, 0],
            [0], [0, 0, 0, 0, 0, 0, 0, 0, 0], [3, 3, 200, 0, 1, 3, 0],
        ]
    }
}
