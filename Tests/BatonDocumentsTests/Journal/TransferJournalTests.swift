// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import CLinux
import Foundation
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Journal of a transfer")
struct TransferJournalTests {
    let scratch: ScratchFolder
    let path: FilePath
    let tree: DocumentTree
    static let here = BootID(text: "this run")
    static let later = BootID(text: "another run")

    init() throws {
        scratch = try ScratchFolder()
        path = scratch.filePath.appending("journal")
        tree = try DocumentFixture.tree(1000 << 20, version: 1)
    }

    private func header(_ boot: BootID = here) -> JournalHeader {
        JournalHeader(origin: DocumentFixture.origin, boot: boot, tree: tree)
    }

    private static func checksum(_ chunk: UInt64) -> ChunkChecksum { ChunkChecksum(high: chunk &* 3, low: ~chunk) }

    private func append(_ chunks: some Sequence<UInt64>, to journal: TransferJournal) throws {
        for chunk in chunks { journal.append(chunk, Self.checksum(chunk)) }
        try journal.flush()
    }

    private func open(_ boot: BootID = here) throws -> (journal: TransferJournal, content: TransferJournal.Content) {
        try #require(try TransferJournal.open(path, boot: boot))
    }

    /// What the journal says in a run of the system: chunks that are certain, and others.
    private func content(_ boot: BootID = here) throws -> (certain: [Range<UInt64>], unsure: [UInt64]) {
        let content = try open(boot).content
        for (chunk, checksum) in content.unsure { #expect(checksum == Self.checksum(chunk)) }
        return (content.verified.ranges, content.unsure.map(\.chunk))
    }

    private func entryStart(_ index: Int) throws -> UInt64 {
        UInt64(try DocumentFixture.size(at: path)) - UInt64((try open().journal.entryCount)) * 40 + UInt64(index)
            * 40
    }

    @Test("What an earlier version said of files that were written over says nothing, and damages nothing")
    func remnants() throws {
        let journal = try TransferJournal.create(at: path, header())
        try append([0, 1], to: journal)
        let entry = JournalEntry(kind: .remnant, number: 1).withBytes(at: 2) { Array($0) }
        try DocumentFixture.write(entry, to: path, at: try entryStart(2))
        #expect(try open().content.verified.ranges == [0..<2])
    }

    @Test("What was written is read again, and can be gone on with")
    func reopening() throws {
        do {
            let journal = try TransferJournal.create(at: path, header())
            try append([0, 1, 2, 7], to: journal)
        }
        do {
            let (journal, content) = try open()
            #expect(content.header.origin == DocumentFixture.origin && content.header.boot == Self.here)
            #expect(content.header.tree.isSameVersion(as: tree))
            #expect(content.verified.ranges == [0..<3, 7..<8] && content.unsure.isEmpty)
            try append([3, 3, 8], to: journal)
        }
        #expect(try content().certain == [0..<4, 7..<9])
        #expect(try open().journal.entryCount == 7)
        #expect(try SystemCalls.status(at: path).st_mode & 0o777 == 0o600)
    }

    @Test("What was not flushed is not there")
    func unflushed() throws {
        let journal = try TransferJournal.create(at: path, header())
        journal.append(1, Self.checksum(1))
        #expect(try content().certain.isEmpty)
        try journal.flush()
        #expect(try content().certain == [1..<2])
    }

    @Test("After another start of the system only what a mark covers is certain")
    func marks() throws {
        let journal = try TransferJournal.create(at: path, header())
        try append(0..<5, to: journal)
        let covered = journal.entryCount
        try append(5..<8, to: journal)
        journal.mark(covered)
        try append(8..<9, to: journal)
        #expect(try content(Self.later) == ([0..<5], [5, 6, 7, 8]))
        #expect(try content().certain == [0..<9])
        journal.mark(journal.entryCount)
        try journal.flush()
        #expect(try content(Self.later) == ([0..<9], []))
    }

    @Test("A mark of a later run says nothing of chunks that the earlier one has lost")
    func markOfALaterRun() throws {
        try append(0..<4, to: try TransferJournal.create(at: path, header()))
        do {
            // Chunks 0 and 2 are there after all; 1 comes again; of 3 nothing is known yet.
            let (journal, content) = try open(Self.later)
            #expect(content.unsure.map(\.chunk) == [0, 1, 2, 3])
            try append([0, 2, 1], to: journal)
            journal.mark(journal.entryCount)
            try append([9], to: journal)
        }
        for boot in [Self.later, BootID(text: "a third run")] {
            #expect(try content(boot) == ([0..<3], [3, 9]), "\(boot.text)")
        }
    }

    @Test("What is said in a run of the system counts as long as that lasts, whichever others there were")
    func runs() throws {
        try append(0..<3, to: try TransferJournal.create(at: path, header()))
        do {
            let (journal, content) = try open(Self.later)
            #expect(content.unsure.map(\.chunk) == [0, 1, 2])
            journal.beginRun()
            try append([0, 5], to: journal)
        }
        #expect(try content(Self.later) == ([0..<1, 5..<6], [1, 2]))
        #expect(try content() == ([], [0, 1, 2, 0, 5]))
        // It is said once, and what is found not to be there is not looked for again.
        do {
            let (journal, _) = try open(Self.later)
            journal.beginRun()
            journal.lose(1)
            try append([2], to: journal)
            #expect(journal.entryCount == 8)
        }
        #expect(try content(Self.later) == ([0..<1, 2..<3, 5..<6], []))
        let intact = try DocumentFixture.read(path)
        // One that cannot be read is as none: what is said behind it is looked for.
        try DocumentFixture.write([0xFF], to: path, at: try entryStart(3))
        #expect(try content(Self.later) == ([], [0, 2, 0, 5, 2]))
        try DocumentFixture.write(intact, to: path)
        // A mark covers what is of its run.
        do {
            let (journal, _) = try open(Self.later)
            journal.mark(journal.entryCount)
            try journal.flush()
        }
        #expect(try content(BootID(text: "a third run")) == ([0..<1, 2..<3, 5..<6], []))
    }

    @Test("A mark that covers nothing of its own run is none")
    func emptyMark() throws {
        try append(0..<2, to: try TransferJournal.create(at: path, header()))
        let (journal, _) = try open(Self.later)
        journal.mark(2)
        try journal.flush()
        #expect(journal.entryCount == 2)
        #expect(try content(Self.later) == ([], [0, 1]))
    }

    @Test("What is lost is not there, whatever was said before, until it comes again")
    func loss() throws {
        let journal = try TransferJournal.create(at: path, header())
        try append(0..<4, to: journal)
        journal.mark(4)
        try append(4..<6, to: journal)
        for chunk in [1, 5, 700, 5000] as [UInt64] { journal.lose(chunk) }
        try journal.flush()
        #expect(try content().certain == [0..<1, 2..<5])
        #expect(try content(Self.later) == ([0..<1, 2..<4], [4]))
        try append([1], to: journal)
        #expect(try content().certain == [0..<5])
        #expect(try content(Self.later) == ([0..<1, 2..<4], [4, 1]))
    }

    @Test("When the disk has failed, what no mark covers is not there, and no later mark covers it")
    func distrust() throws {
        let journal = try TransferJournal.create(at: path, header())
        try append(0..<3, to: journal)
        journal.mark(2)
        try append(5..<7, to: journal)
        let isOfUse = journal.distrust()
        #expect(isOfUse)
        for boot in [Self.here, Self.later] { #expect(try content(boot) == ([0..<2], []), "\(boot.text)") }
        #expect(try journal.verified().ranges == [0..<2])
        // A mark that was begun before, and says so only now.
        journal.mark(4)
        try append([6, 9], to: journal)
        #expect(try content() == ([0..<2, 6..<7, 9..<10], []))
        #expect(try content(Self.later) == ([0..<2], [6, 9]))
        // The next one to go on with it cannot vouch for it either.
        let next = try open().journal
        next.mark(next.entryCount)
        try next.flush()
        for boot in [Self.here, Self.later] {
            #expect(try content(boot) == ([0..<2, 6..<7, 9..<10], []), "\(boot.text)")
        }
    }

    @Test("A journal that says nothing any more is none")
    func void() throws {
        let journal = try TransferJournal.create(at: path, header())
        try append(0..<3, to: journal)
        journal.void()
        #expect(try TransferJournal.open(path, boot: Self.here) == nil)
    }

    @Test("A damaged entry costs its chunk, and what stands before it is compared, whichever bit it is")
    func damagedEntry() throws {
        try append(0..<10, to: try TransferJournal.create(at: path, header()))
        let intact = try DocumentFixture.read(path)
        let start = Int(try entryStart(4))
        for bit in 0..<40 * 8 {
            var bytes = intact
            bytes[start + bit / 8] ^= 1 << UInt8(bit % 8)
            try DocumentFixture.write(bytes, to: path)
            #expect(try content() == ([5..<10], [0, 1, 2, 3]), "bit \(bit)")
        }
    }

    /// One kind of entry that takes back what others say.
    enum Retraction: CaseIterable {
        case loss, distrust, attempt
    }

    @Test(
        "Where the entry is damaged that takes back what others say, nothing counts that it took back",
        arguments: Retraction.allCases)
    func damagedRetraction(_ kind: Retraction) throws {
        let journal = try TransferJournal.create(at: path, header())
        try append(0..<2, to: journal)
        journal.mark(2)
        try append(2..<4, to: journal)
        switch kind {
        case .loss: journal.lose(1)
        case .distrust: #expect(journal.distrust())
        case .attempt: #expect(journal.attempt(4))
        }
        try append(7..<9, to: journal)
        journal.mark(journal.entryCount)
        try journal.flush()
        try DocumentFixture.write([0xFF], to: path, at: try entryStart(5) + 15)
        for boot in [Self.here, Self.later] { #expect(try content(boot) == ([7..<9], [0, 1, 2, 3]), "\(boot.text)") }
        // Two are found to be there, and said again: the next one believes that, and looks at nothing any more.
        do {
            let (next, content) = try open()
            #expect(content.unsure.map(\.chunk) == [0, 1, 2, 3])
            try append([0, 3], to: next)
            next.endDoubt()
            next.mark(next.entryCount)
            try next.flush()
            #expect(try next.verified().ranges == [0..<1, 3..<4, 7..<9])
        }
        for boot in [Self.here, Self.later] {
            #expect(try content(boot) == ([0..<1, 3..<4, 7..<9], []), "\(boot.text)")
        }
    }

    @Test("Room behind the last entry that was never written is none, and is written over; a gap is damage")
    func unwrittenTail() throws {
        try append(0..<3, to: try TransferJournal.create(at: path, header()))
        let (size, gap) = (try DocumentFixture.size(at: path), try entryStart(1))
        try SystemCalls.call { truncate(path.string, size + 3 * 40) }
        #expect(try content() == ([0..<3], []))
        try append([3], to: try open().journal)
        #expect(try DocumentFixture.size(at: path) == size + 3 * 40)
        #expect(try content() == ([0..<4], []))
        try DocumentFixture.write([UInt8](repeating: 0, count: 40), to: path, at: gap)
        #expect(try content() == ([2..<4], [0]))
    }

    @Test("The room of its entries is reserved, and of a document that is said to be vast not all of it")
    func reserved() throws {
        func allocated(_ size: UInt64) throws -> (room: Int, size: Int) {
            let tree = try DocumentFixture.tree(size, version: 1, isSparse: true)
            _ = try TransferJournal.create(
                at: path, JournalHeader(origin: DocumentFixture.origin, boot: Self.here, tree: tree))
            let status = try SystemCalls.status(at: path)
            return (Int(status.st_blocks) * 512, Int(status.st_size))
        }
        let usual = try allocated(10 << 30)
        #expect(usual.room >= 10 << 10 * 40 && usual.room < 2 << 20 && usual.size < 4096)
        #expect(try content() == ([], []))
        let vast = try allocated(100 << 40)
        #expect(vast.room >= 4 << 20 && vast.room <= 17 << 20 && vast.size < 4096)
    }

    @Test(
        "At most half of what is free is reserved for them",
        .enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
    func reservedOnASmallDisk() throws {
        let disk = try MountedFolder(tmpfsAt: try scratch.makeFolder("small"), size: 256 << 10)
        let tree = try DocumentFixture.tree(100 << 40, version: 1, isSparse: true)
        _ = try TransferJournal.create(
            at: disk.path.appending("journal"),
            JournalHeader(origin: DocumentFixture.origin, boot: Self.here, tree: tree))
        var status = statvfs()
        try SystemCalls.call { statvfs(disk.path.string, &status) }
        let free = Int(status.f_bavail) * Int(status.f_frsize)
        #expect(free >= 120 << 10 && free <= 136 << 10)
    }

    @Test("Entries that changed places are damaged both")
    func movedEntries() throws {
        try append(0..<6, to: try TransferJournal.create(at: path, header()))
        var bytes = try DocumentFixture.read(path)
        let (one, other) = (Int(try entryStart(1)), Int(try entryStart(4)))
        for index in 0..<40 { bytes.swapAt(one + index, other + index) }
        try DocumentFixture.write(bytes, to: path)
        #expect(try content() == ([5..<6], [0, 2, 3]))
    }

    @Test("A damaged mark vouches for nothing")
    func damagedMark() throws {
        let journal = try TransferJournal.create(at: path, header())
        try append(0..<3, to: journal)
        journal.mark(3)
        try journal.flush()
        let start = try entryStart(3)
        try DocumentFixture.write([0xFF], to: path, at: start + 15)
        #expect(try content(Self.later) == ([], [0, 1, 2]))
    }

    @Test("A torn end is written over by what comes next")
    func tornTail() throws {
        try append(0..<3, to: try TransferJournal.create(at: path, header()))
        let size = try DocumentFixture.size(at: path)
        for missing in [1, 20, 39] {
            try SystemCalls.call { truncate(path.string, size - missing) }
            let (journal, content) = try open()
            #expect(content.verified.ranges == [0..<2])
            try append([2], to: journal)
            #expect(try self.content().certain == [0..<3])
            #expect(try DocumentFixture.size(at: path) == size)
        }
    }

    @Test("A damaged or cut header costs everything, and nothing crashes")
    func damagedHeader() throws {
        try append(0..<3, to: try TransferJournal.create(at: path, header()))
        let intact = try DocumentFixture.read(path)
        let end = Int(try entryStart(0))
        for index in 0..<end {
            var bytes = intact
            bytes[index] ^= 0x20
            try DocumentFixture.write(bytes, to: path)
            #expect(try TransferJournal.open(path, boot: Self.here) == nil, "byte \(index)")
            #expect(try TransferJournal.header(at: path) == nil, "byte \(index)")
            #expect(try !TransferJournal.isIntact(at: path), "byte \(index)")
        }
        for size in [0, 1, 39, 40, end - 1] {
            try DocumentFixture.write(intact, to: path)
            try SystemCalls.call { truncate(path.string, size) }
            #expect(try TransferJournal.open(path, boot: Self.here) == nil, "\(size) bytes")
        }
        #expect(throws: Errno.noSuchFileOrDirectory) {
            try TransferJournal.open(scratch.filePath.appending("none"), boot: Self.here)
        }
    }

    @Test("What waited for a synchronisation of which nobody knows how it ended is not certain")
    func doubt() throws {
        let journal = try TransferJournal.create(at: path, header())
        try append(0..<5, to: journal)
        #expect(journal.attempt(journal.entryCount))
        // What comes meanwhile does not wait for it.
        try append(5..<7, to: journal)
        #expect(try content() == ([5..<7], [0, 1, 2, 3, 4]))
        #expect(try content(Self.later) == ([], [0, 1, 2, 3, 4, 5, 6]))
        // Who synchronises knows how it ended.
        #expect(try journal.verified().ranges == [0..<7])
        // The next process has looked at them, and found two.
        do {
            let (next, _) = try open()
            try append([1, 3], to: next)
            next.endDoubt()
            try next.flush()
            #expect(try next.verified().ranges == [1..<2, 3..<4, 5..<7])
        }
        #expect(try content() == ([1..<2, 3..<4, 5..<7], []))
        // No mark of it covers the others.
        do {
            let (next, _) = try open()
            #expect(next.attempt(next.entryCount))
            next.mark(next.entryCount)
            try next.flush()
        }
        #expect(try content(Self.later) == ([1..<2, 3..<4, 5..<7], []))
    }

    @Test("What was found not to be there does not count, also where the state folder has no room to say so")
    func refuted() throws {
        do {
            let journal = try TransferJournal.create(at: path, header())
            try append(0..<5, to: journal)
            #expect(journal.attempt(journal.entryCount))
        }
        let (next, _) = try open()
        next.append(1, Self.checksum(1))
        next.endDoubt()
        #expect(!next.isFlushed)
        #expect(try next.verified().ranges == [])
        try next.flush()
        #expect(try next.verified().ranges == [1..<2])
    }

    @Test("A mark, a failure, or that no mark speaks of it ends a synchronisation", arguments: [0, 1, 2])
    func endOfDoubt(_ end: Int) throws {
        let journal = try TransferJournal.create(at: path, header())
        try append(0..<5, to: journal)
        let count = journal.entryCount
        #expect(journal.attempt(count))
        try append(5..<7, to: journal)
        switch end {
        case 0: journal.mark(count)
        case 1: #expect(journal.distrust())
        default: journal.endAttempt()
        }
        try journal.flush()
        #expect(try content() == (end == 1 ? [] : [0..<7], []))
    }

    @Test("Chunks that the document has not are not believed")
    func strangers() throws {
        try append([1000, 5, .max], to: try TransferJournal.create(at: path, header()))
        #expect(try content().certain == [5..<6])
        #expect(try content(Self.later) == ([], [5]))
    }

    @Test("A link in the place of a journal is not followed")
    func link() throws {
        let target = try scratch.makeFile("target", [7])
        try SystemCalls.call { symlink(target.string, path.string) }
        #expect(throws: Errno.tooManySymbolicLinkLevels) { try TransferJournal.create(at: path, header()) }
        #expect(throws: Errno.tooManySymbolicLinkLevels) { try TransferJournal.open(path, boot: Self.here) }
        #expect(throws: Errno.tooManySymbolicLinkLevels) { try TransferJournal.header(at: path) }
        #expect(try DocumentFixture.read(target) == [7])
    }

    @Test("A journal that is too large is not read")
    func bound() throws {
        try append(0..<3, to: try TransferJournal.create(at: path, header()))
        let limit = Int(TransferJournal.sizeLimit)
        try SystemCalls.call { truncate(path.string, limit + 1) }
        #expect(try TransferJournal.open(path, boot: Self.here) == nil)
    }

    @Test("A header that is too large is none")
    func headerBound() throws {
        for (size, isRead) in [(TransferJournal.headerLimit, true), (TransferJournal.headerLimit + 1, false)] {
            let summary = JournalSummary(header(), [UInt8](repeating: 0, count: size))
            #expect((JournalSummary(decoding: summary.encoded[...]) == summary) == isRead)
        }
    }

    @Test(
        "The state folder's full disk is an error, and what was written before stays",
        .enabled(if: DocumentFixture.isRoot))
    func fullDisk() throws {
        let mounted = try MountedFolder(tmpfsAt: try scratch.makeFolder("full"), size: 64 << 10)
        let path = mounted.path.appending("journal")
        let journal = try TransferJournal.create(at: path, header())
        for chunk in 0..<UInt64(900) { journal.append(chunk, Self.checksum(chunk)) }
        try journal.flush()
        for chunk in 0..<UInt64(2000) { journal.append(chunk % 1000, Self.checksum(chunk % 1000)) }
        #expect(throws: Errno.noSpace) { try journal.flush() }
        let found = try #require(try TransferJournal.open(path, boot: Self.here)).content
        #expect(found.verified.ranges.first?.lowerBound == 0 && found.verified.count >= 900)
    }

    @Test("Any journal, cut or damaged anywhere, says at most what was written")
    func random() throws {
        var generator = SeededGenerator()
        print("journals that are cut or damaged: \(generator)")
        for _ in 0..<40 {
            let journal = try TransferJournal.create(at: path, header())
            var (written, durable) = (Set<UInt64>(), Set<UInt64>())
            for _ in 0..<Int.random(in: 0...30, using: &generator) {
                if Int.random(in: 0..<5, using: &generator) == 0 {
                    journal.mark(journal.entryCount)
                    durable = written
                } else {
                    let chunk = UInt64.random(in: 0..<1000, using: &generator)
                    journal.append(chunk, Self.checksum(chunk))
                    written.insert(chunk)
                }
            }
            try journal.flush()
            let isDamaged = Bool.random(using: &generator)
            if isDamaged {
                var bytes = try DocumentFixture.read(path)
                for _ in 0..<3 {
                    let place = Int.random(in: 0..<bytes.count, using: &generator)
                    bytes[place] = .random(in: 0...255, using: &generator)
                }
                try DocumentFixture.write(bytes, to: path)
            }
            if Bool.random(using: &generator) {
                let size = Int.random(in: 0...Int(try DocumentFixture.size(at: path)), using: &generator)
                try SystemCalls.call { truncate(path.string, size) }
            } else if !isDamaged {
                let content = try open(Self.later).content
                #expect(Set(content.verified.ranges.joined()) == durable, "\(generator)")
                #expect(Set(content.unsure.map(\.chunk)) == written.subtracting(durable), "\(generator)")
            }
            for boot in [Self.here, Self.later] {
                guard let content = try TransferJournal.open(path, boot: boot)?.content else { continue }
                let said = Set(content.verified.ranges.joined())
                #expect(said.isSubset(of: boot == Self.here ? written : durable), "\(generator)")
                #expect(content.unsure.allSatisfy { written.contains($0.chunk) }, "\(generator)")
            }
        }
    }
}
