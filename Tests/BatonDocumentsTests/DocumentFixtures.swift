// SPDX-License-Identifier: Apache-2.0

// Several modules of C have `struct stat`, and whose its fields are depends on what else is compiled: files that look
// at them import CLinux, Foundation and Glibc.
import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import CLinux
import Foundation
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

extension ScratchFolder {
    /// A folder in it, made.
    func makeFolder(_ name: String, mode: mode_t = 0o755) throws -> FilePath {
        let folder = filePath.appending(name)
        try SystemCalls.call { folder.withPlatformString { mkdir($0, mode) } }
        return folder
    }

    /// A file in it with this content.
    @discardableResult
    func makeFile(_ name: String, _ content: [UInt8], mode: mode_t = 0o644) throws -> FilePath {
        let file = filePath.appending(name)
        try DocumentFixture.write(content, to: file, mode: mode)
        return file
    }
}

/// Helpers that the document tests share.
enum DocumentFixture {
    static let megabyte = 1 << 20

    /// Content that a seed determines.
    static func content(_ count: Int, seed: UInt64) -> [UInt8] {
        var generator = SeededGenerator(seed: seed)
        return generator.bytes(count)
    }

    static func write(_ content: [UInt8], to path: FilePath, at offset: UInt64 = 0, mode: mode_t = 0o644) throws {
        let file = try SystemCalls.open(path, O_WRONLY | O_CREAT, mode: mode)
        try content.withUnsafeBytes { try SystemCalls.write($0, to: file, at: offset) }
    }

    /// Bytes of a file. (Asked for here alone: which module has the fields of `stat`, the compiler sees differently in
    /// each file, depending on what it has read before.)
    static func size(at path: FilePath) throws -> Int { Int(try SystemCalls.status(at: path).st_size) }

    /// Bytes that the disk holds for a file.
    static func room(at path: FilePath) throws -> Int { Int(try SystemCalls.status(at: path).st_blocks) * 512 }

    static func read(_ path: FilePath) throws -> [UInt8] {
        let size = try SystemCalls.status(at: path).st_size
        return try SystemCalls.contents(of: path, limit: size + 1)
    }

    /// Moves a file's modification time back, so that the next edit shows whatever the clock's tick.
    static func backdate(_ path: FilePath, by seconds: Int = 3600) throws {
        let earlier = timespec(tv_sec: time(nil) - seconds, tv_nsec: 0)
        var times = [earlier, earlier]
        try SystemCalls.call { path.withPlatformString { utimensat(AT_FDCWD, $0, &times, 0) } }
    }

    /// All names in a folder, sorted, without the two dots.
    static func names(in folder: FilePath) -> [String] {
        components(in: folder).map(\.string).sorted()
    }

