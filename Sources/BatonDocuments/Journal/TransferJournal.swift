import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// Which chunks of an unfinished document are verified and written: an append-only file in the node's state folder.
///
/// After the header it has an entry of 40 bytes for each verified chunk, written after the chunk was, and now and then a
/// *mark*: the entries before this number were synchronised with the disk. A process that is killed takes nothing
/// away that it has written, so within one run of the system every entry counts. After a power cut those count that a
/// mark covers; the chunks of the others are read again and compared (``Content/unsure``). What is not there any more
/// keeps its entry, so a mark of a later run covers the entries of that run alone. What is found to be gone gets an entry
/// that says so. Each entry guards itself: a damaged one
/// costs its chunk, and a damaged header the document.
///
/// Belongs to one thread; every call blocks on the disk.
final class TransferJournal {
    /// Bytes of an entry.
    static let entrySize = 40
    /// The most bytes of a header: 100,000 entries with names of 16 MiB in all.
    static let headerLimit = 40 << 20
    /// The most bytes of a journal that is read: entries of chunks of 128 TiB.
    static let sizeLimit: UInt64 = 6 << 30

    private static let magic: [UInt8] = Array("baton journal 1\n".utf8)
    /// Magic, the header's length and its checksum.
    private static let prefixSize = 16 + 8 + 16

    private enum Kind: UInt64 {
        case chunk = 1
        case mark = 2
        case loss = 3
    }

    /// An entry: kind, number and checksum, and a guard that is a checksum of these and of the entry's place.
    private struct Entry {
        let kind: Kind
        let number: UInt64
        let checksum: ChunkChecksum

        init(kind: Kind, number: UInt64, checksum: ChunkChecksum) {
            self.kind = kind
            self.number = number
            self.checksum = checksum
        }

        /// Reads the entry at a place; nil for a damaged one.
        init?(_ bytes: ArraySlice<UInt8>, at index: UInt64) {
            var reader = FieldReader(bytes)
            guard
                let kind = reader.number().flatMap(Kind.init(rawValue:)), let number = reader.number(),
                let high = reader.number(), let low = reader.number(), reader.number() != nil
            else { return nil }
            self.init(kind: kind, number: number, checksum: ChunkChecksum(high: high, low: low))
            guard withBytes(at: index, { $0.elementsEqual(bytes) }) else { return nil }
        }

        func withBytes<Result>(at index: UInt64, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
            withUnsafeTemporaryAllocation(byteCount: TransferJournal.entrySize, alignment: 8) { bytes in
                let fields = (
                    kind.rawValue.bigEndian, number.bigEndian, checksum.high.bigEndian, checksum.low.bigEndian
                )
                withUnsafeBytes(of: fields) { bytes.copyMemory(from: $0) }
                bytes.storeBytes(of: index.bigEndian, toByteOffset: 32, as: UInt64.self)
                let guardian = ChunkChecksum(of: UnsafeRawBufferPointer(bytes)).low
                bytes.storeBytes(of: guardian.bigEndian, toByteOffset: 32, as: UInt64.self)
                return body(UnsafeRawBufferPointer(bytes))
            }
        }
    }

    /// What a journal says.
    struct Content {
        let header: JournalHeader
        /// Chunks that are there for certain.
        var verified: ChunkSet
        /// Chunks that may be there, to be compared with their checksums.
        var unsure: [(chunk: UInt64, checksum: ChunkChecksum)]
    }

    private let file: OwnedDescriptor
    private var end: UInt64
    /// Entries that are written, counted from the header on.
    private(set) var entryCount: UInt64
    /// The entries before this one are of another run of the system: no mark of this one can vouch for them.
    private let markStart: UInt64
    private var pending: [UInt8] = []

    private init(_ file: consuming OwnedDescriptor, end: UInt64, entryCount: UInt64, markStart: UInt64 = 0) {
        self.file = file
        self.end = end
        self.entryCount = entryCount
        self.markStart = markStart
    }

