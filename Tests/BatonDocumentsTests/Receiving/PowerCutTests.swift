import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

/// A file system on a file, of which an image can be taken as a power cut would leave it.
private struct LoopDisk {
    let scratch: ScratchFolder

    static let isAvailable =
        DocumentFixture.isRoot && access("/sbin/mkfs.ext4", X_OK) == 0
        && access("/dev/loop-control", R_OK | W_OK) == 0

    private var image: FilePath { scratch.path.appending("image") }

    init(_ scratch: ScratchFolder, size: Int) throws {
        self.scratch = scratch
        try scratch.makeFile("image", [])
        try SystemCalls.call { truncate(scratch.path.appending("image").string, size) }
        try Self.run(["mkfs.ext4", "-q", "-F", image.string])
    }

    /// What is on the disk at this moment, without what is in memory still.
    func cutPower() throws -> LoopImage {
        let copy = scratch.path.appending("after the power cut")
        try Self.run(["cp", "--sparse=always", image.string, copy.string])
        return try LoopImage(copy, at: try scratch.makeFolder("after"))
    }

    func mount() throws -> LoopImage { try LoopImage(image, at: try scratch.makeFolder("disk")) }

    static func run(_ command: [String]) throws {
        let arguments = command.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var process = pid_t()
        let status = posix_spawnp(&process, command[0], nil, nil, arguments, environ)
        guard status == 0 else { throw Errno(rawValue: status) }
        var result: Int32 = 0
        try SystemCalls.call { waitpid(process, &result, 0) }
        try #require(result == 0, "\(command)")
    }
}

/// An image, mounted for the length of a test.
private struct LoopImage: ~Copyable {
    let path: FilePath

    init(_ image: FilePath, at path: FilePath) throws {
        self.path = path
        try LoopDisk.run(["mount", "-o", "loop", image.string, path.string])
    }

    deinit {
        umount2(path.string, 0)
    }
}

@Suite("Power cuts", .enabled(if: LoopDisk.isAvailable, "it mounts a file system on a file, which needs root"))
struct PowerCutTests {
    @Test("A part of which a mark speaks is found again by its record")
    func record() async throws {
        let disk = try LoopDisk(try ScratchFolder(), size: 64 << 20)
        let mounted = try disk.mount()
        let folder = mounted.path.appending("destination")
        try SystemCalls.call { mkdir(folder.string, 0o755) }
        let parts = mounted.path.appending("parts")
        let ledger = try PartFileLedger(stateFolder: parts)
        // What was there before is on the disk.
        sync()
        let tree = try DocumentFixture.tree(200 << 20, version: 1, isSparse: true)
        let header = JournalHeader(origin: DocumentFixture.origin, boot: .current, tree: tree)
        let content = try PartContent(creating: header, at: try PartPlace(folder, ledger))
        for chunk in 0..<UInt64(150) {
            try content.take(.zeros(chunk: chunk))
            try content.take(.verified(chunk: chunk, checksum: ChunkChecksum(ofZeros: 1 << 20)))
        }
        let name = try #require(DocumentFixture.names(in: parts).first { $0.hasSuffix(PartFileRecord.suffix) })
        let record = try #require(PartFileRecord(readingFrom: parts.appending(name)))
        let journal = ledger.journal(of: record)
        let isMarked = try await DocumentFixture.eventually {
            try content.note()
            let said = try TransferJournal.open(journal, boot: BootID(text: "a later run"))?.content
            return said?.verified.ranges == [0..<150]
        }
        #expect(isMarked)
        let after = try disk.cutPower()
        let found = try PartFileLedger(stateFolder: after.path.appending("parts")).unfinished()
        #expect(found.map(\.record) == [record])
        let unfinished = try #require(found.first)
        let said = try #require(try TransferJournal.open(unfinished.journal, boot: BootID(text: "a later run"))).content
        #expect(said.verified.ranges == [0..<150])
        let part = after.path.appending("destination").appending(try #require(DocumentFixture.names(in: folder).first))
        #expect(FileIdentity(try SystemCalls.status(at: part)).inode == record.inode)
        #expect(content.end() == 150 << 20)
    }
}