    /// The same, in the file system's bytes and order.
    static func components(in folder: FilePath) -> [FilePath.Component] {
        guard let stream = folder.withPlatformString({ opendir($0) }) else { return [] }
        defer { closedir(stream) }
        var found: [FilePath.Component] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                FilePath.Component(platformString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self))
            }
            if let name, name.kind == .regular { found.append(name) }
        }
        return found
    }

    /// Descriptors of this process that are open on something in `folder`.
    static func openFiles(in folder: FilePath) -> [String] {
        names(in: "/proc/self/fd").compactMap { number in
            var target = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
            guard readlink("/proc/self/fd/\(number)", &target, Int(PATH_MAX)) > 0 else { return nil }
            let path = FilePath(platformString: target)
            return path.starts(with: folder) ? path.string : nil
        }
    }

    /// The device that documents come from.
    static let origin = "their-device"

    /// Bytes of a plain record of a whole chunk: encoding, bottleneck, content and checksum.
    static let recordSize = 2 + megabyte + 16

    /// The records of a whole file, by the definition and not by the code under test.
    static func records(_ content: [UInt8]) -> [UInt8] {
        stride(from: 0, to: content.count, by: megabyte).flatMap { start in
            record(Array(content[start..<min(start + megabyte, content.count)]))
        }
    }

    /// A record: encoding 0 and bottleneck 0 by default, what says the content, and the content's checksum.
    static func record(
        _ chunk: [UInt8], encoding: UInt8 = 0, bottleneck: UInt8 = 0, saying payload: [UInt8]? = nil
    ) -> [UInt8] {
        let checksum = chunk.withUnsafeBytes { ChunkChecksum(of: $0) }
        return [encoding, bottleneck] + (payload ?? chunk)
            + withUnsafeBytes(of: (checksum.high.bigEndian, checksum.low.bigEndian)) { Array($0) }
    }

    /// A document that is one file. Of version 0, which is none, a transfer never goes on with another.
    static func tree(
        _ size: UInt64, called name: String = "report.pdf", version: UInt64 = 0, isExecutable: Bool = false,
        isSparse: Bool = false, modified: FileIdentity.Time? = nil
    ) throws(DocumentError) -> DocumentTree {
        let version = FileVersion(high: 0, low: version)
        return try DocumentTree(
            file: .init(size: size, isExecutable: isExecutable, isSparse: isSparse, version: version),
            called: try DocumentLabel(Array(name.utf8)), modified: modified)
    }

    /// Writes a journal again with these chunks and no checkpoint, as if all had come at once, and turns a bit of the
    /// last entry.
    static func damageLastEntry(
        ofJournal path: FilePath, of chunks: Range<UInt64>, checksum: (UInt64) -> ChunkChecksum
    ) throws {
        let journal = try TransferJournal.create(at: path, try #require(try TransferJournal.content(at: path)?.header))
        for chunk in chunks { journal.append(chunk, checksum(chunk)) }
        try journal.flush()
        let place = UInt64(try size(at: path) - 31)
        try write([try read(path)[Int(place)] ^ 1], to: path, at: place)
    }

    /// The code of the document error that `body` throws, nil when it throws none.
    static func code(_ body: () async throws -> Void) async -> DocumentError.Code? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? DocumentError)?.code
        }
    }

    /// Whether the file system of the scratch folders has a number of its own.
    static let isNumbered = (try? FileSystem(at: ScratchFolder.base))?.number != nil

    static let isRoot = geteuid() == 0
    static let needsRoot: Comment = "it mounts a file system, which needs root"

    /// Gives up root for good, in a process that was started for the purpose (an exit test).
    static func becomeNobody() throws {
        guard isRoot else { return }
        try SystemCalls.call { setgid(65534) }
        try SystemCalls.call { setuid(65534) }
        if access("/root", R_OK) == 0, setuid(0) == 0 { throw Errno.notPermitted }
    }

    /// Does something in a process that gets no descriptor of this number or a higher one meanwhile: one that was
    /// started for the purpose (an exit test).
    static func withoutDescriptors<Value>(
        from number: Int32 = 0, _ body: () async throws -> Value
    ) async throws -> Value {
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        try SystemCalls.call { getrlimit(resource, &limit) }
        var lower = rlimit(rlim_cur: rlim_t(number), rlim_max: limit.rlim_max)
        try SystemCalls.call { setrlimit(resource, &lower) }
        defer { setrlimit(resource, &limit) }
        return try await body()
    }

    /// Bytes that this process has read so far, from whatever it was.
    static func readByteCount() throws -> Int {
        let io = String(decoding: try SystemCalls.contents(of: "/proc/self/io", limit: 4096), as: UTF8.self)
        let line = try #require(io.split(separator: "\n").first { $0.hasPrefix("rchar:") })
        return try #require(Int(line.filter(\.isNumber)))
    }

    /// The most memory that this process had resident so far, in bytes. (`getrusage` would count what the process was
    /// before exec as well.)
    static func peakMemory() throws -> Int {
        let status = String(decoding: try SystemCalls.contents(of: "/proc/self/status", limit: 4096), as: UTF8.self)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
        return try #require(Int(line.filter(\.isNumber))) * 1024
    }
}

