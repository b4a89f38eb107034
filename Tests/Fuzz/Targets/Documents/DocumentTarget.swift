// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import Glibc
import SystemPackage

@testable import BatonDocuments

/// The receiver of a document: chunk records cut anywhere, damaged anywhere, under any name, into a real folder.
///
/// Either the whole document is there under its name, or only a part, which another transfer completes with the missing
/// chunks. Earlier files are unchanged.
enum DocumentTarget: FuzzTarget {
    static let name = "document"
    static let maximumLength = 512

    private static let largest = 3 << 20
    /// Bytes of a plain record of a whole chunk.
    private static let recordSize = 2 + ChunkLayout.chunkSize + 16
    private static let content: [UInt8] = {
        var generator = SeededGenerator(seed: 7)
        var bytes: [UInt8] = []
        while bytes.count < largest { withUnsafeBytes(of: generator.next()) { bytes += $0 } }
        return bytes
    }()

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        var input = Input(bytes)
        let setting = input.byte()
        let size = documentSize(setting & 7, &input)
        guard let label = try? DocumentLabel(input.bytes(Int(input.byte()))) else { return }
        let place = try Place.shared()
        let isTaken = setting & 0x80 != 0
        if isTaken { guard place.occupy(label) else { return } }
        defer { place.clear() }

