// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

/// Signatures of a basis: it is cut by content, and each piece has a digest.
package struct SignatureBatch: Sendable {
    /// The number of the basis.
    package let basis: Int
    /// Signatures in their wire form, at most 56 KiB.
    package let bytes: [UInt8]
    /// How long making them took the processor; the disk took the rest of the time.
    package let processorTime: Duration
}

/// The files that a document is built upon: those of older copies, and of older parts. A file with holes is several
/// bases, one for each stretch between them.
///
/// There are at most ``limit`` bases, of many files the largest, and one file of a folder is open at a time. Each
/// request for chunks is told their signatures, which are made anew. The bases belong to one thread.
final class Bases {
    /// The most bases: as many as there can be signatures, of which each has at least one.
    static let limit = PieceSignature.limit
    private static let batchSize = 32 << 10
    /// After this time what there is of a batch is told, be it nothing: pieces of a large copy on a slow disk are few
    /// in a minute, and the other device has to hear that there is still somebody, and this user what is waited for.
    static let longestSilence = Duration.seconds(1)
    /// Where a basis is.
    private struct Basis {
        let root: Int
        /// The file of the document that it is looked up for, or its number in a part folder; nil for all.
        let file: Int?
        let stretch: Range<UInt64>
    }

    /// Bytes of each basis.
    private(set) var sizes: [UInt64] = []

    private let tree: DocumentTree
    private let limit: Int
    private let longestSilence: Duration
    private var roots: [BasisRoot] = []
    private var bases: [Basis] = []
    private var reader: BasisReader?
    private var next = 0
    /// The file of a folder that was read last.
    private var opened: (root: Int, file: Int?, basis: BasisFile)?

    /// Nothing to build upon.
    init(of tree: DocumentTree, limit: Int = Bases.limit, longestSilence: Duration = Bases.longestSilence) {
        self.tree = tree
        self.limit = limit
        self.longestSilence = longestSilence
    }

    /// How large the pieces are that signatures are of; nil where there is nothing to build upon.
    var pieceSize: PieceSize? {
        // Files with holes can be of any size that an origin has thought of.
        let size = sizes.reduce(UInt64(0)) { $0.addingReportingOverflow($1).overflow ? .max : $0 + $1 }
        return size == 0 ? nil : PieceSize.forBases(totalSize: size, fileCount: sizes.count)
    }

    /// Adds an older part. Of a folder each file counts for the whole document, because it may have another path now:
    /// first those that have the size of a file that is needed, and of both the largest.
    func add(_ part: PartContent, _ record: PartFileRecord, at place: PartPlace, where isNeeded: (Int) -> Bool) {
        let layout = part.tree.layout
        guard part.tree.isFolder else {
            // Unsure chunks are as good as others, because all of them are read.
            let file = BasisFile(record.name, beneath: place.folder.file, limit: part.endOfFile)
            if let file { add(.file(file)) { _ in true } }
            return
        }
        var wanted = Set<UInt64>()
        for file in 0..<tree.layout.fileCount where isNeeded(file) { wanted.insert(tree.layout.size(ofFile: file)) }
        guard
            !wanted.isEmpty,
            let folder = try? SystemCalls.openFolder([UInt8(ascii: ".")], within: part.part.root.descriptor)
        else { return }
        let files = part.files.map { (size: layout.size(ofFile: $0), path: part.tree.entry(ofFile: $0).path.bytes) }
            .sorted { $0.size > $1.size }
        let paths = (files.filter { wanted.contains($0.size) } + files.filter { !wanted.contains($0.size) }).map(\.path)
        roots.append(.part(BasisFolder(folder), paths))
        for file in paths.indices where sizes.count < limit { add(file, in: roots.count - 1) }
    }

    /// Adds a copy, as far as it has what is needed.
    ///
    /// - Parameter isNeeded: whether something is missing of a file of the document.
    func add(_ copy: OlderCopy, where isNeeded: (Int) -> Bool) {
        switch copy.content {
        case .file(let file): add(.file(file), where: isNeeded)
        case .folder(let folder): add(.folder(folder, leastSize: copy.leastSize), where: isNeeded)
        }
    }

    private func add(_ root: BasisRoot, where isNeeded: (Int) -> Bool) {
        let number = roots.count
        roots.append(root)
        guard root.hasFiles else { return add(nil, in: number) }
        for file in largestFirst(where: isNeeded) where sizes.count < limit { add(file, in: number) }
    }

    /// The files of the document that are needed, the largest first: there may be more of them than can be told of, and
    /// what is left out then is small. Those within one power of two keep their order, in which a disk is likely to
    /// have them.
    private func largestFirst(where isNeeded: (Int) -> Bool) -> [Int] {
        (0..<tree.layout.fileCount).filter(isNeeded)
            .map { (power: tree.layout.size(ofFile: $0).leadingZeroBitCount, file: $0) }
            .sorted(by: <).map(\.file)
    }

    private func add(_ file: Int?, in root: Int) {
        guard let found = roots[root].open(file, of: tree) else { return }
        for stretch in found.stretches() where sizes.count < limit {
            bases.append(Basis(root: root, file: file, stretch: stretch))
            sizes.append(UInt64(stretch.count))
        }
    }

    /// Signatures of what comes next, none where reading it takes long; nil when all is told. After that it is told
    /// again, for another request.
    func nextSignatures() -> SignatureBatch? {
        let deadline = MonotonicClock.deadline(after: longestSilence) ?? .max
        guard let size = pieceSize else { return nil }
        if reader == nil { reader = BasisReader(size: size) }
        while next < bases.count, (reader?.signatureCount ?? 0) < PieceSignature.limit {
            let basis = next
            let bytes = makeSignatures(basis, until: deadline)
            guard bytes.isEmpty, MonotonicClock.nanoseconds() < deadline else {
                let processorTime = reader?.takeProcessorTime() ?? .zero
                return SignatureBatch(basis: basis, bytes: bytes, processorTime: processorTime)
            }
        }
        opened = nil
        reader = nil
        next = 0
        return nil
    }

    /// Reads on in a basis, one step at least.
    private func makeSignatures(_ basis: Int, until deadline: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        var isReading = true
        while isReading, bytes.count < Self.batchSize {
            // Bytes that cannot be read are not built upon, and the other device sends them.
            guard let file = file(of: basis) else {
                reader?.skip()
                isReading = false
                break
            }
            do {
                isReading =
                    try reader?.step(in: file.descriptor, bases[basis].stretch, appendingTo: &bytes) ?? false
            } catch {
                isReading = false
            }
            if MonotonicClock.nanoseconds() >= deadline { break }
        }
        if !isReading { next += 1 }
        return bytes
    }

    /// Reads bytes of a basis: fewer than asked for where it is not what it was.
    func read(_ basis: Int, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
        guard let file = file(of: basis) else { return 0 }
        let place = bases[basis]
        let start = place.stretch.lowerBound + offset
        return try SystemCalls.read(file.descriptor, into: bytes, at: start)
    }

    private func file(of basis: Int) -> BasisFile? {
        let place = bases[basis]
        if let opened, opened.root == place.root, opened.file == place.file { return opened.basis }
        opened = nil
        guard let found = roots[place.root].open(place.file, of: tree) else { return nil }
        opened = (place.root, place.file, found)
        return found
    }

    /// Builds upon nothing any more. What is open takes room, also when it was removed.
    func end() {
        opened = nil
        reader = nil
        roots = []
        bases = []
        sizes = []
    }
}
