// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Folders of many small files", .nightly)
struct FolderSpeedTests {
    /// Processor time of this thread, which other tests and processes do not add to.
    private static func processorTime(_ body: () throws -> Void) throws -> Duration {
        func now() -> Duration {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
        }
        let before = now()
        try body()
        return now() - before
    }

    @Test("2,000 files of 4 KiB cost little processor time each")
    func manySmallFiles() throws {
        let scratch = try ScratchFolder()
        let target = try scratch.makeFolder("destination")
        let content = DocumentFixture.content(4096, seed: 1)
        let folder = try scratch.makeFolder("folder")
        let making = try Self.processorTime {
            for outer in 0..<20 {
                _ = try scratch.makeFolder("folder/\(outer)")
                for inner in 0..<100 { try scratch.makeFile("folder/\(outer)/\(inner)", content) }
            }
        }
        var document: ScannedDocument?
        let scanning = try Self.processorTime { document = try DocumentScan.scan(folder) }
        let scanned = try #require(document)
        #expect(scanned.tree.layout.fileCount == 2_000)
        let files = try DocumentFiles(scanned)
        var bytes = [UInt8](repeating: 0, count: 4096)
        let reading = try Self.processorTime {
            for index in 0..<2_000 {
                let opened = try files.open(file: index)
                let count = try bytes.withUnsafeMutableBytes {
                    try SystemCalls.read(opened.descriptor, into: $0, at: 0)
                }
                #expect(count == 4096)
            }
        }
        let part = try Part(creating: scanned.tree, at: try FolderFixture.place(target))
        let writing = try Self.processorTime {
            for index in 0..<2_000 { try part.write(content, toFile: index, at: 0) }
        }
        try part.synchronize()
        let committing = try Self.processorTime { _ = try part.commit() }
        print(
            "2,000 files: made in \(making), scanned in \(scanning), read in \(reading), written in \(writing),"
                + " put in place in \(committing)")
        // One run measures all costs, so work that grows with the square of the number of files shows.
        #expect(reading < making * 5 && writing < making * 10)
    }
}
