// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Disks that fail")
struct FailingDiskTests {
    let fixture: WriterFixture

    init() throws {
        fixture = try WriterFixture()
    }

    /// A part on a disk that says a few times that it has failed, and then says nothing of it any more, as Linux does.
    private final class FailingPart: Part {
        private let part: PartFile
        private let anything: FilePath
        var writeFailures = 0
        var writeFailure = Errno.ioError
        /// Of the synchronisation before the commit.
        var failures = 0
        /// Of those through a descriptor of its own.
        var failuresAside = 0
        /// Descriptors that were opened for synchronising aside.
        private(set) var openedAside = 0
        /// Is called before the synchronisation of the commit.
        var beforeSynchronising: () throws(Errno) -> Void = {}

        init(_ part: PartFile, anything: FilePath) {
            self.part = part
            self.anything = anything
        }

        var record: PartFileRecord { part.record }

        func write(_ bytes: UnsafeRawBufferPointer, toFile file: Int, at offset: UInt64) throws(DocumentError) {
            if takeOne(&writeFailures) { throw DocumentError(writingFailed: writeFailure, "a part") }
            try part.write(bytes, toFile: file, at: offset)
        }

        /// As on a file system that cannot.
        var reservesNothing = false
        var hasReservedRoom: Bool { !reservesNothing && part.hasReservedRoom }

        func takesWholeChunks(ofFile file: Int) -> Bool { part.takesWholeChunks(ofFile: file) }

        func clear(_ range: Range<UInt64>, ofFile file: Int) throws(DocumentError) {
            try part.clear(range, ofFile: file)
        }

        func read(
            file: Int, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer
        ) throws(DocumentError) -> Int {
            try part.read(file: file, at: offset, into: bytes)
        }

        func leaveCache(_ range: Range<UInt64>, ofFile file: Int) { part.leaveCache(range, ofFile: file) }

        func isThere(file: Int) -> Bool { part.isThere(file: file) }

        func descriptorToSynchronize() throws(DocumentError) -> DescriptorToSynchronize {
            openedAside += 1
            guard takeOne(&failuresAside) else { return try part.descriptorToSynchronize() }
            do {
                // O_PATH: it stands for a place alone, and cannot be synchronised (EBADF).
                return DescriptorToSynchronize(file: try SystemCalls.open(anything, 0o10000000), isFolder: false)
            } catch {
                throw DocumentError(.busy, "a part", underlyingError: error)
            }
        }

        func prepare(unless isCancelled: () -> Bool) throws(DocumentError) { try part.prepare(unless: isCancelled) }

        func giveBack(_ range: Range<UInt64>, ofFile file: Int) { part.giveBack(range, ofFile: file) }

        func heldByteCount(ofFile file: Int) -> UInt64 { part.heldByteCount(ofFile: file) }

        func synchronize() throws(DocumentError) {
            do {
                try beforeSynchronising()
            } catch {
                throw DocumentError(.busy, "a part", underlyingError: error)
            }
            if takeOne(&failures) { throw DocumentError(.destinationFull, "a part", underlyingError: .noSpace) }
            try part.synchronize()
        }

        func place() throws(DocumentError) -> FilePath { try part.place() }
        func discard() { part.discard() }
        func keep() -> Bool { part.keep() }

        private func takeOne(_ count: inout Int) -> Bool {
            guard count > 0 else { return false }
            count -= 1
            return true
        }
    }

    private func tree(_ chunks: Int) throws -> DocumentTree {
        try DocumentFixture.tree(UInt64(chunks) << 20, version: 1, isSparse: true)
    }

