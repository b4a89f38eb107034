// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

/// What a document is built upon, as far as the other device has the same bytes: files of older copies, of parts of
/// another version, and what was put aside. A file with holes is several bases, one for each stretch between them.
///
/// At most ``limit`` bases, of many files the largest, and one file of a folder open at a time. Until all is told, the
/// signatures are held as well: 1.25 MiB, with as many bases as there can be some 10 MiB, and twice as much while they
/// are read or written. Belongs to one thread, which reads them.
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
    /// A part of which nothing has come is kept for signatures of so many bytes, and not for less: 64 MiB, which a slow
    /// disk reads in a second.
    static let leastKept: UInt64 = 64 << 20
    /// How often the signatures are written that were made: 10 s, of which a process that is killed loses the work.
    private static let writeInterval = Duration.seconds(10)
    /// As many bytes of signatures as are told at once that are not made.
    private static let keptBatchSize = batchSize / PieceSignature.byteCount * PieceSignature.byteCount

    /// Where a basis is.
    private struct Basis {
        let root: Int
        /// The file of the document that it is looked up for, or its number among those that were moved; nil for all.
        let file: Int?
        let state: KeptSignatures.Basis
        /// See ``BasisFile/isSettled``.
        let isSettled: Bool
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
    /// The signatures that were made by now, or by an earlier transfer.
    private var kept: KeptSignatures?
    /// Where they are kept; nil where they are not.
    private var keptPath: FilePath?
    /// Whether there are more of them than are kept.
    private var hasMade = false
    /// When those are written that were made.
    private var nextWrite: UInt64 = 0
    /// Bytes of the bases of which signatures are kept.
    private var keptByteCount: UInt64 = 0
    /// Bytes of kept signatures that were told of the next basis.
    private var told = 0
    /// Whether all was told to a request before, so that what was kept of it was written down.
    private var hasTold = false
    /// The file of a folder that was read last.
    private var opened: (root: Int, file: Int?, basis: BasisFile)?
    /// Whether something could not be built since the last request began.
    private var hasMissed = false
    /// Requests in which something could not be built.
    private var missCount = 0

    /// Nothing to build upon.
    init(of tree: DocumentTree, limit: Int = Bases.limit, longestSilence: Duration = Bases.longestSilence) {
        self.tree = tree
        self.limit = limit
        self.longestSilence = longestSilence
    }

    /// How large the pieces are that signatures are of; nil where there is nothing to build upon.
    var pieceSize: PieceSize? { kept?.pieceSize ?? leastPieceSize }

    private var leastPieceSize: PieceSize? {
        // Files with holes can be of any size that an origin has thought of.
        let size = sizes.reduce(UInt64(0)) { $0.addingReportingOverflow($1).overflow ? .max : $0 + $1 }
        return size == 0 ? nil : PieceSize.forBases(totalSize: size, fileCount: sizes.count)
    }

    /// Adds another part of the document, of another version or left over from the same one: first the one in which
    /// most is (``UnfinishedDocument/fullness(at:)``). It is in use from then on, and goes with ``removeStale()``;
    /// beyond ``staleLimit`` at once.
    func add(_ unfinished: UnfinishedDocument, at place: PartPlace) {
        guard place.ledger.take(unfinished.record) else { return }
        guard stale.count < Self.staleLimit else { return place.ledger.removePart(of: unfinished.record) }
        stale.append((unfinished.record, place))
        // What is in another part folder may be an older state of everything: it goes, and is not gone through.
        guard !unfinished.header.tree.isFolder, let file = BasisFile(unfinished, at: place) else { return }
        add(.part(file)) { _ in true }
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

    /// Adds what another version has left in the part. What is built upon other files has no need of it: they come
    /// first.
    func add(_ remnants: Remnants, where isNeeded: (Int) -> Bool) { add(.remnants(remnants), where: isNeeded) }

    /// Adds what was put aside.
    func add(aside: consuming OwnedDescriptor, where isNeeded: (Int) -> Bool) {
        let folder = BasisFolder(aside)
        addMoved(in: folder, where: isNeeded)
        for state in AsideName.State.allCases { add(.aside(folder, state), where: isNeeded) }
    }

    /// Adds what had another path: each counts for the whole document, first those that have the size of a file that is
    /// needed, and of both the largest.
    private func addMoved(in folder: BasisFolder, where isNeeded: (Int) -> Bool) {
        var wanted = Set<UInt64>()
        for file in 0..<tree.layout.fileCount where isNeeded(file) { wanted.insert(tree.layout.size(ofFile: file)) }
        guard !wanted.isEmpty, let names = try? SystemCalls.names(in: folder.descriptor, atLeast: limit) else {
            return
        }
        let sized = names.filter(AsideName.isOfMoved).map { name in
            let status = try? SystemCalls.status(ofName: name, in: folder.descriptor)
            return (size: UInt64(clamping: status?.st_size ?? 0), name: name)
        }.sorted { $0.size > $1.size }
        let fitting = sized.filter { wanted.contains($0.size) }
        let others = sized.filter { !wanted.contains($0.size) }
        let number = roots.count
        let moved = (fitting + others).map(\.name)
        roots.append(.moved(folder, moved))
        for file in moved.indices where sizes.count < limit { add(file, in: number) }
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
            let state = KeptSignatures.Basis(found, stretch)
            let isSettled = found.isSettled && roots[root].remnants == nil
            bases.append(Basis(root: root, file: file, state: state, isSettled: isSettled))
            sizes.append(UInt64(stretch.count))
        }
    }

    /// Keeps the signatures, and tells those that an earlier transfer has kept, be it one of another version of the
    /// document. All bases are known by now.
    ///
    /// The pieces stay as large as they were, also where fewer bases are left: they would all have to be read
    /// otherwise.
    func keepSignatures(at path: FilePath) {
        guard leastPieceSize != nil else { return }
        keptPath = path
        kept = readKept(at: path)
        if kept == nil {
            kept = readStale()
            // The parts of other versions may go before this one does.
            hasMade = kept != nil
        }
        countKept()
    }

    /// What is kept of these bases beside a part of another version; nil where nothing is.
    private func readStale() -> KeptSignatures? {
        for path in staleSignatures {
            if let found = readKept(at: path) { return found }
        }
        return nil
    }

    /// Where signatures are kept beside parts of other versions.
    private var staleSignatures: [FilePath] { stale.map { $0.place.ledger.signatures(of: $0.record) } }

    /// Whether reading again what signatures are kept of would take long.
    var isWorthKeeping: Bool { keptByteCount >= Self.leastKept }

    private func countKept() {
        guard let kept else { return }
        keptByteCount = bases.reduce(0) { kept[$1.state] == nil ? $0 : $0 + UInt64($1.state.stretch.count) }
    }

    /// What is kept of these bases; nil where nothing is.
    private func readKept(at path: FilePath) -> KeptSignatures? {
        guard let least = pieceSize else { return nil }
        let found = KeptSignatures(readingFrom: path, least: least)?.only(bases.lazy.map(\.state))
        return found?.isEmpty == true ? nil : found
    }

    /// Signatures have turned out to be wrong: no other transfer tells them.
    func forgetSignatures() {
        guard let keptPath else { return }
        for path in [keptPath] + staleSignatures { KeptSignatures.remove(at: path) }
        (keptByteCount, hasMade) = (0, false)
    }

    /// Signatures of what comes next, none where reading it takes long; nil when all is told. After that it is told
    /// again, for another request.
    func nextSignatures() -> SignatureBatch? {
        let deadline = MonotonicClock.deadline(after: longestSilence) ?? .max
        guard let size = pieceSize else { return nil }
        if reader == nil {
            reader = BasisReader(size: size)
            nextWrite = MonotonicClock.deadline(after: Self.writeInterval) ?? .max
            for root in roots { root.remnants?.beginTelling() }
            if kept == nil || hasTold {
                kept = keptPath.flatMap { readKept(at: $0) } ?? KeptSignatures(pieceSize: size)
            }
        }
        while next < bases.count, (reader?.signatureCount ?? 0) < PieceSignature.limit {
            let basis = next
            let bytes = tellKept(basis) ?? makeSignatures(basis, until: deadline)
            guard bytes.isEmpty, MonotonicClock.nanoseconds() < deadline else {
                let processorTime = reader?.takeProcessorTime() ?? .zero
                return SignatureBatch(basis: basis, bytes: bytes, processorTime: processorTime)
            }
        }
        opened = nil
        reader = nil
        next = 0
        told = 0
        hasTold = true
        writeKept()
        return nil
    }

    /// Signatures of a basis that were kept; nil where it has to be read.
    private func tellKept(_ basis: Int) -> [UInt8]? {
        guard let all = kept?[bases[basis].state], let count = reader?.signatureCount else { return nil }
        let room = (PieceSignature.limit - count) * PieceSignature.byteCount
        let bytes = Array(all.dropFirst(told).prefix(min(room, Self.keptBatchSize)))
        told += bytes.count
        reader?.count(others: bytes.count / PieceSignature.byteCount)
        if told == all.count {
            next += 1
            told = 0
        }
        return bytes
    }

    /// Reads on in a basis, one step at least.
    private func makeSignatures(_ basis: Int, until deadline: UInt64) -> [UInt8] {
        let (state, isSettled) = (bases[basis].state, bases[basis].isSettled)
        var bytes: [UInt8] = []
        // What cannot be read is not built upon: the other device sends it.
        var (isReading, isWhole) = (true, false)
        while isReading, bytes.count < Self.batchSize {
            guard let file = file(of: basis) else {
                reader?.skip()
                isReading = false
                break
            }
            do {
                isReading = try reader?.step(in: file.descriptor, state.stretch, appendingTo: &bytes) ?? false
                // What the limit has cut short is read again where there is room for all of it.
                isWhole = isSettled && KeptSignatures.Basis(file, state.stretch) == state && reader?.hasLeftOut == false
            } catch {
                (isReading, isWhole) = (false, false)
            }
            if MonotonicClock.nanoseconds() >= deadline { break }
        }
        kept?.append(bytes)
        guard !isReading else { return bytes }
        kept?.finish(isWhole ? state : nil)
        if isWhole { hasMade = true }
        next += 1
        if MonotonicClock.nanoseconds() >= nextWrite {
            writeMade()
            nextWrite = MonotonicClock.deadline(after: Self.writeInterval) ?? .max
        }
        return bytes
    }

    /// Writes down what was made, of which no basis is being read. Where that does not succeed it is made again another
    /// time.
    private func writeMade() {
        guard hasMade, let keptPath else { return }
        hasMade = false
        if (try? kept?.write(to: keptPath)) != nil { countKept() } else { keptByteCount = 0 }
    }

    /// All was told.
    private func writeKept() {
        guard let size = pieceSize else { return }
        writeMade()
        kept = KeptSignatures(pieceSize: size)
    }

    /// Reads bytes of a basis: fewer than asked for where it is not what it was.
    func read(_ basis: Int, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
        guard let file = file(of: basis) else { return 0 }
        let place = bases[basis]
        let start = place.state.stretch.lowerBound + offset
        let count = try SystemCalls.read(file.descriptor, into: bytes, at: start)
        if let remnants = roots[place.root].remnants, let file = place.file {
            remnants.restore(UnsafeMutableRawBufferPointer(rebasing: bytes[..<count]), ofFile: file, at: start)
        }
        return count
    }

    /// Whether a basis is written over meanwhile, so that what it had may be gone.
    func isTransient(_ basis: Int) -> Bool { roots[bases[basis].root].remnants != nil }

    /// Whether a basis is a file of this user's own.
    func isOfUser(_ basis: Int) -> Bool { roots[bases[basis].root].isOfUser }

    /// A chunk could not be built, because what it was to be built upon was written over. It comes again with another
    /// request.
    func noteMiss() { hasMissed = true }

    /// All that was asked for has come. What is missing for the ``Remnants/attemptLimit``th time is not built upon
    /// remnants any more.
    func endRequest() {
        guard hasMissed else { return }
        hasMissed = false
        missCount += 1
        guard missCount >= Remnants.attemptLimit else { return }
        let stays = bases.indices.map { !isTransient($0) }
        (bases, sizes) = (
            zip(bases, stays).filter(\.1).map(\.0), zip(sizes, stays).filter(\.1).map(\.0)
        )
        for root in roots { root.remnants?.endTelling() }
        opened = nil
        if bases.isEmpty { (kept, keptPath) = (nil, nil) }
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
        kept?.finish(nil)
        writeMade()
        close()
        releaseStale()
    }

    /// Builds upon nothing, and removes the parts of other versions: there is no room for them.
    func giveUp() {
        close()
        removeStale()
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
        kept = nil
        keptPath = nil
    }

    /// Removes the parts of other versions: the new one is whole.
    func removeStale() {
        for (record, place) in stale { place.ledger.removePart(of: record) }
        stale = []
    }
}
