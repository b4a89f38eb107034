import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Folders of many small files")
struct FolderSpeedTests {
    /// A build without optimisation, with other tests beside it, takes several times what a release build does.
    private static let slack = 20.0

    @Test("10,000 files of 4 KiB are scanned, read and written without a cost for each that would show")
    func manySmallFiles() throws {
        let scratch = try ScratchFolder()
        let target = try scratch.makeFolder("destination")
        let content = DocumentFixture.content(4096, seed: 1)
        let folder = try scratch.makeFolder("folder")
        for outer in 0..<100 {
            _ = try scratch.makeFolder("folder/\(outer)")
            for inner in 0..<100 { try scratch.makeFile("folder/\(outer)/\(inner)", content) }
        }
        let clock = ContinuousClock()
        var document: ScannedDocument?
        let scanning = try clock.measure { document = try DocumentScan.scan(folder) }
        let scanned = try #require(document)
        #expect(scanned.tree.layout.fileCount == 10_000)
        let files = try DocumentFiles(scanned)
        var bytes = [UInt8](repeating: 0, count: 4096)
        let reading = try clock.measure {
            for index in 0..<10_000 {
                let opened = try files.open(file: index)
                let count = try bytes.withUnsafeMutableBytes { try SystemCalls.read(opened.descriptor, into: $0, at: 0) }
                #expect(count == 4096)
            }
        }
        let part = try PartFolder(creating: scanned.tree, named: FolderFixture.partName, in: try DestinationFolder(target))
        let writing = try clock.measure {
            for index in 0..<10_000 { try part.write(content, toFile: index, at: 0) }
        }
        try part.synchronize()
        let committing = try clock.measure { _ = try part.commit() }
        print("10,000 files: scanned in \(scanning), read in \(reading), written in \(writing), put in place in \(committing)")
        #expect(reading < .seconds(0.2 * Self.slack))
        #expect(writing < .seconds(0.3 * Self.slack))
    }
}