    /// A part of a document, and its journal.
    private func make(_ tree: DocumentTree) throws -> (part: FailingPart, journal: TransferJournal, place: PartPlace) {
        let place = try PartPlace(fixture.folder, fixture.ledger)
        let file = try PartFile(for: tree.label, try #require(tree[0].file), at: place)
        let header = JournalHeader(origin: DocumentFixture.origin, boot: .current, tree: tree)
        let journal = try TransferJournal.create(at: fixture.ledger.journal(of: file.record), header)
        return (FailingPart(file, anything: fixture.scratch.filePath), journal, place)
    }

    private func receive(_ chunks: Range<UInt64>, _ content: PartContent) throws {
        for chunk in chunks {
            try content.take(.zeros(chunk: chunk))
            try content.take(.verified(chunk: chunk, checksum: ChunkChecksum(ofZeros: 1 << 20)))
        }
    }

    /// Receives the first chunks, until a mark covers them.
    private func receiveMarked(_ count: UInt64, _ content: PartContent, _ part: FailingPart) async throws {
        try receive(0..<count, content)
        let isMarked = try await eventually {
            try content.note()
            return try durable(part.record) == [0..<count]
        }
        #expect(isMarked)
    }

    /// What the journal says is durable.
    private func durable(_ record: PartFileRecord) throws -> [Range<UInt64>] {
        let later = BootID(text: "a later run")
        return try #require(try TransferJournal.open(fixture.ledger.journal(of: record), boot: later)).content.verified
            .ranges
    }

    @Test("What came since the last mark is asked for again when the commit has failed by the disk")
    func commit() async throws {
        let tree = try tree(300)
        let (part, journal, place) = try make(tree)
        let marked = DiskMarker.byteInterval >> 20
        do {
            let content = PartContent(of: tree, in: part, journal, at: place)
            try await receiveMarked(marked, content, part)
            try receive(marked..<300, content)
            try content.note()
            part.failures = 1
            #expect(await DocumentFixture.code { _ = try content.commit() } == .destinationFull)
            #expect(content.verified.ranges == [0..<marked])
            #expect(content.end() == marked << 20)
        }
        let writer = try await DocumentWriter.begun(
            tree, in: fixture.folder,
            ledger: try PartFileLedger(stateFolder: fixture.scratch.filePath.appending("parts")))
        #expect(try await writer.missing() == [marked..<300])
        let bytes = DocumentFixture.content(1 << 20, seed: 5)
        let zeros = DocumentFixture.record([UInt8](repeating: 0, count: 1 << 20), encoding: 1, saying: [])
        for _ in marked..<299 { try await writer.write(zeros) }
        try await writer.write(DocumentFixture.record(bytes))
        try await writer.finish()
        _ = try await writer.commit()
        #expect(try DocumentFixture.size(at: fixture.document) == 300 << 20)
        let last = try SystemCalls.open(fixture.document, O_RDONLY)
        var read = [UInt8](repeating: 0, count: 1 << 20)
        let count = try read.withUnsafeMutableBytes { try SystemCalls.read(last, into: $0, at: 299 << 20) }
        #expect(count == 1 << 20 && read == bytes)
        fixture.expectOnly(["report.pdf"])
    }

    /// What a process would find that goes on where this one was killed at this moment.
    private func left(_ record: PartFileRecord) throws -> (certain: [Range<UInt64>], unsure: Int) {
        let content = try #require(try TransferJournal.open(fixture.ledger.journal(of: record), boot: .current)).content
        return (content.verified.ranges, content.unsure.count)
    }

    @Test("Before the disk is asked aside, the journal says what waits for it: a process may be killed meanwhile")
    func killedAside() throws {
        let tree = try tree(200)
        let (part, journal, place) = try make(tree)
        part.failuresAside = 1
        let content = PartContent(of: tree, in: part, journal, at: place)
        try receive(0..<150, content)
        try content.note()
        #expect(try left(part.record) == ([], 150))
        #expect(content.end() == 0)
    }

    @Test("Before the disk is asked at the commit, the journal says so")
    func killedAtTheCommit() async throws {
        let tree = try tree(8)
        let (part, journal, place) = try make(tree)
        let content = PartContent(of: tree, in: part, journal, at: place)
        try receive(0..<8, content)
        try content.note()
        #expect(try left(part.record) == ([0..<8], 0))
        nonisolated(unsafe) var found: (certain: [Range<UInt64>], unsure: Int)?
        part.beforeSynchronising = { () throws(Errno) in found = try? self.left(part.record) }
        _ = try content.commit()
        // It holds the part, which holds it.
        part.beforeSynchronising = {}
        #expect(found?.certain == [] && found?.unsure == 8)
    }

    @Test("Who is killed at the commit reads no more again than what came since the last mark")
    func killedAtTheCommitOfMuch() async throws {
        let marked = DiskMarker.byteInterval >> 20
        let tree = try tree(Int(marked) + 70)
        let (part, journal, place) = try make(tree)
        let content = PartContent(of: tree, in: part, journal, at: place)
        try await receiveMarked(marked, content, part)
        try receive(marked..<marked + 70, content)
        nonisolated(unsafe) var found: (certain: [Range<UInt64>], unsure: Int)?
        part.beforeSynchronising = { () throws(Errno) in found = try? self.left(part.record) }
        _ = try content.commit()
        part.beforeSynchronising = {}
        #expect(found?.certain == [0..<marked] && found?.unsure == 70)
    }

    @Test("Of what waited for the disk, the next process reads what is there, and what came later is believed")
    func readAgain() async throws {
        let resumed = try ResumeFixture(seed: 31)
        try await resumed.receive([0..<7])
        do {
            let journal = try resumed.openJournal().journal
            #expect(journal.attempt(5))
            try journal.flush()
        }
        try resumed.damage(2)
        try resumed.damage(6)
        let writer = try await resumed.open()
        #expect(try await writer.missing() == [2..<3, 7..<8])
        #expect(await writer.end() == 6 << 20)
        // It stays so.
        #expect(try await resumed.open().missing() == [2..<3, 7..<8])
    }

    @Test("Of a small document, which no mark covers, nothing is believed")
    func smallDocument() async throws {
        let tree = try tree(8)
        let (part, journal, place) = try make(tree)
        let content = PartContent(of: tree, in: part, journal, at: place)
        try receive(0..<8, content)
        try content.note()
        part.failures = 1
        #expect(await DocumentFixture.code { _ = try content.commit() } == .destinationFull)
        #expect(content.end() == 0)
        fixture.expectOnly([])
    }

    /// Over a slow link it is minutes until a small document is whole.
    @Test("A mark is due after ten seconds, however little has come of however small a document")
    func slowly() async throws {
        let tree = try tree(30)
        let (part, journal, place) = try make(tree)
        var now: UInt64 = 1_000
        let noted = PartJournal(journal, of: part, at: place) { now }
        func append(_ chunk: UInt64) { noted.append(chunk, ChunkChecksum(ofZeros: 1 << 20), size: 1 << 20) }
        func isMarked(_ chunks: Range<UInt64>) async throws -> Bool {
            try await eventually {
                try noted.note()
                return try durable(part.record) == [chunks]
            }
        }
        let marks = part.openedAside
        append(0)
        now += DiskMarker.timeInterval - 1
        try noted.note()
        #expect(part.openedAside == marks)
        now += 1
        #expect(try await isMarked(0..<1))
        #expect(part.openedAside == marks + 1)
        // Where nothing has come since, there is nothing to mark.
        now += 2 * DiskMarker.timeInterval
        try noted.note()
        #expect(part.openedAside == marks + 1)
        append(1)
        #expect(try await isMarked(0..<2))
        #expect(part.openedAside == marks + 2)
    }

    @Test("A failure aside ends the transfer, and no later mark covers what came before it")
    func aside() async throws {
        let tree = try tree(400)
        let (part, journal, place) = try make(tree)
        part.failuresAside = 1
        let noted = PartJournal(journal, of: part, at: place)
        func append(_ chunks: Range<UInt64>) {
            for chunk in chunks { noted.append(chunk, ChunkChecksum(ofZeros: 1 << 20), size: 1 << 20) }
        }
        append(0..<150)
        var failure: Errno?
        let hasFailed = await eventually {
            do throws(Errno) {
                try noted.note()
            } catch {
                failure = error
            }
            return failure != nil
        }
        #expect(hasFailed && failure == .badFileDescriptor)
        #expect(noted.verified().ranges.isEmpty)
        // The disk says nothing of it any more.
        append(150..<350)
        let isMarked = try await eventually {
            try noted.note()
            return try !durable(part.record).isEmpty
        }
        #expect(isMarked)
        #expect(try durable(part.record) == [150..<350])
        #expect(noted.verified().ranges == [150..<350])
    }

    @Test("A failure aside is heard of also when the transfer ends meanwhile")
    func asideAtTheEnd() throws {
        let tree = try tree(200)
        let (part, journal, place) = try make(tree)
        part.failuresAside = 1
        let content = PartContent(of: tree, in: part, journal, at: place)
        try receive(0..<150, content)
        // It begins here.
        try content.note()
        #expect(content.end() == 0)
        fixture.expectOnly([])
    }

    @Test("After a write that failed the disk is asked about those before it", arguments: [false, true])
    func write(_ hasFailedBefore: Bool) async throws {
        let tree = try tree(8)
        let (part, journal, place) = try make(tree)
        // It is asked through what was opened before the first write.
        part.failuresAside = hasFailedBefore ? 1 : 0
        let content = PartContent(of: tree, in: part, journal, at: place)
        try receive(0..<5, content)
        try content.note()
        part.writeFailures = 1
        let bytes = DocumentFixture.content(1 << 20, seed: 6)
        let code = await DocumentFixture.code {
            try bytes.withUnsafeBytes { try content.take(.content(chunk: 5, offset: 0, bytes: $0)) }
        }
        #expect(code == .writeFailed)
        #expect(content.verified.ranges == (hasFailedBefore ? [] : [0..<5]))
        #expect(content.end() == (hasFailedBefore ? 0 : 5 << 20))
    }

    /// A disk that is full is one of ``FullDiskTests``; this one has room.
    @Test(
        "A failed write of a file says that the disk failed, save for a file limit, and a quota where nothing is reserved",
        arguments: [
            (false, Errno.ioError, true), (true, .ioError, true), (false, .noSpace, true), (true, .noSpace, true),
            (false, .diskQuotaExceeded, true), (true, .diskQuotaExceeded, false), (false, .fileTooLarge, false),
            (true, .fileTooLarge, false),
        ])
    func singleFile(reservesNothing: Bool, failure: Errno, isByTheDisk: Bool) async throws {
        let tree = try DocumentFixture.tree(8 << 20, version: 1)
        let (part, journal, place) = try make(tree)
        (part.reservesNothing, part.writeFailure) = (reservesNothing, failure)
        let content = PartContent(of: tree, in: part, journal, at: place)
        // Not on every file system, which makes this a test of another one.
        try #require(part.hasReservedRoom != reservesNothing)
        try receive(0..<5, content)
        try content.note()
        part.writeFailures = 1
        let bytes = DocumentFixture.content(1 << 20, seed: 7)
        let code = await DocumentFixture.code {
            try bytes.withUnsafeBytes { try content.take(.content(chunk: 5, offset: 0, bytes: $0)) }
        }
        let told: DocumentError.Code =
            switch failure {
            case .ioError: .writeFailed
            case .fileTooLarge: .tooLarge
            case _: .destinationFull
            }
        #expect(code == told)
        #expect(content.verified.ranges == (isByTheDisk ? [] : [0..<5]))
        #expect(content.end() == (isByTheDisk ? 0 : 5 << 20))
        if isByTheDisk { fixture.expectOnly([]) }
    }
}
