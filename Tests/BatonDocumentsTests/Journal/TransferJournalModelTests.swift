// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

/// A journal beside a model of the disk, through any course of events: processes that are killed and go on, disks that
/// fail, power cuts, and damage of the journal itself, each at any point.
@Suite("Journal of a transfer, and the disk that it speaks of")
struct TransferJournalModelTests {
    @Test("What a journal vouches for is there, and what it does not forget is what it was told")
    func courses() throws {
        var generator = SeededGenerator()
        print("courses of a journal: \(generator)")
        let scratch = try ScratchFolder()
        for round in 0..<400 {
            let path = scratch.filePath.appending("journal")
            var course = try Course(at: path, generator, "\(generator), round \(round)")
            for _ in 0..<6 { try course.process() }
            generator = course.generator
        }
    }
}

/// The chunks of a document on a disk.
private struct Disk {
    /// What can be read as long as the system runs.
    var readable = Set<UInt64>()
    /// What a power cut leaves.
    var durable = Set<UInt64>()
    /// What can be read, and never gets to the disk: that has failed, and does not try again.
    var failed = Set<UInt64>()

    /// What may be vouched for.
    var there: Set<UInt64> { durable.union(readable.subtracting(failed)) }

    mutating func write(_ chunk: UInt64) {
        readable.insert(chunk)
        failed.remove(chunk)
    }

    /// What was written gets to the disk, or some of it where that fails.
    mutating func synchronize(_ written: Set<UInt64>, fails: Bool, using generator: inout SeededGenerator) {
        for chunk in written.subtracting(durable).subtracting(failed).sorted() {
            if fails && Bool.random(using: &generator) { failed.insert(chunk) } else { durable.insert(chunk) }
        }
    }

    mutating func cutPower(using generator: inout SeededGenerator) {
        // Some of what waits has been written back by itself.
        for chunk in readable.subtracting(failed).sorted() where Bool.random(using: &generator) {
            durable.insert(chunk)
        }
        readable = durable
        failed = []
    }
}

/// What happens to one part and its journal, process after process.
private struct Course {
    private enum Synchronisation {
        case running, succeeded, failed
    }

    var generator: SeededGenerator
    private let name: String
    private let path: FilePath
    private var disk = Disk()
    private var boot = 0
    /// The run of the system that the journal says it is of.
    private var run = 0
    /// The journal's bytes that a power cut leaves.
    private var durableSize: Int

    // What the journal was told, as far as it is written.
    private var said = Set<UInt64>()
    private var everSaid = Set<UInt64>()
    private var marked = Set<UInt64>()
    /// Of these it is not known how the synchronisation ended that they waited for.
    private var doubted = Set<UInt64>()

    init(at path: FilePath, _ generator: SeededGenerator, _ name: String) throws {
        (self.path, self.generator, self.name) = (path, generator, name)
        let header = JournalHeader(
            origin: DocumentFixture.origin, boot: Self.boot(0), tree: try DocumentFixture.tree(1000 << 20, version: 1))
        _ = try TransferJournal.create(at: path, header)
        durableSize = try DocumentFixture.size(at: path)
    }

    private static func boot(_ number: Int) -> BootID { BootID(text: "run \(number)") }