extension PartPlace {
    /// Where the tests make parts by themselves.
    init(_ folder: FilePath, _ ledger: PartFileLedger) throws(DocumentError) {
        self.init(
            folder: try DestinationFolder(folder), ledger: ledger, umask: ProcessUmask.current,
            records: try ledger.openFolder())
    }
}

extension PartFileLedger {
    /// All that is unfinished.
    func unfinished() throws(DocumentError) -> [UnfinishedDocument] { try unfinished { $0 } }
}

extension Part {
    /// The part of a document of which the tests write the files by themselves.
    convenience init(creating tree: DocumentTree, at place: PartPlace) throws(DocumentError) {
        try self.init(creating: JournalHeader(origin: DocumentFixture.origin, tree: tree), at: place)
    }

    /// The same part again, as if the process had been killed.
    convenience init?(reopening tree: DocumentTree, _ record: PartFileRecord, at place: PartPlace) throws {
        let content = try #require(try TransferJournal.content(at: place.ledger.journal(of: record)))
        try self.init(reopening: UnfinishedDocument(record: record, content: content, changed: 0), at: place) { false }
    }

    @discardableResult
    func discard() -> Bool {
        [.removed, .gone].contains(place.ledger.removePart(of: record, in: place.folder))
    }

    /// All steps of a commit.
    func commit() throws(DocumentError) -> FilePath {
        try prepare()
        try synchronize()
        return try putInPlace()
    }

    func write(_ bytes: [UInt8], toFile index: Int, at offset: UInt64) throws {
        try bytes.withUnsafeBytes { try write($0, toFile: index, at: offset) }
    }
}

extension DocumentWriter {
    /// On a loop of its own.
    static func create(
        _ tree: DocumentTree, from origin: String, in folder: DestinationFolder, ledger: PartFileLedger,
        against copies: [FilePath] = [], identity: DocumentIdentity = .unknown, naming: DocumentNaming = .own
    ) async throws(DocumentError) -> DocumentWriter {
        try await create(
            tree, from: origin, in: folder, ledger: ledger, against: copies, identity: identity, naming: naming,
            on: EventLoop(name: "documents"))
    }
}

/// A small file system, mounted for the length of a test.
struct MountedFolder: ~Copyable {
    let path: FilePath

    /// A tmpfs of `size` bytes.
    init(tmpfsAt path: FilePath, size: Int) throws {
        self.path = path
        try SystemCalls.call { mount("baton-test", path.string, "tmpfs", 0, "size=\(size)") }
    }

    /// Gives a tmpfs another size.
    func resize(to size: Int) throws {
        try SystemCalls.call { mount("baton-test", path.string, "tmpfs", 32, "size=\(size)") }
    }

    /// A ramfs: a file system that nothing is known of.
    init(ramfsAt path: FilePath) throws {
        self.path = path
        try SystemCalls.call { mount("baton-test", path.string, "ramfs", 0, nil) }
    }

    /// A folder again, at another place.
    init(_ folder: FilePath, at path: FilePath) throws {
        self.path = path
        try SystemCalls.call { mount(folder.string, path.string, nil, 4096, nil) }
    }

    /// A folder again, read-only, at another place.
    init(readOnly folder: FilePath, at path: FilePath) throws {
        self.path = path
        let bind: UInt = 4096
        let remount: UInt = 32 | 1 | 4096
        try SystemCalls.call { mount(folder.string, path.string, nil, bind, nil) }
        try SystemCalls.call { mount(nil, path.string, nil, remount, nil) }
    }

    deinit {
        umount2(path.string, 2)
    }
}

extension DocumentReader {
    /// Reads the next records into a buffer of a pool; nil after the last.
    func next(
        from pool: BufferPool, telling bottleneck: Bottleneck = .unknown, linkWait: Duration = .zero
    ) async throws(DocumentError) -> (buffer: Buffer, contentByteCount: UInt64)? {
        guard try hasMore() else { return nil }
        let buffer = try await pool.acquire()
        do throws(DocumentError) {
            return (buffer, try read(into: buffer, telling: bottleneck, linkWait: linkWait))
        } catch {
            pool.release(buffer)
            throw error
        }
    }
}
