// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
package import SystemPackage

/// Signatures of a basis, which is cut by content into pieces.
package struct SignatureBatch: Sendable {
    /// The number of the basis.
    package let basis: Int
    /// Signatures in their wire form, at most 56 KiB.
    package let bytes: [UInt8]
}

/// The files that a document is built upon: those of older copies and parts. A file with holes is several
/// bases, one for each stretch between them.
///
/// There are at most ``limit`` bases: of more files the largest, whose paths take at most 16 MiB as those of a tree do.
/// One file of a folder is open at a time. The signatures are made anew for each request. The bases belong to one
/// thread.
final class Bases {
    /// The most bases: as many as there can be signatures, of which each basis has at least one.
    static let limit = PieceSignature.limit
    private static let batchSize = 32 << 10
    /// The time after which an unfinished batch is told, even an empty one: 1 s. A large copy on a slow disk has few
    /// pieces in a minute, and the other device and the user have to hear that something goes on.
    static let longestSilence = Duration.seconds(1)

    /// Bytes of each basis.
    private(set) var sizes: [UInt64] = []

    private let tree: DocumentTree
    private let limit: Int
    private let longestSilence: Duration
    /// Copies, and of a folder the path of a file.
    private var sources: [(copy: OlderCopy, path: [UInt8])] = []
    /// The source of each basis, and its place in the file.
    private var bases: [(source: Int, stretch: Range<UInt64>)] = []
    private var reader: BasisReader?
    private var next = 0
    /// The file that was read last.
    private var opened: (source: Int, file: BasisFile)?

    /// Nothing to build upon.
    init(of tree: DocumentTree, limit: Int = Bases.limit, longestSilence: Duration = Bases.longestSilence) {
        self.tree = tree
        self.limit = limit
        self.longestSilence = longestSilence
    }

    /// How large the pieces are that signatures are of; nil if there is nothing to build upon.
    var pieceSize: PieceSize? {
        // Files with holes can have any size that an origin has thought of.
        let size = sizes.reduce(UInt64(0)) { $0.addingReportingOverflow($1).overflow ? .max : $0 + $1 }
        return size == 0 ? nil : PieceSize.forBases(totalSize: size, fileCount: sizes.count)
    }

    /// Adds a copy: the file, or files of the folder. Of a folder that is no part these are the files that are needed,
    /// the largest first; files within one power of two keep their order, in which a disk is likely to have them.
    ///
    /// - Parameter isNeeded: whether something is missing of a file of the document.
    func add(_ copy: OlderCopy, where isNeeded: (Int) -> Bool) {
        let paths = copy.folder == nil ? [[]] : copy.paths ?? paths(where: isNeeded)
        for path in paths where sizes.count < limit {
            guard let stretches = copy.open(path)?.stretches(), !stretches.isEmpty else { continue }
            for stretch in stretches where sizes.count < limit {
                bases.append((sources.count, stretch))
                sizes.append(UInt64(stretch.count))
            }
            sources.append((copy, path))
        }
    }

    private func paths(where isNeeded: (Int) -> Bool) -> [[UInt8]] {
        (0..<tree.layout.fileCount).filter(isNeeded)
            .map { (power: tree.layout.size(ofFile: $0).leadingZeroBitCount, file: $0) }
            .sorted(by: <).map { file in
                let path = tree.entry(ofFile: file.file).path
                // In a folder, a document that is a single file is looked up by its name.
                return path.isRoot ? tree.label.bytes : path.bytes
            }
    }

    /// The next signatures, none if reading takes long; nil when all are told. After that they are told again, for
    /// another request.
    func nextSignatures() -> SignatureBatch? {
        let deadline = MonotonicClock.deadline(after: longestSilence) ?? .max
        guard let size = pieceSize else { return nil }
        if reader == nil { reader = BasisReader(size: size) }
        while next < bases.count, (reader?.signatureCount ?? 0) < PieceSignature.limit {
            let basis = next
            let bytes = makeSignatures(basis, until: deadline)
            guard bytes.isEmpty, MonotonicClock.nanoseconds() < deadline else {
                return SignatureBatch(basis: basis, bytes: bytes)
            }
        }
        opened = nil
        reader = nil
        next = 0
        return nil
    }

