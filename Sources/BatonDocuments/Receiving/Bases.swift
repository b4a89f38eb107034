import BatonEventLoop
import Glibc
import SystemPackage

/// What the signatures of a basis say: cut by content, with a digest of each piece.
public struct SignatureBatch: Sendable {
    /// The number of the basis.
    public let basis: Int
    /// Signatures in their wire form, at most 56 KiB.
    public let bytes: [UInt8]
}

/// What a document is built upon, as far as the other device has the same bytes: files of older copies, of parts of another
/// version, and what was put aside. A file with holes is several bases, one for each stretch between them.
///
/// At most ``limit`` bases, and one file of a folder open at a time. Belongs to one thread, which reads them.
final class Bases {
    /// The most bases: as many as there can be signatures, of which each has at least one.
    static let limit = PieceSignature.limit
    /// How many parts of other versions are kept beside the new one: each takes the room of the whole document, and its
    /// origin can say as often as it likes that it has changed.
    static let staleLimit = 2
    private static let batchSize = 32 << 10

    /// Where a basis is.
    private struct Basis {
        let root: Int
        /// The file of the document that it is looked up for, or its number among those that were moved; nil for all.
        let file: Int?
        let start: UInt64
    }

    /// Bytes of each basis.
    private(set) var sizes: [UInt64] = []

    private let tree: DocumentTree
    private var roots: [BasisRoot] = []
    private var bases: [Basis] = []
    private var stale: [(record: PartFileRecord, place: PartPlace)] = []
    private var reader: BasisReader?
    private var next = 0
    /// The file of a folder that was read last.
    private var opened: (root: Int, file: Int?, basis: BasisFile)?

    /// Nothing to build upon.
    init(of tree: DocumentTree) {
        self.tree = tree
    }

    /// How large the pieces are that signatures are of; nil where there is nothing to build upon.
    var pieceSize: PieceSize? {
        let size = sizes.reduce(0, +)
        return size == 0 ? nil : PieceSize.forBases(totalSize: size, fileCount: sizes.count)
    }

    /// Adds another part of the document, of another version or left over from the same one. It is in use from then on, and
    /// goes with ``removeStale()``; beyond ``staleLimit`` at once.
    func add(_ unfinished: UnfinishedDocument, at place: PartPlace) {
        guard place.ledger.take(unfinished.record) else { return }
        guard stale.count < Self.staleLimit else {
            _ = unfinished.record.removePart()
            return place.ledger.remove(unfinished.record)
        }
        stale.append((unfinished.record, place))
        // What is in another part folder may be an older state of everything: it goes, and is not gone through.
        guard !unfinished.header.tree.isFolder, let file = BasisFile(unfinished, at: place) else { return }
        add(.file(file)) { _ in true }
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

    /// Adds what was put aside.
    func add(aside: consuming OwnedDescriptor, where isNeeded: (Int) -> Bool) {
        let folder = BasisFolder(aside)
        addMoved(in: folder, where: isNeeded)
        for state in AsideName.State.allCases { add(.aside(folder, state), where: isNeeded) }
    }

    /// Adds what had another path: each counts for the whole document, first those that have the size of a file that is
    /// needed.
    private func addMoved(in folder: BasisFolder, where isNeeded: (Int) -> Bool) {
        var wanted = Set<UInt64>()
        for file in 0..<tree.layout.fileCount where isNeeded(file) { wanted.insert(tree.layout.size(ofFile: file)) }
        guard !wanted.isEmpty, let names = try? SystemCalls.names(in: folder.descriptor, atLeast: Self.limit) else {
            return
        }
        var (fitting, others): ([[UInt8]], [[UInt8]]) = ([], [])
        for name in names where AsideName.isOfMoved(name) {
            let size = (try? SystemCalls.status(ofName: name, in: folder.descriptor))?.st_size ?? 0
            if wanted.contains(UInt64(clamping: size)) { fitting.append(name) } else { others.append(name) }
        }
        let number = roots.count
        let moved = fitting + others
        roots.append(.moved(folder, moved))
        for file in moved.indices where sizes.count < Self.limit { add(file, in: number) }
    }

    private func add(_ root: BasisRoot, where isNeeded: (Int) -> Bool) {
        let number = roots.count
        roots.append(root)
        guard root.hasFiles else { return add(nil, in: number) }
        for file in 0..<tree.layout.fileCount where sizes.count < Self.limit && isNeeded(file) {
            add(file, in: number)
        }
    }

    private func add(_ file: Int?, in root: Int) {
        guard let found = roots[root].open(file, of: tree) else { return }
        for stretch in found.stretches() where sizes.count < Self.limit {
            bases.append(Basis(root: root, file: file, start: stretch.lowerBound))
            sizes.append(UInt64(stretch.count))
        }
    }

    /// Signatures of what comes next; nil when all is told.
    func nextSignatures() -> SignatureBatch? {
        guard let size = pieceSize else { return nil }
        if reader == nil { reader = BasisReader(size: size) }
        while next < bases.count {
            let basis = next
            let stretch = bases[basis].start..<bases[basis].start + sizes[basis]
            var bytes: [UInt8] = []
            // What cannot be read is not built upon: the other device sends it.
            var isReading = true
            while isReading, bytes.count < Self.batchSize {
                guard let file = file(of: basis) else {
                    reader?.skip()
                    isReading = false
                    break
                }
                isReading = (try? reader?.step(in: file.descriptor, stretch, appendingTo: &bytes)) ?? false
            }
            if !isReading { next += 1 }
            if !bytes.isEmpty { return SignatureBatch(basis: basis, bytes: bytes) }
        }
        opened = nil
        return nil
    }

    /// Reads bytes of a basis: fewer than asked for where it is not what it was.
    func read(_ basis: Int, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
        guard let file = file(of: basis) else { return 0 }
        return try SystemCalls.read(file.descriptor, into: bytes, at: bases[basis].start + offset)
    }

    private func file(of basis: Int) -> BasisFile? {
        let place = bases[basis]
        if let opened, opened.root == place.root, opened.file == place.file { return opened.basis }
        opened = nil
        guard let found = roots[place.root].open(place.file, of: tree) else { return nil }
        opened = (place.root, place.file, found)
        return found
    }

    /// Leaves the parts of other versions to who may go on with them.
    func releaseStale() {
        for (record, place) in stale { place.ledger.release(record) }
        stale = []
    }

    /// Builds upon nothing, and removes the parts of other versions: there is no room for them.
    ///
    /// - Returns: whether there were any.
    func giveUp() -> Bool {
        guard !stale.isEmpty else { return false }
        // What is open takes room as well.
        opened = nil
        reader = nil
        roots = []
        bases = []
        sizes = []
        removeStale()
        return true
    }

    /// Removes the parts of other versions: the new one is whole.
    func removeStale() {
        for (record, place) in stale {
            _ = record.removePart()
            place.ledger.remove(record)
        }
        stale = []
    }
}

extension BasisFile {
    /// The part of another version, as far as something of it has come. It stays what it is: it may be another document of
    /// the same name, which somebody goes on with.
    fileprivate convenience init?(_ stale: UnfinishedDocument, at place: PartPlace) {
        guard
            let content = (try? TransferJournal.open(stale.journal, boot: place.boot))??.content,
            let end = content.verified.ranges.last?.upperBound,
            let file = try? place.folder.reopenFile(
                stale.record.name, inode: stale.record.inode, for: stale.header.tree.label)
        else { return nil }
        try? self.init(file, limit: stale.header.tree.layout.offset(of: end))
    }
}
