// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import CLinux
import Foundation
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

/// A document that is received in several attempts, built upon a copy of the same bytes.
///
/// Whether the copy was read shows where what is kept is not what reading gives: see ``poison()``.
struct AgainstFixture {
    let resume: ResumeFixture
    let copy: FilePath

    init(seed: UInt64) async throws {
        resume = try ResumeFixture(seed: seed)
        copy = try resume.scratch.makeFile("older copy", resume.content)
        try await Self.settle(copy)
    }

    /// Waits until another edit of a file is sure to show.
    static func settle(_ path: FilePath) async throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while try !file(path).isSettled {
            try #require(ContinuousClock.now < deadline)
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    static func file(_ path: FilePath) throws -> BasisFile {
        guard case .file(let file) = try OlderCopy(opening: path).content else { throw Errno.isDirectory }
        return file
    }

    /// Where the signatures are kept; nil where they are not.
    func kept() -> FilePath? {
        resume.writers.records.first { $0.hasSuffix(PartFileRecord.signaturesSuffix) }
            .map { resume.scratch.filePath.appending("parts").appending($0) }
    }

    /// The next attempt.
    func open(against copies: [FilePath]? = nil) async throws -> DocumentWriter {
        try await DocumentWriter.create(
            resume.tree, from: DocumentFixture.origin, in: try DestinationFolder(resume.folder),
            ledger: try resume.nextStart(), against: copies ?? [copy])
    }

    /// All that is told, by basis.
    static func told(by writer: DocumentWriter) async throws -> [Int: [UInt8]] {
        var told: [Int: [UInt8]] = [:]
        while let batch = try await writer.nextSignatures() {
            #expect(batch.bytes.count <= 56 << 10 && batch.bytes.count.isMultiple(of: PieceSignature.byteCount))
            told[batch.basis, default: []] += batch.bytes
        }
        return told
    }

    /// An attempt of which these chunks come.
    ///
    /// - Returns: what was told of the first basis.
    @discardableResult
    func attempt(_ chunks: Range<UInt64>, against copies: [FilePath]? = nil) async throws -> [UInt8] {
        let writer = try await open(against: copies)
        let told = try await Self.told(by: writer)
        try await writer.begin([chunks])
        try await writer.write(ResumeFixture.records([chunks], of: resume.content))
        #expect(await writer.end() > 0)
        return told[0] ?? []
    }

    /// What reading a file gives.
    static func signatures(of path: FilePath) throws -> [UInt8] {
        let file = try file(path)
        var reader = BasisReader(size: .smallest)
        var bytes: [UInt8] = []
        while try reader.step(in: file.descriptor, 0..<file.size, appendingTo: &bytes) {}
        return bytes
    }

    /// A file as a basis, in the state in which it is.
    static func basis(_ path: FilePath) throws -> KeptSignatures.Basis {
        let file = try file(path)
        return KeptSignatures.Basis(file, 0..<file.size)
    }

    /// Keeps others for a file than it has.
    ///
    /// - Returns: these.
    func poison(pieceSize: PieceSize = .smallest, _ signatures: [UInt8]? = nil) throws -> [UInt8] {
        var signatures = try signatures ?? Self.signatures(of: copy)
        for place in stride(from: 10, to: signatures.count, by: PieceSignature.byteCount) { signatures[place] ^= 0xFF }
        var kept = KeptSignatures(pieceSize: pieceSize)
        kept.append(signatures)
        kept.finish(try Self.basis(copy))
        try kept.write(to: try #require(self.kept()))
        return signatures
    }

    /// Receives what is missing, plain.
    func complete() async throws {
        try await resume.complete(try await open())
        resume.writers.expectOnly(["report.pdf"])
    }
}

@Suite("Signatures that are kept")
struct KeptSignaturesTests {
    @Test("Each request of a transfer is told all of them", arguments: [true, false])
    func everyRequest(_ isSettled: Bool) async throws {
        let fixture = try await AgainstFixture(seed: 54)
        if !isSettled { try DocumentFixture.write(fixture.resume.content, to: fixture.copy) }
        let writer = try await fixture.open()
        let size = try await writer.pieceSize()
        for _ in 0..<3 {
            #expect(try await AgainstFixture.told(by: writer)[0] == AgainstFixture.signatures(of: fixture.copy))
            #expect(try await writer.pieceSize() == size)
        }
        await writer.end()
    }

    @Test("A transfer that goes on tells the same ones, and reads nothing of the copy")
    func notReadAgain() async throws {
        let fixture = try await AgainstFixture(seed: 50)
        let made = try await fixture.attempt(0..<3)
        #expect(try made == AgainstFixture.signatures(of: fixture.copy) && made.count > 2000)
        let kept = try #require(fixture.kept())
        #expect(try SystemCalls.status(at: kept).st_mode & 0o7777 == 0o600)
        await #expect(processExitsWith: .success) { [path = fixture.resume.scratch.path as String] in
            let scratch = FilePath(path)
            let content = UInt64(try DocumentFixture.size(at: scratch.appending("older copy")))
            let before = try DocumentFixture.readByteCount()
            let writer = try await DocumentWriter.create(
                try DocumentFixture.tree(content, version: ResumeFixture.version), from: DocumentFixture.origin,
                in: try DestinationFolder(scratch.appending("destination")),
                ledger: try PartFileLedger(stateFolder: scratch.appending("parts")),
                against: [scratch.appending("older copy")])
            #expect(try await writer.missing() == [3..<8])
            let told = try await AgainstFixture.told(by: writer)
            let count = try DocumentFixture.readByteCount() - before
            #expect(count < 128 << 10, "\(count) bytes were read")
            try DocumentFixture.write(told[0] ?? [], to: scratch.appending("told"))
            await writer.end()
        }
        #expect(try DocumentFixture.read(fixture.resume.scratch.filePath.appending("told")) == made)
        #expect(fixture.kept() == kept)
        try await fixture.complete()
    }

    @Test("Of what was read before the link was cut nothing is read again, also where nothing had come yet")
    func cut() async throws {
        let fixture = try await AgainstFixture(seed: 59)
        // One of as much as it pays to keep a part for that has nothing, and one that is not told at once.
        let content = DocumentFixture.content(8 << 20, seed: 100)
        let copies = try [("large", 8), ("other", 6)].map { (name, count) in
            try fixture.resume.scratch.makeFile(name, (0..<count).flatMap { _ in content })
        }
        for copy in copies { try await AgainstFixture.settle(copy) }
        let first = try await fixture.open(against: copies)
        var made: [UInt8] = []
        while let batch = try await first.nextSignatures(), batch.basis == 0 { made += batch.bytes }
        #expect(await first.end() == 0)
        // Something else than reading gives, in place of what is kept.
        let kept = try #require(fixture.kept())
        let size = PieceSize.forBases(totalSize: 112 << 20, fileCount: 2)
        let read = try #require(KeptSignatures(readingFrom: kept, least: size))
        let (one, other) = (try AgainstFixture.basis(copies[0]), try AgainstFixture.basis(copies[1]))
        #expect(read[one].map(Array.init) == made && read[other] == nil)
        let poisoned = made.map { ~$0 }
        var others = KeptSignatures(pieceSize: read.pieceSize)
        others.append(poisoned)
        others.finish(one)
        try others.write(to: kept)
        let second = try await fixture.open(against: copies)
        let told = try await AgainstFixture.told(by: second)
        #expect(told[0] == poisoned && told[1]?.isEmpty == false)
        try await fixture.resume.complete(second)
        fixture.resume.writers.expectOnly(["report.pdf"])
    }

    @Test("Of another version of the document nothing of a copy is read again, however often it changes")
    func otherVersion() async throws {
        let fixture = try await AgainstFixture(seed: 61)
        try await fixture.attempt(0..<2)
        let poisoned = try fixture.poison()
        for version in 1...4 {
            let writer = try await DocumentWriter.create(
                try DocumentFixture.tree(
                    UInt64(fixture.resume.content.count), version: ResumeFixture.version + UInt64(version)),
                from: DocumentFixture.origin, in: try DestinationFolder(fixture.resume.folder),
                ledger: try fixture.resume.nextStart(), against: [fixture.copy])
            // The part of the version before comes after it, or before where it is a basis of the whole document.
            #expect(try await AgainstFixture.told(by: writer).values.contains(poisoned))
            try await writer.begin([0..<2])
            try await writer.write(ResumeFixture.records([0..<2], of: fixture.resume.content))
            #expect(await writer.end() > 0)
        }
    }

    @Test("What was kept of the version before and is wrong is told once")
    func otherVersionWrong() async throws {
        let fixture = try await AgainstFixture(seed: 62)
        try await fixture.attempt(0..<2)
        let poisoned = try fixture.poison()
        func open() async throws -> DocumentWriter {
            try await DocumentWriter.create(
                try DocumentFixture.tree(UInt64(fixture.resume.content.count), version: ResumeFixture.version + 1),
                from: DocumentFixture.origin, in: try DestinationFolder(fixture.resume.folder),
                ledger: try fixture.resume.nextStart(), against: [fixture.copy])
        }
        let writer = try await open()
        let bases = try await AgainstFixture.told(by: writer)
        let basis = try #require(bases.first { $0.value == poisoned }).key
        try await writer.begin([2..<3])
        // The other device has found bytes by them that the copy has not there.
        let record = OtherVersionTests.copying(2, of: fixture.resume.content, from: 3 << 20, basis: basis)
        #expect(await DocumentFixture.code { try await writer.write(record) } == .basisChanged)
        let next = try await open()
        #expect(try await AgainstFixture.told(by: next).values.contains(AgainstFixture.signatures(of: fixture.copy)))
        await next.end()
    }

    @Test("A part is kept for them only where it takes no room, and another version is no change of what never came")
    func withoutContent() async throws {
        let fixture = try await AgainstFixture(seed: 65)
        let content = DocumentFixture.content(8 << 20, seed: 101)
        let copy = try fixture.resume.scratch.makeFile("large", (0..<8).flatMap { _ in content })
        try await AgainstFixture.settle(copy)
        let bytes = [UInt8](repeating: 5, count: DocumentIdentity.byteCount)
        func attempt(version: UInt64 = ResumeFixture.version, givesRoomBack: Bool = true) async throws -> Bool {
            let writer = try await DocumentWriter.create(
                try DocumentFixture.tree(UInt64(fixture.resume.content.count), version: version),
                from: DocumentFixture.origin,
                in: try DestinationFolder(fixture.resume.folder, givesRoomBack: givesRoomBack),
                ledger: try fixture.resume.nextStart(), against: [copy],
                identity: DocumentIdentity(file: bytes, place: bytes))
            let hasChanged = try await writer.hasChanged()
            _ = try await AgainstFixture.told(by: writer)
            #expect(await writer.end() == 0)
            return hasChanged
        }
        _ = try await attempt(givesRoomBack: false)
        fixture.resume.writers.expectOnly([])
        _ = try await attempt()
        #expect(fixture.resume.names.count == 1 && fixture.kept() != nil)
        #expect(try await !attempt(version: ResumeFixture.version + 1))
    }

    @Test("Where the number of a file is no part of its version, those of another file are not told as its own")
    func otherNumber() async throws {
        let scratch = try ScratchFolder()
        let kept = scratch.filePath.appending("kept")
        let paths = (0..<2).map { scratch.filePath.appending("copy \($0)") }
        // Both were made in the same tick of the clock, and written in the same.
        func identities() throws -> [FileIdentity] {
            try paths.map {
                let file = try SystemCalls.open($0, O_RDONLY)
                return FileIdentity(try SystemCalls.status(of: file), of: file, keepsInodes: false)
            }
        }
        let isEqual = try await eventually {
            for path in paths {
                unlink(path.string)
                close(creat(path.string, 0o600))
            }
            for (number, path) in paths.enumerated() {
                try DocumentFixture.write(DocumentFixture.content(2 << 20, seed: 63 + UInt64(number)), to: path)
            }
            for path in paths {
                var times = [timespec(tv_sec: 1000, tv_nsec: 0), timespec(tv_sec: 1000, tv_nsec: 0)]
                try SystemCalls.call { utimensat(AT_FDCWD, path.string, &times, 0) }
            }
            let both = try identities()
            return both[0] == both[1]
        }
        try #require(isEqual)
        for path in paths { try await AgainstFixture.settle(path) }
        for _ in 0..<2 {
            let bases = Bases(of: try DocumentFixture.tree(2 << 20))
            for path in paths { bases.add(try OlderCopy(opening: path, keepsInodes: false)) { _ in true } }
            bases.keepSignatures(at: kept)
            var told: [Int: [UInt8]] = [:]
            while let batch = bases.nextSignatures() { told[batch.basis, default: []] += batch.bytes }
            for (number, path) in paths.enumerated() {
                #expect(try told[number] == AgainstFixture.signatures(of: path))
            }
        }
    }

    enum Change: CaseIterable {
        case none, edited, touched, replaced, grown
        case damaged, truncated, emptied, longer, overlong, otherVersion, gone

        /// Whether it is the copy that has changed.
        var isOfCopy: Bool { [.edited, .touched, .replaced, .grown].contains(self) }
    }

    private func change(_ change: Change, _ fixture: AgainstFixture) throws {
        let (copy, kept) = (fixture.copy, try #require(fixture.kept()))
        let before = try SystemCalls.status(at: copy)
        switch change {
        case .none: return
        case .edited, .touched:
            if change == .edited { try DocumentFixture.write([~fixture.resume.content[5000]], to: copy, at: 5000) }
            var times = [before.st_atim, before.st_mtim]
            try SystemCalls.call { utimensat(AT_FDCWD, copy.string, &times, 0) }
            let after = try SystemCalls.status(at: copy)
            #expect(FileIdentity(after).modified == FileIdentity(before).modified && after.st_size == before.st_size)
        case .replaced:
            var times = [before.st_atim, before.st_mtim]
            let other = try fixture.resume.scratch.makeFile("other", fixture.resume.content.reversed())
            try SystemCalls.call { utimensat(AT_FDCWD, other.string, &times, 0) }
            try SystemCalls.call { rename(other.string, copy.string) }
        case .grown: try DocumentFixture.write([1, 2, 3], to: copy, at: UInt64(before.st_size))
        case .damaged:
            let place = try DocumentFixture.size(at: kept) / 2
            let byte = try DocumentFixture.read(kept)[place]
            try DocumentFixture.write([byte ^ 1], to: kept, at: UInt64(place))
        case .truncated:
            let size = try DocumentFixture.size(at: kept)
            try SystemCalls.call { truncate(kept.string, size - 20) }
        case .emptied: try SystemCalls.call { truncate(kept.string, 0) }
        case .longer: try DocumentFixture.write([0], to: kept, at: UInt64(try DocumentFixture.size(at: kept)))
        case .overlong: try SystemCalls.call { truncate(kept.string, 1 << 40) }
        case .otherVersion: try DocumentFixture.write(Array("1".utf8), to: kept, at: 13)
        case .gone: KeptSignatures.remove(at: kept)
        }
    }

    @Test(
        "A copy that has changed is read again, and so is one of which what was kept is not whole",
        arguments: Change.allCases)
    func changed(_ change: Change) async throws {
        let fixture = try await AgainstFixture(seed: 51)
        try await fixture.attempt(0..<2)
        let poisoned = try fixture.poison()
        try self.change(change, fixture)
        let told = try await fixture.attempt(2..<4)
        let truth = try AgainstFixture.signatures(of: fixture.copy)
        #expect(told != poisoned || change == .none)
        #expect(told == (change == .none ? poisoned : truth))
        guard change != .none else { return }
        // And they are kept anew: of a copy that has just changed, from the next time on.
        if change.isOfCopy {
            try await AgainstFixture.settle(fixture.copy)
            try await fixture.attempt(4..<5)
        }
        let again = try fixture.poison()
        #expect(try await fixture.attempt(5..<6) == again)
        try await fixture.complete()
    }

    @Test("What is kept of larger pieces is told, of smaller ones than there may be it is not")
    func pieceSize() async throws {
        let fixture = try await AgainstFixture(seed: 52)
        try await fixture.attempt(0..<2)
        let large = try #require(PieceSize(average: 1 << 20))
        let poisoned = try fixture.poison(pieceSize: large)
        let writer = try await fixture.open()
        #expect(try await writer.pieceSize() == large)
        #expect(try await AgainstFixture.told(by: writer) == [0: poisoned])
        #expect(try await writer.pieceSize() == large)
        await writer.end()
        let kept = try #require(fixture.kept())
        #expect(KeptSignatures(readingFrom: kept, least: large) != nil)
        #expect(KeptSignatures(readingFrom: kept, least: .largest) == nil)
    }

    @Test("What is wrong and fits ends one attempt, and is kept no longer")
    func wrong() async throws {
        let fixture = try await AgainstFixture(seed: 53)
        try await fixture.attempt(0..<2)
        let poisoned = try fixture.poison()
        let writer = try await fixture.open()
        #expect(try await AgainstFixture.told(by: writer) == [0: poisoned])
        try await writer.begin([2..<3])
        // The other device has found bytes by them that the copy has not there.
        let record = OtherVersionTests.copying(2, of: fixture.resume.content, from: 5 << 20)
        #expect(await DocumentFixture.code { try await writer.write(record) } == .basisChanged)
        #expect(fixture.kept() == nil)
        #expect(try await fixture.attempt(2..<3) == AgainstFixture.signatures(of: fixture.copy))
        try await fixture.complete()
    }

    @Test("Of a copy that was edited a moment ago nothing is kept: the next edit may have the same time")
    func notSettled() async throws {
        let identity = FileIdentity(try SystemCalls.status(at: "/"))
        let changed = identity.changed.seconds
        for (now, isSettled) in [(changed - 9, false), (changed, false), (changed + 2, false), (changed + 3, true)] {
            #expect(BasisFile.isSettled(identity, at: now) == isSettled)
        }
        let scratch = try ScratchFolder()
        let tree = try DocumentFixture.tree(1 << 20)
        for isEdited in [true, false] {
            let (path, kept) = (scratch.filePath.appending("copy"), scratch.filePath.appending("signatures"))
            // A machine that stands still after the edit takes another turn.
            let isTold = try await eventually {
                if isEdited {
                    try DocumentFixture.write([UInt8](repeating: 1, count: 1 << 20), to: path)
                } else {
                    try await AgainstFixture.settle(path)
                }
                let copy = try OlderCopy(opening: path)
                guard case .file(let file) = copy.content, file.isSettled != isEdited else { return false }
                let bases = Bases(of: tree)
                bases.add(copy) { _ in true }
                bases.keepSignatures(at: kept)
                while bases.nextSignatures() != nil {}
                return true
            }
            #expect(isTold)
            #expect(access(kept.string, F_OK) == (isEdited ? -1 : 0))
        }
    }

    @Test("While a copy is read slowly the other device hears of it, and in the end of all of it")
    func slowly() throws {
        let scratch = try ScratchFolder()
        let path = try scratch.makeFile("copy", DocumentFixture.content(9 << 20, seed: 58))
        func told(_ bases: Bases) throws -> (bytes: [UInt8], batches: Int) {
            bases.add(try OlderCopy(opening: path)) { _ in true }
            var told: (bytes: [UInt8], batches: Int) = ([], 0)
            while let batch = bases.nextSignatures() {
                told.bytes += batch.bytes
                told.batches += 1
            }
            return told
        }
        let tree = try DocumentFixture.tree(9 << 20)
        let atOnce = try told(Bases(of: tree, longestSilence: .seconds(3600)))
        // Each step takes longer than that.
        let slowly = try told(Bases(of: tree, longestSilence: .zero))
        #expect(slowly.bytes == atOnce.bytes && atOnce.batches == 1)
        #expect(slowly.batches >= 9)
    }

    @Test("They go with the part: committed, without content, expired, of another version")
    func removed() async throws {
        let fixture = try await AgainstFixture(seed: 55)
        func begin() async throws {
            try await fixture.attempt(0..<2)
            #expect(fixture.kept() != nil)
        }
        // Nothing has come.
        let writer = try await fixture.open()
        _ = try await AgainstFixture.told(by: writer)
        #expect(fixture.kept() != nil)
        #expect(await writer.end() == 0)
        fixture.resume.writers.expectOnly([])
        // Kept for too long.
        try await begin()
        let journal = try fixture.resume.journal()
        var times = [timespec(), timespec()]
        try SystemCalls.call { utimensat(AT_FDCWD, journal.string, &times, 0) }
        #expect(try fixture.resume.nextStart().removeLeftovers() == 1)
        fixture.resume.writers.expectOnly([])
        // The part is gone.
        try await begin()
        KeptSignatures.remove(at: try fixture.resume.part())
        KeptSignatures.remove(at: try fixture.resume.journal())
        try fixture.resume.nextStart().removeLeftovers()
        fixture.resume.writers.expectOnly([])
        // A process that was killed while it forgot one leaves at most what the next start finds.
        try await begin()
        KeptSignatures.remove(at: try fixture.resume.part())
        KeptSignatures.remove(at: try #require(fixture.kept()))
        KeptSignatures.remove(at: try fixture.resume.journal())
        try fixture.resume.nextStart().removeLeftovers()
        fixture.resume.writers.expectOnly([])
        // Another version of the document is whole.
        try await begin()
        let other = try await DocumentWriter.create(
            try DocumentFixture.tree(UInt64(fixture.resume.content.count), version: ResumeFixture.version + 1),
            from: DocumentFixture.origin, in: try DestinationFolder(fixture.resume.folder),
            ledger: try fixture.resume.nextStart(), against: [fixture.copy])
        _ = try await AgainstFixture.told(by: other)
        try await fixture.resume.complete(other)
        fixture.resume.writers.expectOnly(["report.pdf"])
    }

    /// A document is received whole, and nothing is kept of its signatures.
    ///
    /// - Parameter spoil: is called before they are told, with the path where they would be kept.
    private func arrives(_ fixture: AgainstFixture, spoil: (FilePath) throws -> Void) async throws -> DocumentWriter {
        let writer = try await fixture.open()
        let record = try #require(fixture.resume.writers.records.first { $0.hasSuffix(PartFileRecord.suffix) })
        let name = record.dropLast(PartFileRecord.suffix.count) + PartFileRecord.signaturesSuffix
        try spoil(fixture.resume.scratch.filePath.appending("parts").appending(String(name)))
        let told = try await AgainstFixture.told(by: writer)
        #expect(try told == [0: AgainstFixture.signatures(of: fixture.copy)])
        #expect(fixture.kept() == nil)
        return writer
    }

    @Test(
        "Where there is no room for them the document arrives, and nothing of them is left",
        .enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
    func fullDisk() async throws {
        let fixture = try await AgainstFixture(seed: 56)
        do {
            let state = try MountedFolder(
                tmpfsAt: fixture.resume.scratch.filePath.appending("parts"), size: 64 << 10)
            let filler = state.path.appending("filler")
            let writer = try await arrives(fixture) { _ in
                var end: UInt64 = 0
                #expect(throws: Errno.noSpace) {
                    while true {
                        try DocumentFixture.write([UInt8](repeating: 1, count: 4096), to: filler, at: end)
                        end += 4096
                    }
                }
            }
            KeptSignatures.remove(at: filler)
            try await fixture.resume.complete(writer)
            fixture.resume.writers.expectOnly(["report.pdf"])
        }
        withExtendedLifetime(fixture) {}
    }

    @Test("What somebody has put in their place is not followed")
    func link() async throws {
        let fixture = try await AgainstFixture(seed: 56)
        // The thread may write there, but for this.
        let victim = try fixture.resume.scratch.makeFile("parts/victim", [7, 8, 9])
        let writer = try await arrives(fixture) { kept in
            try SystemCalls.call { symlink(victim.string, kept.string) }
        }
        #expect(try DocumentFixture.read(victim) == [7, 8, 9])
        KeptSignatures.remove(at: victim)
        try await fixture.resume.complete(writer)
        fixture.resume.writers.expectOnly(["report.pdf"])
    }

    @Test("With what is made anew they are at most as many as may be told")
    func limit() async throws {
        let fixture = try await AgainstFixture(seed: 57)
        let other = try fixture.resume.scratch.makeFile("other", DocumentFixture.content(1 << 20, seed: 58))
        try await fixture.attempt(0..<2, against: [fixture.copy, other])
        let one = try AgainstFixture.signatures(of: fixture.copy).prefix(PieceSignature.byteCount)
        let many = try fixture.poison(Array((0..<PieceSignature.limit - 3).map { _ in one }.joined()))
        let writer = try await fixture.open(against: [fixture.copy, other])
        let told = try await AgainstFixture.told(by: writer)
        #expect(told[0] == many)
        #expect(try told[1] == Array(AgainstFixture.signatures(of: other).prefix(3 * PieceSignature.byteCount)))
        await writer.end()
        // The same one twice is told twice.
        let twice = try await fixture.open(against: [fixture.copy, fixture.copy])
        #expect(try await AgainstFixture.told(by: twice)[1]?.count == 3 * PieceSignature.byteCount)
        await twice.end()
    }

    @Test("What there was no room for to its end is read again where there is room")
    func cutByTheLimit() async throws {
        let fixture = try await AgainstFixture(seed: 59)
        let content = DocumentFixture.content(1 << 20, seed: 58)
        let other = try fixture.resume.scratch.makeFile("other", content)
        try await AgainstFixture.settle(other)
        try await fixture.attempt(0..<2)
        let whole = try AgainstFixture.signatures(of: other)
        let one = try AgainstFixture.signatures(of: fixture.copy).prefix(PieceSignature.byteCount)
        // With as much room as it needs it is kept, and with any less it is not.
        for (chunk, room) in [(2, whole.count / PieceSignature.byteCount), (3, 3)] as [(UInt64, Int)] {
            _ = try fixture.poison(Array((0..<PieceSignature.limit - room).map { _ in one }.joined()))
            let told = try await fixture.attempt(chunk..<chunk + 1, against: [fixture.copy, other])
            #expect(told.count == (PieceSignature.limit - room) * PieceSignature.byteCount)
            let path = try #require(fixture.kept())
            let kept = try #require(KeptSignatures(readingFrom: path, least: .smallest))
            let file = try AgainstFixture.file(other)
            let ofOther = kept[KeptSignatures.Basis(file, 0..<file.size)]
            #expect(ofOther.map(Array.init) == (room == 3 ? nil : whole))
        }
        #expect(try await fixture.attempt(4..<5, against: [other]) == whole)
        try await fixture.complete()
    }

    @Test("Of a folder, what was edited since is read again, and nothing else of it")
    func folder() async throws {
        let delta = try FolderDelta()
        let names = ["a", "b", "c/d"]
        let contents = (0..<3).map { DocumentFixture.content(3 << 20, seed: 60 + $0) }
        let source = try delta.makeSource(Array(zip(names, contents)))
        let older = try delta.writers.scratch.makeFolder("older")
        try SystemCalls.call { mkdir(older.appending("c").string, 0o755) }
        for (name, content) in zip(names, contents) { try DocumentFixture.write(content, to: older.appending(name)) }
        for name in names { try await AgainstFixture.settle(older.appending(name)) }
        let first = try await delta.attempt(source, against: [older], interruptedAfter: 1)
        #expect(first.arrived == nil)
        let parts = delta.writers.scratch.filePath.appending("parts")
        let kept = parts.appending(
            try #require(delta.writers.records.first { $0.hasSuffix(PartFileRecord.signaturesSuffix) }))
        // The signatures of one are said to be those of all.
        let one = try AgainstFixture.signatures(of: older.appending("a"))
        var all = KeptSignatures(pieceSize: .smallest)
        for name in names {
            let file = try AgainstFixture.file(older.appending(name))
            all.append(one)
            all.finish(KeptSignatures.Basis(file, 0..<file.size))
        }
        try all.write(to: kept)
        try DocumentFixture.write([~contents[1][7]], to: older.appending("b"), at: 7)
        let writer = try await DocumentWriter.create(
            try DocumentScan.scan(source).tree, from: DocumentFixture.origin,
            in: try DestinationFolder(delta.writers.folder), ledger: try PartFileLedger(stateFolder: parts),
            against: [older])
        let told = try await AgainstFixture.told(by: writer)
        #expect(try told == [0: one, 1: AgainstFixture.signatures(of: older.appending("b")), 2: one])
        await writer.end()
        KeptSignatures.remove(at: kept)
        try delta.expectArrived(try await delta.attempt(source, against: [older]), source)
    }

    @Test("Nothing that was written to the file by somebody else is taken for signatures")
    func damage() throws {
        var generator = SeededGenerator()
        let scratch = try ScratchFolder()
        var kept = KeptSignatures(pieceSize: .smallest)
        let basis = {
            KeptSignatures.Basis(
                version: FileVersion(high: $0, low: 1), number: .init(fileSystem: 7, inode: $0), stretch: 0..<$0 + 1)
        }
        for number in 0..<UInt64(5) {
            kept.append(DocumentFixture.content(Int(number) * PieceSignature.byteCount, seed: number))
            kept.finish(number == 3 ? nil : basis(number))
        }
        let path = scratch.filePath.appending("signatures")
        try kept.write(to: path)
        let whole = try DocumentFixture.read(path)
        let again = try #require(KeptSignatures(readingFrom: path, least: .smallest))
        for number in 0..<UInt64(5) {
            let content = DocumentFixture.content(Int(number) * PieceSignature.byteCount, seed: number)
            #expect(again[basis(number)].map(Array.init) == (number == 3 ? nil : content))
        }
        for _ in 0..<500 {
            var bytes = whole
            let place = Int.random(in: 0..<bytes.count, using: &generator)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0: bytes[place] ^= UInt8.random(in: 1...255, using: &generator)
            case 1: bytes.remove(at: place)
            case 2: bytes.insert(UInt8.random(in: 0...255, using: &generator), at: place)
            default: bytes.removeLast(bytes.count - place)
            }
            guard bytes != whole else { continue }
            try SystemCalls.call { truncate(path.string, 0) }
            try DocumentFixture.write(bytes, to: path)
            #expect(KeptSignatures(readingFrom: path, least: .smallest) == nil, "\(generator)")
        }
    }
}