    /// Reads on in a basis, one step at least. Bytes that cannot be read are not built upon.
    private func makeSignatures(_ basis: Int, until deadline: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        guard let file = file(of: basis) else {
            reader?.skip()
            next += 1
            return bytes
        }
        repeat {
            let goesOn = try? reader?.step(in: file.descriptor, bases[basis].stretch, appendingTo: &bytes)
            guard goesOn == true else {
                next += 1
                break
            }
        } while bytes.count < Self.batchSize && MonotonicClock.nanoseconds() < deadline
        return bytes
    }

    /// Reads bytes of a basis: fewer than asked for if it has changed.
    func read(_ basis: Int, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
        guard let file = file(of: basis) else { return 0 }
        return try SystemCalls.read(file.descriptor, into: bytes, at: bases[basis].stretch.lowerBound + offset)
    }

    private func file(of basis: Int) -> BasisFile? {
        let source = bases[basis].source
        if let opened, opened.source == source { return opened.file }
        opened = nil
        guard let file = sources[source].copy.open(sources[source].path) else { return nil }
        opened = (source, file)
        return file
    }

    /// Lets go of all files: an open file takes room even after it was removed.
    func end() {
        opened = nil
        reader = nil
        sources = []
        bases = []
        sizes = []
    }
}

/// A file that is open to be built upon.
final class BasisFile: Sendable {
    /// Holes smaller than this are read as the zeros that they are: a chunk.
    private static let holeSize = UInt64(ChunkLayout.chunkSize)

    let descriptor: OwnedDescriptor
    let size: UInt64

    /// - Parameter limit: bytes behind these do not count.
    init(_ descriptor: consuming OwnedDescriptor, limit: UInt64 = .max) throws(Errno) {
        size = min(limit, UInt64(clamping: try SystemCalls.status(of: descriptor).st_size))
        self.descriptor = descriptor
    }

    /// Opens a regular file of a folder: never through a link, and never outside of the folder.
    ///
    /// - Returns: nil if there is none. A pipe or device is not opened to find out what it is.
    convenience init?(
        _ path: some Collection<UInt8>, beneath folder: borrowing OwnedDescriptor, limit: UInt64 = .max
    ) {
        do {
            let looked = try SystemCalls.look(at: path, beneath: folder)
            guard try SystemCalls.status(of: looked).st_mode & S_IFMT == S_IFREG else { return nil }
            // Another file may have taken its place: O_NONBLOCK keeps a pipe from blocking, O_NOCTTY a terminal from
            // taking over.
            let flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW
            let opened = try SystemCalls.open(path, beneath: folder, flags)
            guard try SystemCalls.status(of: opened).st_mode & S_IFMT == S_IFREG else { return nil }
            try self.init(opened, limit: limit)
        } catch {
            return nil
        }
    }

    /// The stretches between large holes, each from one multiple of a chunk to another: a hole is not read, however
    /// large it is. All of the file if the file system cannot tell.
    ///
    /// - Parameter limit: the most stretches; the rest is left out.
    func stretches(limit: Int = Bases.limit) -> [Range<UInt64>] {
        let number = descriptor.rawValue
        var stretches: [Range<UInt64>] = []
        var next: UInt64 = 0
        while next < size {
            guard stretches.count < limit else { break }
            let data = baton_next_data(number, Int64(next))
            guard data >= 0 else {
                if -data != Int64(ENXIO) { stretches.append(next..<size) }
                break
            }
            let hole = baton_next_hole(number, data)
            let start = max(next, UInt64(data) / Self.holeSize * Self.holeSize)
            guard hole > data, start < size else { break }
            let end = min(size, (UInt64(hole) + Self.holeSize - 1) / Self.holeSize * Self.holeSize)
            if let last = stretches.last, last.upperBound == start {
                stretches[stretches.count - 1] = last.lowerBound..<end
            } else {
                stretches.append(start..<end)
            }
            next = end
        }
        return stretches
    }
}