    /// A process goes on with the part, until it is killed or the power fails.
    mutating func process() throws {
        let (journal, content) = try #require(try TransferJournal.open(path, boot: Self.boot(boot)), "\(name)")
        let (certain, unsure) = (Set(content.verified.ranges.joined()), Set(content.unsure.map(\.chunk)))
        #expect(certain.isSubset(of: disk.there), "\(name)")
        #expect(certain == (boot == run ? said.subtracting(doubted).union(marked) : marked), "\(name)")
        #expect(certain.union(unsure) == said, "\(name)")

        // What is unsure is read from the disk, and said again where it is there.
        journal.beginRun()
        let found = unsure.subtracting(certain).intersection(disk.there)
        for chunk in found.sorted() { append(chunk, to: journal) }
        for chunk in unsure.subtracting(certain).subtracting(found).sorted() { journal.lose(chunk) }
        journal.endDoubt()
        var (has, waiting) = (certain.union(found), found)
        // Marks cover what was said in this run of the system, and not doubted.
        var markable = boot == run ? certain.subtracting(marked) : []
        (run, said, doubted) = (boot, certain, [])
        func flushed() throws {
            try journal.flush()
            said.formUnion(waiting)
            everSaid.formUnion(waiting)
            markable.formUnion(waiting)
            waiting = []
        }
        // A process goes no further before this is written.
        try flushed()

        var synchronisation: (covers: UInt64, chunks: Set<UInt64>, written: Set<UInt64>, state: Synchronisation)?
        for _ in 0..<Int.random(in: 0...24, using: &generator) {
            switch (Int.random(in: 0..<8, using: &generator), synchronisation?.state) {
            case (0...2, _):
                guard let chunk = (0..<40).filter({ !has.contains($0) }).randomElement(using: &generator) else { break }
                disk.write(chunk)
                append(chunk, to: journal)
                has.insert(chunk)
                waiting.insert(chunk)
            case (3, _):
                try flushed()
                #expect(Set(try journal.verified().ranges.joined()) == marked.union(markable), "\(name)")
            case (4...5, nil):
                try flushed()
                synchronisation = (journal.entryCount, markable, has, .running)
                #expect(journal.attempt(journal.entryCount), "\(name)")
                doubted = said.subtracting(marked)
            case (4...5, .running?):
                let fails = Int.random(in: 0..<3, using: &generator) == 0
                disk.synchronize(synchronisation?.written ?? [], fails: fails, using: &generator)
                synchronisation?.state = fails ? .failed : .succeeded
            case (6...7, .succeeded?):
                guard let ended = synchronisation.take() else { break }
                // A mark says so, or only that it has ended.
                if Bool.random(using: &generator) {
                    journal.mark(ended.covers)
                    marked.formUnion(ended.chunks)
                } else {
                    journal.endAttempt()
                }
                doubted = []
                try flushed()
                guard Bool.random(using: &generator) else { break }
                try journal.synchronize()
                durableSize = try DocumentFixture.size(at: path)
            case (6...7, .failed?):
                synchronisation = nil
                everSaid.formUnion(waiting)
                #expect(journal.distrust(), "\(name)")
                durableSize = try DocumentFixture.size(at: path)
                (said, has, doubted, waiting, markable) = (marked, marked, [], [], [])
            default: break
            }
        }
        // Nobody hears how it ends.
        if let synchronisation, synchronisation.state == .running {
            disk.synchronize(synchronisation.written, fails: Bool.random(using: &generator), using: &generator)
        }
        if Int.random(in: 0..<4, using: &generator) == 0 { try cutPower() }
        if Int.random(in: 0..<8, using: &generator) == 0 { try damageEntry() }
    }

    /// A bit of an entry turns over. What it said is gone, and what it may have taken back is looked for.
    private mutating func damageEntry() throws {
        let path = path
        let size = try DocumentFixture.size(at: path)
        let count = Int(
            try #require(try TransferJournal.open(path, boot: Self.boot(boot)), "\(name)").journal.entryCount)
        guard count > 0 else { return }
        let place = size - 1 - Int.random(in: 0..<count * JournalEntry.size, using: &generator)
        var bytes = try DocumentFixture.read(path)
        bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
        try DocumentFixture.write(bytes, to: path)
        durableSize = size
        let now = try #require(try TransferJournal.open(path, boot: Self.boot(boot)), "\(name)").content
        let later = try #require(try TransferJournal.open(path, boot: BootID(text: "later")), "\(name)").content
        let certain = Set(now.verified.ranges.joined())
        #expect(certain.isSubset(of: said.subtracting(doubted).union(marked)), "\(name)")
        #expect(certain.isSubset(of: disk.there), "\(name)")
        said = certain.union(now.unsure.map(\.chunk))
        #expect(said.isSubset(of: everSaid), "\(name)")
        marked = Set(later.verified.ranges.joined())
        doubted = said.subtracting(certain)
    }

    private func append(_ chunk: UInt64, to journal: TransferJournal) {
        journal.append(chunk, ChunkChecksum(high: chunk &* 3, low: ~chunk))
    }

    /// Of the journal's last entries some are lost, in part or each by itself.
    private mutating func cutPower() throws {
        disk.cutPower(using: &generator)
        boot += 1
        let size = Int.random(in: durableSize...(try DocumentFixture.size(at: path)), using: &generator)
        let path = path
        try SystemCalls.call { truncate(path.string, size) }
        for start in stride(from: durableSize, to: size, by: JournalEntry.size)
        where Int.random(in: 0..<3, using: &generator) == 0 {
            let lost = [UInt8](repeating: 0, count: min(JournalEntry.size, size - start))
            try DocumentFixture.write(lost, to: path, at: UInt64(start))
        }
        durableSize = size
        let left = try #require(try TransferJournal.open(path, boot: Self.boot(boot)), "\(name)").content
        let certain = Set(left.verified.ranges.joined())
        let all = certain.union(left.unsure.map(\.chunk))
        // That a chunk was not there may be forgotten: then it is looked for again.
        #expect(all.isSubset(of: everSaid) && certain.isSubset(of: marked), "\(name)")
        (said, marked, doubted) = (all, certain, [])
    }
}