    /// Begins a journal, in place of what is there.
    static func create(at path: FilePath, _ header: JournalHeader) throws(Errno) -> TransferJournal {
        let file = try SystemCalls.open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, mode: 0o600)
        let fields = header.encoded
        let checksum = fields.withUnsafeBytes { ChunkChecksum(of: $0) }
        var writer = FieldWriter()
        writer.append(UInt64(fields.count))
        writer.append(checksum.high)
        writer.append(checksum.low)
        let bytes = magic + writer.bytes + fields
        try bytes.withUnsafeBufferPointer { (bytes) throws(Errno) in
            try SystemCalls.write(UnsafeRawBufferPointer(bytes), to: file, at: 0)
        }
        return TransferJournal(file, end: UInt64(bytes.count), entryCount: 0)
    }

    /// Opens a journal to go on with it.
    ///
    /// - Parameter boot: the present run of the system.
    /// - Returns: the journal and what it says; nil where it is damaged beyond use.
    static func open(
        _ path: FilePath, boot: BootID
    ) throws(Errno) -> (journal: TransferJournal, content: Content)? {
        let file = try SystemCalls.open(path, O_RDWR | O_NOFOLLOW)
        guard let (header, start) = try readHeader(file) else { return nil }
        let size = UInt64(clamping: try SystemCalls.status(of: file).st_size)
        guard size >= start, size <= sizeLimit else { return nil }
        let count = (size - start) / UInt64(entrySize)
        let isSameRun = header.boot == boot
        let content = try readEntries(of: file, from: start, count: count, header, trustsAll: isSameRun)
        // What was cut in the middle is written over.
        let journal = TransferJournal(
            file, end: start + count * UInt64(entrySize), entryCount: count, markStart: isSameRun ? 0 : count)
        return (journal, content)
    }

    /// The header of a journal, without its entries; nil where there is none.
    static func header(at path: FilePath) -> JournalHeader? {
        guard let file = try? SystemCalls.open(path, O_RDONLY | O_NOFOLLOW) else { return nil }
        return (try? readHeader(file))??.header
    }

    /// Takes note of a chunk that was verified and written. It is kept with the next ``flush()``.
    func append(_ chunk: UInt64, _ checksum: ChunkChecksum) {
        appendEntry(.chunk, chunk, checksum)
    }

    /// Takes note that the document's bytes of the first `count` entries are synchronised with the disk, as far as they
    /// are of this run of the system.
    func mark(_ count: UInt64) {
        guard count > markStart else { return }
        // Where an entry of a chunk has its checksum, a mark has the first entry that it covers.
        appendEntry(.mark, count, ChunkChecksum(high: 0, low: markStart))
    }

    /// Takes note that a chunk is not there any more, whatever was said before.
    func lose(_ chunk: UInt64) {
        appendEntry(.loss, chunk, ChunkChecksum(high: 0, low: 0))
    }

    /// Writes what was taken note of.
    func flush() throws(Errno) {
        guard !pending.isEmpty else { return }
        let (bytes, start) = (pending, end)
        try bytes.withUnsafeBufferPointer { (bytes) throws(Errno) in
            try SystemCalls.write(UnsafeRawBufferPointer(bytes), to: file, at: start)
        }
        end += UInt64(bytes.count)
        pending.removeAll(keepingCapacity: true)
    }

    /// Makes what was written durable.
    func synchronize() throws(Errno) {
        try SystemCalls.synchronize(file)
    }

    private func appendEntry(_ kind: Kind, _ number: UInt64, _ checksum: ChunkChecksum) {
        Entry(kind: kind, number: number, checksum: checksum).withBytes(at: entryCount) {
            pending.append(contentsOf: $0)
        }
        entryCount += 1
    }

    private static func readHeader(
        _ file: borrowing OwnedDescriptor
    ) throws(Errno) -> (header: JournalHeader, end: UInt64)? {
        let prefix = try read(file, at: 0, count: prefixSize)
        var reader = FieldReader(prefix.dropFirst(magic.count))
        guard
            prefix.count == prefixSize, prefix.starts(with: magic), let length = reader.number(),
            length <= UInt64(headerLimit), let high = reader.number(), let low = reader.number()
        else { return nil }
        let fields = try read(file, at: UInt64(prefixSize), count: Int(length))
        guard
            fields.count == Int(length),
            fields.withUnsafeBytes({ ChunkChecksum(of: $0) }) == ChunkChecksum(high: high, low: low),
            let header = JournalHeader(decoding: fields[...])
        else { return nil }
        return (header, UInt64(prefixSize) + length)
    }

    private static func readEntries(
        of file: borrowing OwnedDescriptor, from start: UInt64, count: UInt64, _ header: JournalHeader, trustsAll: Bool
    ) throws(Errno) -> Content {
        var content = Content(header: header, verified: ChunkSet(), unsure: [])
        var unmarked: [(index: UInt64, chunk: UInt64, checksum: ChunkChecksum)] = []
        let batch: UInt64 = 4096
        var index: UInt64 = 0
        while index < count {
            let part = min(batch, count - index)
            let bytes = try read(file, at: start + index * UInt64(entrySize), count: Int(part) * entrySize)
            for entry in 0..<bytes.count / entrySize {
                let number = index + UInt64(entry)
                guard let found = Entry(bytes[entry * entrySize..<(entry + 1) * entrySize], at: number) else {
                    continue
                }
                switch found.kind {
                case .chunk:
                    guard found.number < header.tree.layout.chunkCount else { continue }
                    if trustsAll {
                        content.verified.insert(found.number)
                    } else {
                        unmarked.append((number, found.number, found.checksum))
                    }
                case .loss:
                    guard found.number < header.tree.layout.chunkCount else { continue }
                    content.verified.remove(found.number..<found.number + 1)
                    unmarked.removeAll { $0.chunk == found.number }
                case .mark:
                    guard found.checksum.low < found.number else { continue }
                    let covered = found.checksum.low..<found.number
                    for entry in unmarked where covered.contains(entry.index) { content.verified.insert(entry.chunk) }
                    unmarked.removeAll { covered.contains($0.index) }
                }
            }
            index += part
        }
        // One that was lost, and has come again since, is not looked at.
        for entry in unmarked where !content.verified.contains(entry.chunk) {
            content.unsure.append((entry.chunk, entry.checksum))
        }
        return content
    }

    private static func read(
        _ file: borrowing OwnedDescriptor, at offset: UInt64, count: Int
    ) throws(Errno) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let taken = try bytes.withUnsafeMutableBufferPointer { (room) throws(Errno) in
            try SystemCalls.read(file, into: UnsafeMutableRawBufferPointer(room), at: offset)
        }
        bytes.removeLast(count - taken)
        return bytes
    }
}