        let intact = size <= UInt64(largest) ? records(Int(size)) : []
        var stream = intact
        for _ in 0..<(setting >> 3 & 3) { damage(&stream, &input) }
        let sent = pieces(of: stream, &input)
        let result = wait {
            await receive(sent, as: label, size: size, into: place)
        }
        switch result {
        case .success(let path):
            expect(isIntact(stream, intact) && !isTaken, "a damaged document was taken, or another one replaced")
            expect(path == place.folder.appending(label.component.map { [$0] } ?? []), "it is at \(path)")
            expect(place.names == [label.bytes], "the folder has \(place.names)")
            expect(place.content(of: label) == Array(content[..<Int(size)]), "the document has other bytes")
            expect(place.ledgerIsEmpty, "the ledger remembers a part file that is gone")
        case .failure(let error):
            let isExpected =
                stream != intact || isTaken || size > UInt64(largest)
                || error.code == .badName  // longer with what the part file adds than the file system allows
            expect(isExpected, "an intact document was refused: \(error)")
            let others = place.names.filter { $0 != label.bytes }
            expect(!isTaken || place.names.contains(label.bytes), "what was there is gone")
            expect(!isTaken || place.content(of: label).isEmpty, "what was there was written to")
            expect(others.count <= 1, "the folder has \(place.names)")
            expect(others.isEmpty == place.ledgerIsEmpty, "the ledger does not fit the folder")
            guard !isTaken, size <= UInt64(largest), error.code != .badName else { return }
            goOn(as: label, Int(size), into: place)
        }
    }

    /// Another transfer asks for what is missing, and has the document then.
    private static func goOn(as label: DocumentLabel, _ size: Int, into place: Place) {
        let result = wait { await receive(nil, as: label, size: UInt64(size), into: place) }
        expect((try? result.get()) != nil, "a transfer did not go on: \(result)")
        expect(place.names == [label.bytes], "the folder has \(place.names)")
        expect(place.content(of: label) == Array(content[..<size]), "a transfer that went on made other bytes")
        expect(place.ledgerIsEmpty, "the ledger remembers a part file that is gone")
    }

    /// - Parameter pieces: what comes; nil for the records of what is missing.
    private static func receive(
        _ pieces: [ArraySlice<UInt8>]?, as label: DocumentLabel, size: UInt64, into place: Place
    ) async -> Result<FilePath, DocumentError> {
        do throws(DocumentError) {
            let file = DocumentEntry.File(size: size, isExecutable: true, version: FileVersion(high: 0, low: 1))
            let writer = try await DocumentWriter.create(
                try DocumentTree(file: file, called: label), from: "fuzz", in: DestinationFolder(place.folder),
                ledger: place.ledger, on: place.loop)
            let missing = try await writer.missing()
            try await writer.begin(missing)
            var before = await writer.progress.verifiedByteCount
            for piece in pieces ?? [records(missing, of: Int(size))[...]] {
                _ = try await writer.submit(Buffer(copying: piece))
                try await writer.settle(leaving: 0)
                let verified = await writer.progress.verifiedByteCount
                expect(verified >= before && verified <= size, "\(verified) bytes are verified")
                before = verified
            }
            try await writer.finish()
            return .success(try await writer.commit())
        } catch {
            return .failure(error)
        }
    }

    /// Whether a stream says the same: what a sender waits for is no part of it.
    private static func isIntact(_ stream: [UInt8], _ intact: [UInt8]) -> Bool {
        stream.count == intact.count
            && stream.indices.allSatisfy { stream[$0] == intact[$0] || $0 % recordSize == 1 }
    }

    /// Small ones, sizes around a chunk's border, any, and sizes that no disk has.
    private static func documentSize(_ kind: UInt8, _ input: inout Input) -> UInt64 {
        switch kind {
        case 0...3: input.number(2) & 0xFFF
        case 4: UInt64(1 << 20) - 8 + input.number(1) & 15
        case 5: UInt64(2 << 20) - 8 + input.number(1) & 15
        case 6: input.number(3) % UInt64(largest)
        case _: UInt64(1) << 50 | input.number(8)
        }
    }

    /// The records of the first `size` bytes of the content, as the specification has them.
    private static func records(_ size: Int) -> [UInt8] {
        let count = (size + ChunkLayout.chunkSize - 1) / ChunkLayout.chunkSize
        return records([0..<UInt64(count)], of: size)
    }

    private static func records(_ chunks: [Range<UInt64>], of size: Int) -> [UInt8] {
        var stream: [UInt8] = []
        for start in chunks.joined().map({ Int($0) * ChunkLayout.chunkSize }) {
            let chunk = content[start..<min(start + ChunkLayout.chunkSize, size)]
            let checksum = chunk.withUnsafeBytes { ChunkChecksum(of: $0) }
            stream += [0, 0]
            stream += chunk
            stream += [UInt8](number: checksum.high, bytes: 8) + [UInt8](number: checksum.low, bytes: 8)
        }
        return stream
    }

    private static func damage(_ stream: inout [UInt8], _ input: inout Input) {
        let kind = input.byte()
        let place = stream.isEmpty ? 0 : Int(input.number(3)) % stream.count
        switch kind & 3 {
        case 0: if !stream.isEmpty { stream[place] ^= input.byte() }
        case 1: stream.removeSubrange(place...)
        case 2: stream.insert(input.byte(), at: place)
        case _: stream += input.bytes(Int(kind >> 2))
        }
    }

    private static func pieces(of stream: [UInt8], _ input: inout Input) -> [ArraySlice<UInt8>] {
        var rest = stream[...]
        var pieces: [ArraySlice<UInt8>] = []
        while !rest.isEmpty {
            let size = input.isEmpty ? rest.count : Int(input.number(2)) << Int(input.byte() & 7)
            pieces.append(rest.prefix(max(size, 1)))
            rest = rest.dropFirst(max(size, 1))
        }
        return pieces
    }

    static func seeds() -> [[UInt8]] {
        let name = Array("\u{8}note.txt".utf8)
        let long = [UInt8](repeating: 110, count: 230)
        return [
            [0, 0, 0] + name, [0, 1, 0] + name + [0, 100, 0, 0, 17, 0], [0x80, 1, 0] + name,
            [4, 8] + name, [4, 9] + name + [0xFF, 0xFF, 2, 0, 1, 0], [5, 8] + name, [5, 15] + name + [0, 9, 7],
            [6, 0x22, 0, 0] + name + [0x40, 0, 4], [7, 0, 0, 0, 0, 0, 0, 0, 0] + name,
            [7] + [UInt8](repeating: 255, count: 8) + name, [8, 1, 0] + name + [0, 0, 0, 9, 1],
            [8, 1, 0] + name + [1, 0, 0, 20], [8, 1, 0] + name + [2, 0, 0, 20, 7],
            [8, 1, 0] + name + [0x1F, 0, 0, 0, 1, 2, 3],
            [0x0C, 8] + name + [1, 0x10, 0, 0], [0x18, 1, 0] + name + [0, 0, 0, 9, 1, 0, 0, 0, 9, 1],
            [0, 1, 0, 230] + long, [0, 1, 0, 2, 46, 46], [0, 1, 0, 4, 97, 47, 98, 0], [0, 1, 0, 3, 0xFF, 10, 27],
        ]
    }
}
