// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Races with links in folders")
struct FolderRaceTests {
    let scratch: ScratchFolder
    let target: FilePath

    init() throws {
        scratch = try ScratchFolder()
        target = try scratch.makeFolder("destination")
    }

    /// Exchanges, as fast as it can, every folder `a` of a part folder for a link to the target's folder, and back.
    static let exchange = #"""
        for my $p (glob("$folder/.*.baton-part")) {
            rename("$p/a", "$p/saved"); symlink($target, "$p/a"); unlink("$p/a"); rename("$p/saved", "$p/a");
        }
        """#

    @Test("Folders that are exchanged for links are never written through, and nothing outside is removed")
    func receiving() async throws {
        let outside = try scratch.makeFolder("outside")
        try scratch.makeFile("outside/x", [7])
        let attacker = try Attacker(Self.exchange, target: outside, folder: target)
        #expect(await eventually { access(outside.string + ".attacked", F_OK) == 0 })
        let tree = try FolderFixture.tree([
            ("a", .folder), ("a/x", FolderFixture.file(1)), ("a/y", FolderFixture.file(1)),
            ("b", FolderFixture.file(1)),
        ])
        for _ in 0..<100 {
            do {
                let part = try Part(creating: tree, at: try FolderFixture.place(target))
                do {
                    for index in [0, 2, 1] { try part.write([1], toFile: index, at: 0) }
                    _ = try part.commit()
                } catch {
                    part.discard()
                }
            } catch {
                // A part that could not be removed, because somebody worked in it, is in the way of the next one.
            }
            #expect(DocumentFixture.names(in: outside) == ["x"])
            // The attacker is still at it: what goes by paths would be led outside itself.
            try? FolderRemoval.removeContents(of: SystemCalls.open(target, O_RDONLY | O_DIRECTORY))
        }
        withExtendedLifetime(attacker) {}
        #expect(try DocumentFixture.read(outside.appending("x")) == [7])
    }

    @Test("A scan, and reading, never follow a link that takes a folder's place")
    func sending() async throws {
        let outside = try scratch.makeFolder("outside")
        try scratch.makeFile("outside/x", [7, 7, 7])
        _ = try scratch.makeFolder("destination/.p.baton-part")
        let folder = target.appending(".p.baton-part")
        _ = try scratch.makeFolder("destination/.p.baton-part/a")
        try scratch.makeFile("destination/.p.baton-part/a/x", [1])
        let attacker = try Attacker(Self.exchange, target: outside, folder: target)
        #expect(await eventually { access(outside.string + ".attacked", F_OK) == 0 })
        var (scans, reads) = (0, 0)
        for _ in 0..<300 {
            guard let document = try? DocumentScan.scan(folder) else { continue }
            scans += 1
            // With `a` as folder, as link (left out), as "saved", or gone: its file is the one of a byte.
            #expect(document.tree.size <= 1)
            guard document.tree.layout.fileCount > 0, let files = try? DocumentFiles(document) else { continue }
            for _ in 0..<20 {
                guard let size = try? Self.size(files) else { continue }
                reads += 1
                #expect(size == 1)
            }
        }
        withExtendedLifetime(attacker) {}
        #expect(scans > 0 && reads > 0)
    }

    private static func size(_ files: DocumentFiles) throws -> UInt64 {
        let opened = try files.open(file: 0)
        return opened.size
    }
}
