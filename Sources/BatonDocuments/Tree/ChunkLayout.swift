// SPDX-License-Identifier: Apache-2.0

/// How the bytes of a document's files are cut into chunks.
///
/// A chunk is 1 MiB at a multiple of 1 MiB of its file; a file's last one is what is left, and a file of 0 bytes has
/// none. Chunks are numbered through all files, in the order of the manifest. Offsets of the document count through all
/// files as well: those of a document that is one file are the file's. See "Document ranges" in the wire specification.
package struct ChunkLayout: Sendable, Hashable {
    /// Bytes of every chunk but a file's last: 1 MiB.
    package static let chunkSize = 1 << 20

    /// Where a chunk is.
    package struct Place: Sendable, Hashable {
        /// Which of the document's files, from 0.
        package let file: Int
        /// Bytes of the file before the chunk.
        package let offset: UInt64
        /// Bytes of the chunk, 1 to ``ChunkLayout/chunkSize``.
        package let size: Int
    }

    /// Bytes of all files before each file, and at the end of all.
    private let fileStarts: [UInt64]
    /// Chunks of all files before each file, and at the end of all.
    private let firstChunks: [UInt64]

    /// The layout of a document of files of these sizes.
    ///
    /// - Returns: nil above 2^63 - 1 bytes in all: the largest file offset.
    package init?(fileSizes: some Collection<UInt64>) {
        var starts: [UInt64] = [0]
        var chunks: [UInt64] = [0]
        starts.reserveCapacity(fileSizes.count + 1)
        chunks.reserveCapacity(fileSizes.count + 1)
        var (start, chunk): (UInt64, UInt64) = (0, 0)
        for size in fileSizes {
            guard size <= UInt64(Int64.max) - start else { return nil }
            start += size
            chunk += (size + UInt64(Self.chunkSize) - 1) / UInt64(Self.chunkSize)
            starts.append(start)
            chunks.append(chunk)
        }
        fileStarts = starts
        firstChunks = chunks
    }

    package var fileCount: Int { fileStarts.count - 1 }

    /// Bytes of all files.
    package var documentSize: UInt64 { fileStarts[fileCount] }

    package var chunkCount: UInt64 { firstChunks[fileCount] }

    package var allChunks: Range<UInt64> { 0..<chunkCount }

    /// Bytes of a file. It has to exist.
    package func size(ofFile file: Int) -> UInt64 { fileStarts[file + 1] - fileStarts[file] }

    /// The bytes of a file, among those of the document. It has to exist.
    package func bytes(ofFile file: Int) -> Range<UInt64> { fileStarts[file]..<fileStarts[file + 1] }

    /// The chunks of a file. It has to exist.
    package func chunks(ofFile file: Int) -> Range<UInt64> { firstChunks[file]..<firstChunks[file + 1] }

    /// Whether the document has all these chunks.
    package func contains(_ chunks: Range<UInt64>) -> Bool { chunks.upperBound <= chunkCount }

    /// Where a chunk is. It has to exist.
    package func place(of chunk: UInt64) -> Place {
        let file = Self.last(in: firstChunks, notAbove: chunk)
        let offset = (chunk - firstChunks[file]) * UInt64(Self.chunkSize)
        return Place(file: file, offset: offset, size: Int(min(UInt64(Self.chunkSize), size(ofFile: file) - offset)))
    }

    /// Where a chunk begins in the document. It has to exist, or be the one after the last.
    package func offset(of chunk: UInt64) -> UInt64 {
        guard chunk < chunkCount else { return documentSize }
        let place = place(of: chunk)
        return fileStarts[place.file] + place.offset
    }

    /// Bytes of a chunk. It has to exist.
    package func size(of chunk: UInt64) -> Int { place(of: chunk).size }

    /// Bytes of the document in these chunks. They have to exist.
    package func byteCount(of chunks: Range<UInt64>) -> UInt64 {
        offset(of: chunks.upperBound) - offset(of: chunks.lowerBound)
    }

    /// The chunks that hold these bytes of the document; none for an empty range. The bytes have to exist.
    package func chunks(covering bytes: Range<UInt64>) -> Range<UInt64> {
        let first = chunk(at: bytes.lowerBound)
        return bytes.isEmpty ? first..<first : first..<(chunk(at: bytes.upperBound - 1) + 1)
    }

    /// The chunk that holds a byte of the document, or the one after the last at its end.
    private func chunk(at offset: UInt64) -> UInt64 {
        guard offset < documentSize else { return chunkCount }
        let file = Self.last(in: fileStarts, notAbove: offset)
        return firstChunks[file] + (offset - fileStarts[file]) / UInt64(Self.chunkSize)
    }

    /// The index of the last number that is not above `value`; numbers rise and begin with 0.
    private static func last(in numbers: [UInt64], notAbove value: UInt64) -> Int {
        var (low, high) = (0, numbers.count)
        while high - low > 1 {
            let middle = (low + high) / 2
            if numbers[middle] <= value { low = middle } else { high = middle }
        }
        return low
    }
}
