// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

/// What the signatures of a basis say: cut by content, with a digest of each piece.
package struct SignatureBatch: Sendable {
    /// The number of the basis.
    package let basis: Int
    /// Signatures in their wire form, at most 56 KiB.
    package let bytes: [UInt8]
    /// How long making them took the processor; the disk took the rest of the time.
    package let processorTime: Duration
}

/// What a document is built upon, as far as the other device has the same bytes: files of older copies, and of parts of
/// another version. A file with holes is several bases, one for each stretch between them.
///
/// At most ``limit`` bases, of many files the largest, and one file of a folder open at a time. Each request for chunks is
/// told their signatures, which are made anew for that. Belongs to one thread, which reads the bases.
final class Bases {
    /// The most bases: as many as there can be signatures, of which each has at least one.
    static let limit = PieceSignature.limit
    /// How many parts of other versions are kept beside the new one, the one in which most is and the newest: each
    /// takes the room of the whole document, and its origin can say as often as it likes that it has changed.
    static let staleLimit = 2
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
    private var stale: [(record: PartFileRecord, place: PartPlace)] = []
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

    /// Takes another part of the document, of another version or left over from the same one: first the one in which
    /// most is (``UnfinishedDocument/fullness(at:)``). It is in use from then on, and goes with ``removeStale()``.
    ///
    /// - Returns: whether nobody else has it.
    func take(_ unfinished: UnfinishedDocument, at place: PartPlace) -> Bool {
        guard place.ledger.take(unfinished.record) else { return false }
        stale.append((unfinished.record, place))
        return true
    }

    /// Removes the parts beyond ``staleLimit``.
    ///
    /// - Returns: whether there were any.
    @discardableResult
    func removeExcess() -> Bool {
        let excess = stale.dropFirst(Self.staleLimit)
        for (record, place) in excess { place.ledger.removePart(of: record) }
        stale.removeLast(excess.count)
        return !excess.isEmpty
    }

    /// Adds a part that was taken, if it is a file: for all of the document.
    func add(_ unfinished: UnfinishedDocument, at place: PartPlace) {
        guard !unfinished.header.tree.isFolder, let file = BasisFile(unfinished, at: place) else { return }
        add(.part(file)) { _ in true }
    }

    /// Adds the files of a part folder: each counts for the whole document, because it may have another path now.
    ///
    /// First come those that have the size of a file that is needed, and of both the largest.
    func add(_ older: OlderFolder, where isNeeded: (Int) -> Bool) {
        var wanted = Set<UInt64>()
        for file in 0..<tree.layout.fileCount where isNeeded(file) { wanted.insert(tree.layout.size(ofFile: file)) }
        guard !wanted.isEmpty else { return }
        let files = older.files.sorted { $0.size > $1.size }
        let fitting = files.filter { wanted.contains($0.size) }
        let others = files.filter { !wanted.contains($0.size) }
        let (number, paths) = (roots.count, (fitting + others).map(\.path.bytes))
        roots.append(.folder(older.folder, paths))
        for file in paths.indices where sizes.count < limit { add(file, in: number) }
    }

    /// Adds a copy, as far as it has what is needed.
    ///
    /// - Parameter isNeeded: whether something is missing of a file of the document.
    func add(_ copy: OlderCopy, where isNeeded: (Int) -> Bool) {
        switch copy.content {
        case .file(let file): add(.file(file), where: isNeeded)
        case .folder(let folder): add(.copy(folder, leastSize: copy.leastSize), where: isNeeded)
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
            // What cannot be read is not built upon: the other device sends it.
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

    deinit {
        releaseStale()
    }

    /// Builds upon nothing any more, and leaves the parts of other versions to who may go on with them.
    func end() {
        close()
        releaseStale()
    }

    /// Builds upon nothing, and removes the parts of other versions: there is no room for them.
    ///
    /// - Returns: whether there were any.
    func giveUp() -> Bool {
        defer { removeStale() }
        close()
        return !stale.isEmpty
    }

    private func releaseStale() {
        for (record, place) in stale { place.ledger.release(record) }
        stale = []
    }

    /// What is open takes room, also when it was removed.
    private func close() {
        opened = nil
        reader = nil
        roots = []
        bases = []
        sizes = []
    }

    /// Removes the parts of other versions: the new one is whole.
    func removeStale() {
        for (record, place) in stale { place.ledger.removePart(of: record) }
        stale = []
    }
}
