import BatonEventLoop
import Glibc
public import SystemPackage

/// A file of this device that a document may be built upon: an older copy of it.
public final class BasisFile: Sendable {
    /// How many files a document can be built upon: 16.
    public static let limit = 16

    /// Bytes of it that are used.
    let size: UInt64
    let file: OwnedDescriptor

    private init(_ file: consuming OwnedDescriptor, size: UInt64) {
        self.file = file
        self.size = size
    }

    /// Opens a copy that the user names. Blocking.
    ///
    /// - Throws: `missing`, `unreadable`, `isFolder`, `notRegularFile`, ...
    public convenience init(opening path: FilePath) throws(DocumentError) {
        let opened = try DocumentSource.open(path)
        let size = opened.source.size
        self.init(opened.takeFile(), size: size)
    }

    /// The part of an earlier version, cut to what has come of it.
    convenience init?(_ stale: UnfinishedDocument, at place: PartPlace) {
        guard
            let content = (try? TransferJournal.open(stale.journal, boot: place.boot))??.content,
            let end = content.verified.ranges.last?.upperBound,
            let file = try? place.folder.reopenFile(
                stale.record.name, inode: stale.record.inode, for: stale.header.tree.label)
        else { return nil }
        let size = stale.header.tree.layout.offset(of: end)
        let number = file.rawValue
        guard (try? SystemCalls.call({ ftruncate(number, off_t(size)) })) != nil else { return nil }
        self.init(file, size: size)
    }
}

/// What the signatures of a file say: cut by content, with a digest of each piece.
public struct SignatureBatch: Sendable {
    /// The number of the file.
    public let basis: Int
    /// Signatures in their wire form, at most 56 KiB.
    public let bytes: [UInt8]
}

/// The files that a document is built upon, as far as the other device has the same bytes.
///
/// Belongs to one thread, which reads them.
final class Bases {
    private static let batchSize = 32 << 10

    private(set) var files: [BasisFile]
    private var stale: [(record: PartFileRecord, place: PartPlace)] = []
    private var reader: BasisReader?
    private var next = 0

    init(_ files: [BasisFile]) {
        self.files = Array(files.prefix(BasisFile.limit))
    }

    /// How large the pieces are that signatures are of; nil where there is nothing to build upon.
    var pieceSize: PieceSize? {
        let size = files.reduce(0) { $0 + $1.size }
        return size == 0 ? nil : PieceSize.forBases(totalSize: size, fileCount: files.count)
    }

    /// Adds the part of another version of the document. It is in use from then on, and goes with ``removeStale()``.
    func add(_ unfinished: UnfinishedDocument, at place: PartPlace) {
        guard files.count < BasisFile.limit, place.ledger.take(unfinished.record) else { return }
        stale.append((unfinished.record, place))
        // A folder's files have no part of their own.
        guard !unfinished.header.tree.isFolder, let file = BasisFile(unfinished, at: place) else { return }
        files.append(file)
    }

    /// Signatures of what comes next; nil when all is told.
    func nextSignatures() throws(DocumentError) -> SignatureBatch? {
        guard let size = pieceSize else { return nil }
        if reader == nil { reader = BasisReader(size: size) }
        while next < files.count {
            let basis = next
            var bytes: [UInt8] = []
            do {
                while bytes.count < Self.batchSize {
                    guard try reader?.step(in: files[basis].file, appendingTo: &bytes) == true else {
                        next += 1
                        break
                    }
                }
            } catch {
                // What cannot be read is not built upon: the other device sends it.
                next = files.count
                return nil
            }
            if !bytes.isEmpty { return SignatureBatch(basis: basis, bytes: bytes) }
        }
        return nil
    }

    /// Reads bytes of a file.
    func read(_ basis: Int, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
        try SystemCalls.read(files[basis].file, into: bytes, at: offset)
    }

    /// Leaves the parts of other versions to who may go on with them.
    func releaseStale() {
        for (record, place) in stale { place.ledger.release(record) }
        stale = []
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