/// An earlier state of a document on this device, to build upon: a file, or a folder in which each file is looked up
/// under its path in the document.
package final class OlderCopy: Sendable {
    /// The most copies that a document can be built upon: 16.
    package static let limit = 16

    enum Content: Sendable {
        case file(BasisFile)
        case folder(OpenEntry)
    }

    let content: Content
    /// The files of a part that are built upon, the largest first: each counts for the whole document, because it may
    /// have another path now. Nil for a copy that is no part.
    let paths: [[UInt8]]?
    /// Bytes that the disk holds for a part.
    let heldByteCount: UInt64

    /// Opens at most ``limit`` copies.
    ///
    /// - Parameters:
    ///   - copies: those that the user named.
    ///   - requiringAll: whether one of these that cannot be opened is refused, rather than done without.
    static func open(_ copies: [FilePath], requiringAll: Bool) throws(DocumentError) -> [OlderCopy] {
        var opened: [OlderCopy] = []
        for copy in copies.prefix(limit) {
            do throws(DocumentError) {
                opened.append(try OlderCopy(opening: copy))
            } catch {
                guard !requiringAll else { throw error }
            }
        }
        return opened
    }

    /// Opens a copy that the user names, whose links are followed. Blocking.
    ///
    /// - Throws: `missing`, `unreadable`, `notRegularFile`, ...
    package init(opening path: FilePath) throws(DocumentError) {
        (paths, heldByteCount) = (nil, 0)
        do {
            content = .file(try BasisFile(try DocumentScan.openFile(path)))
        } catch let error as DocumentError where error.code == .isFolder {
            do {
                content = .folder(OpenEntry(.root, try SystemCalls.open(path, O_RDONLY | O_DIRECTORY)))
            } catch {
                throw DocumentError(openingFailed: error, path)
            }
        } catch let error as DocumentError {
            throw error
        } catch {
            throw DocumentError(.readFailed, path.displayed)
        }
    }

    /// Opens the part of an earlier transfer, of another version of the document.
    ///
    /// - Returns: nil where it cannot be read, or has something else in its place.
    init?(_ part: UnfinishedDocument, in folder: DestinationFolder) {
        let (name, layout, all) = (part.record.name, part.content.header.tree.layout, part.content.all)
        guard part.content.header.tree.isFolder else {
            let end = layout.offset(of: all.ranges.last?.upperBound ?? 0)
            guard
                let file = BasisFile(name, beneath: folder.file, limit: end),
                let status = try? SystemCalls.status(of: file.descriptor)
            else { return nil }
            (content, paths, heldByteCount) = (.file(file), nil, UInt64(clamping: status.st_blocks) * 512)
            return
        }
        // Somebody else may have put another folder there since the part was found.
        guard let opened = try? SystemCalls.openOwnFolder(name, within: folder.file),
            let status = try? SystemCalls.status(of: opened), status.st_uid == geteuid(),
            folder.fileSystem.number(of: status) == part.record.inode
        else { return nil }
        content = .folder(OpenEntry(.root, opened))
        paths = all.files(in: layout).ranges.joined().sorted { layout.size(ofFile: $0) > layout.size(ofFile: $1) }
            .map { part.content.header.tree.entry(ofFile: $0).path.bytes }
        heldByteCount = part.byteCount
    }

    /// The folder; nil for a file.
    var folder: OpenEntry? {
        if case .folder(let folder) = content { folder } else { nil }
    }

    /// The file, or one of the folder; nil if it cannot be read.
    func open(_ path: [UInt8]) -> BasisFile? {
        switch content {
        case .file(let file): file
        case .folder(let folder): BasisFile(path, beneath: folder.descriptor)
        }
    }
}
