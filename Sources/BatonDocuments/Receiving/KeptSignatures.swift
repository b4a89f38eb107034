// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

/// The signatures of what a document is built upon, kept beside the journal of its part: a transfer that goes on tells
/// them again, and reads none of it.
///
/// They count for a file as long as it is in the state in which they were made, so they are made of files alone on
/// which an edit shows (``BasisFile/isSettled``). Nothing is believed because of them: what is copied from a basis is
/// compared with the SHA-256 of the chunk (``ChunkDecoder``), so that wrong ones cost an attempt, and are removed then.
///
/// The file has a checksum and is not synchronised. One that is damaged, cut short, too long or of another version of
/// the format is as good as none.
struct KeptSignatures {
    /// A stretch of a file in one state.
    struct Basis: Hashable {
        let version: FileVersion
        /// The file, which the version does not say where its number is not kept: others of its size may have its
        /// times. It may have another number then, and is read again.
        let number: BasisFile.Number
        let stretch: Range<UInt64>
    }

    /// The most bytes of the file: 5.25 MiB and a few, of 65,536 bases with one signature each; of a single one 1.25
    /// MiB.
    static let sizeLimit = headSize + 24 + PieceSignature.limit * (64 + PieceSignature.byteCount)

    private static let magic: [UInt8] = Array("baton pieces 2 \n".utf8)
    /// Magic and checksum. Then come the average size of the pieces, the number of bases, each with the place of its
    /// signatures, and these in their wire form.
    private static let headSize = 16 + 16

    /// How large the pieces are.
    let pieceSize: PieceSize
    /// Where the signatures of a basis are.
    private var places: [Basis: Range<Int>] = [:]
    private var bytes: [UInt8] = []
    /// Where those of the basis begin that is being read.
    private var start = 0

    /// None.
    init(pieceSize: PieceSize) {
        self.pieceSize = pieceSize
    }

    /// Reads those that were kept; nil where there are none, or of smaller pieces than there may be.
    ///
    /// - Parameter least: pieces of this size are few enough.
    init?(readingFrom path: FilePath, least: PieceSize) {
        guard
            let status = try? SystemCalls.status(at: path), FileIdentity(status).size <= UInt64(Self.sizeLimit),
            let file = try? SystemCalls.contents(of: path, limit: Int(FileIdentity(status).size)),
            file.starts(with: Self.magic)
        else { return nil }
        var reader = FieldReader(file.dropFirst(Self.magic.count))
        guard
            let high = reader.number(), let low = reader.number(),
            file.dropFirst(Self.headSize).withUnsafeBytes({ ChunkChecksum(of: $0) })
                == ChunkChecksum(high: high, low: low),
            let size = reader.number().flatMap(PieceSize.init(average:)), size.average >= least.average,
            let count = reader.number(), count <= UInt64(PieceSignature.limit)
        else { return nil }
        pieceSize = size
        for _ in 0..<count {
            guard
                let high = reader.number(), let low = reader.number(), let system = reader.number(),
                let inode = reader.number(), let stretch = reader.range(of: UInt64.self),
                let place = reader.range(of: Int.self)
            else { return nil }
            let number = BasisFile.Number(fileSystem: system, inode: inode)
            places[Basis(version: FileVersion(high: high, low: low), number: number, stretch: stretch)] = place
        }
        guard
            let signatures = reader.field(limit: PieceSignature.limit * PieceSignature.byteCount), reader.isAtEnd
        else { return nil }
        bytes = signatures
        let isWithin = places.values.allSatisfy {
            $0.upperBound <= bytes.count && $0.count.isMultiple(of: PieceSignature.byteCount)
        }
        guard isWithin else { return nil }
    }

    /// Whether there are none.
    var isEmpty: Bool { places.isEmpty }

    /// The signatures of a basis in their wire form; nil where they were not kept.
    subscript(_ basis: Basis) -> ArraySlice<UInt8>? { places[basis].map { bytes[$0] } }

    /// Those of these bases, and no others.
    func only(_ bases: some Sequence<Basis>) -> KeptSignatures {
        var kept = KeptSignatures(pieceSize: pieceSize)
        for basis in bases where kept[basis] == nil {
            guard let signatures = self[basis] else { continue }
            kept.append(signatures)
            kept.finish(basis)
        }
        return kept
    }

    /// Takes more signatures of a basis that is being read.
    mutating func append(_ signatures: some Sequence<UInt8>) { bytes += signatures }

    /// A basis is read to its end.
    ///
    /// - Parameter basis: which one it was; nil where what was taken of it cannot be used again.
    mutating func finish(_ basis: Basis?) {
        if let basis { places[basis] = start..<bytes.count } else { bytes.removeLast(bytes.count - start) }
        start = bytes.count
    }

    /// Writes them, over what is there. Where that does not succeed nothing is left there.
    func write(to path: FilePath) throws(Errno) {
        var writer = FieldWriter()
        writer.append(UInt64(pieceSize.average))
        writer.append(UInt64(places.count))
        for (basis, place) in places {
            for number in [basis.version.high, basis.version.low] { writer.append(number) }
            for number in [basis.number.fileSystem, basis.number.inode] { writer.append(number) }
            for number in [basis.stretch.lowerBound, basis.stretch.upperBound] { writer.append(number) }
            for number in [place.lowerBound, place.upperBound] { writer.append(UInt64(number)) }
        }
        writer.append(bytes)
        let checksum = writer.bytes.withUnsafeBytes { ChunkChecksum(of: $0) }
        var head = FieldWriter()
        head.append(checksum.high)
        head.append(checksum.low)
        let file = Self.magic + head.bytes + writer.bytes
        do {
            let descriptor = try SystemCalls.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode: 0o600)
            try file.withUnsafeBufferPointer { (file) throws(Errno) in
                try SystemCalls.write(UnsafeRawBufferPointer(file), to: descriptor, at: 0)
            }
        } catch {
            Self.remove(at: path)
            throw error
        }
    }

    /// Removes what was kept.
    static func remove(at path: FilePath) {
        _ = try? SystemCalls.call { path.withPlatformString { unlink($0) } }
    }
}

extension KeptSignatures.Basis {
    init(_ file: BasisFile, _ stretch: Range<UInt64>) {
        self.init(version: file.version, number: file.number, stretch: stretch)
    }
}

extension FieldReader {
    /// The next two numbers, as a range; nil where they are none.
    fileprivate mutating func range<Bound: FixedWidthInteger>(of _: Bound.Type) -> Range<Bound>? {
        guard
            let lower = number().flatMap(Bound.init(exactly:)), let upper = number().flatMap(Bound.init(exactly:)),
            lower <= upper
        else { return nil }
        return lower..<upper
    }
}
