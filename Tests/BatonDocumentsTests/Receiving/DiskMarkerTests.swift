// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Marks of what is on the disk")
struct DiskMarkerTests {
    let fixture: WriterFixture

    init() throws {
        fixture = try WriterFixture()
    }

    private func descriptor(_ name: String = "file") throws -> DescriptorToSynchronize {
        let path = try fixture.scratch.makeFile(name, [1, 2, 3])
        return DescriptorToSynchronize(file: try SystemCalls.open(path, O_RDWR), isFolder: false)
    }

    @Test("It tells once what was covered, closes the file, and can begin again")
    func tellsOnce() async throws {
        let marker = try DiskMarker()
        for count in [5, 9] as [UInt64] {
            #expect(marker.takeOutcome() == nil && marker.isIdle)
            marker.begin(covering: count, try descriptor())
            let isDone = await eventually { marker.takeOutcome() == .covered(count) }
            #expect(isDone)
            #expect(marker.takeOutcome() == nil)
        }
        let isClosed = await eventually { DocumentFixture.openFiles(in: fixture.scratch.filePath).isEmpty }
        #expect(isClosed)
    }

    @Test("What was not taken yet is not replaced by a later beginning")
    func oneAtATime() async throws {
        let marker = try DiskMarker()
        marker.begin(covering: 5, try descriptor())
        marker.begin(covering: 6, try descriptor("other"))
        let isDone = await eventually { marker.takeOutcome() == .covered(5) }
        #expect(isDone)
        #expect(marker.takeOutcome() == nil && marker.isIdle)
    }

    @Test("That something cannot be synchronised is told once, and covers nothing")
    func failure() throws {
        let marker = try DiskMarker()
        // O_PATH: a descriptor that stands for a place alone, and cannot be synchronised (EBADF).
        let place = try SystemCalls.open(fixture.scratch.filePath, 0o10000000)
        marker.begin(covering: 5, DescriptorToSynchronize(file: place, isFolder: true))
        marker.settle()
        #expect(!marker.isIdle)
        // Nothing is begun before it is heard of.
        marker.begin(covering: 6, try descriptor())
        marker.settle()
        #expect(marker.takeOutcome() == .failed(.badFileDescriptor))
        #expect(marker.takeOutcome() == nil && marker.isIdle)
    }

    @Test("A mark comes after 128 MiB, and covers what was written before it began and nothing else")
    func afterSoManyBytes() async throws {
        let tree = try DocumentFixture.tree(300 << 20, version: 1, isSparse: true)
        let header = JournalHeader(origin: DocumentFixture.origin, boot: .current, tree: tree)
        let content = try PartContent(creating: header, at: try PartPlace(fixture.folder, fixture.ledger))
        let unfinished = try #require(
            try PartFileLedger(stateFolder: fixture.scratch.filePath.appending("parts")).unfinished().first)
        func certain() throws -> [Range<UInt64>] {
            try #require(try TransferJournal.open(unfinished.journal, boot: BootID(text: "later"))).content.verified
                .ranges
        }
        func receive(_ chunks: Range<UInt64>) throws {
            for chunk in chunks {
                try content.take(.zeros(chunk: chunk))
                try content.take(.verified(chunk: chunk, checksum: ChunkChecksum(ofZeros: 1 << 20)))
            }
        }
        let interval = DiskMarker.byteInterval >> 20
        try receive(0..<interval - 1)
        try content.note()
        try receive(interval - 1..<interval)
        #expect(try certain().isEmpty)
        // It begins here.
        try content.note()
        try receive(interval..<interval + 50)
        let isMarked = try await eventually {
            try content.note()
            return try !certain().isEmpty
        }
        #expect(isMarked)
        #expect(try certain() == [0..<interval])
        #expect(content.end() == (interval + 50) << 20)
    }

    @Test("What is synchronised aside has an opening of its own, so that both hear of an error")
    func ownOpening() throws {
        let part = try PartFile(
            for: try DocumentLabel(Array("report.pdf".utf8)), .init(size: 100),
            at: try PartPlace(fixture.folder, fixture.ledger))
        let file = try part.descriptorToSynchronize()
        try SystemCalls.call { Int32(clamping: lseek(file.file.rawValue, 77, SEEK_SET)) }
        let path = fixture.folder.appending(try #require(fixture.names.first))
        let places = DocumentFixture.names(in: "/proc/self/fd").compactMap { number -> String? in
            var target = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
            guard
                readlink("/proc/self/fd/\(number)", &target, Int(PATH_MAX)) > 0,
                FilePath(platformString: target) == path,
                let text = try? SystemCalls.contents(of: FilePath("/proc/self/fdinfo/\(number)"), limit: 200)
            else { return nil }
            return String(decoding: text, as: UTF8.self).split(separator: "\n").first.map { String($0) }
        }
        #expect(places.sorted() == ["pos:\t0", "pos:\t77"])
        part.discard()
    }
}
