// SPDX-License-Identifier: Apache-2.0

import SystemPackage

/// Makes the content of chunks that came encoded.
struct ChunkDecoder: ~Copyable {
    private let label: DocumentLabel
    private var decompressor: ChunkDecompressor?

    init(label: DocumentLabel) {
        self.label = label
    }

    /// Fills `content` from what came.
    ///
    /// - Throws: `badRecord` for what makes no chunk of this size; `basisChanged`, also where an older copy cannot be
    ///   read.
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
