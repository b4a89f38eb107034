// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Some entries of a folder as one document")
struct DocumentSelectionTests {
    let scratch: ScratchFolder
    let folder: FilePath

    init() throws {
        scratch = try ScratchFolder()
        folder = try scratch.makeFolder("folder")
        _ = try scratch.makeFolder("folder/photos")
        for name in ["a", "b", ".hidden", "photos/x"] { try scratch.makeFile("folder/" + name, [1, 2]) }
    }

    private func selection(_ names: String...) throws -> DocumentSelection {
        try #require(DocumentSelection(try names.map { try DocumentLabel(Array($0.utf8)) }))
    }

    private func paths(_ document: ScannedDocument) -> [String] {
        (0..<document.tree.entryCount).map { document.tree[$0].path.description }
    }

    @Test("Only the selected entries belong to the document, with all that is in them")
    func only() throws {
        let selected = try selection("photos", "b", "photos")
        let document = try DocumentScan.scan(folder, selected)
        #expect(paths(document) == ["", "b", "photos", "photos/x"])
        #expect(document.tree.label.description == "folder" && document.leftOut.message == nil)
        let source = try DocumentSource(DocumentScan.scan(folder, selected))
        #expect(source.size == 4 && source.selection == selected && source.document == document.identity)
        // What is in a selected folder is not what is directly in the folder.
        #expect(try paths(DocumentScan.scan(folder, selection("b"))) == ["", "b"])
    }

    @Test("A link is sent if it leads to what is selected, and else left out")
    func links() throws {
        for (name, target) in [("kept", "photos/x"), ("photos/up", "../b"), ("dangling", "a"), ("photos/out", "../a")] {
            try #require(symlink(target, folder.appending(name).string) == 0)
        }
        let document = try DocumentScan.scan(folder, selection("b", "photos", "kept", "dangling"))
        #expect(paths(document) == ["", "b", "kept", "photos", "photos/up", "photos/x"])
        #expect(document.leftOut.count == 2)
    }

    @Test("Each selection is a document of its own, and none is the whole folder")
    func identity() throws {
        let one = try DocumentScan.scan(folder, selection("a", "b")).identity
        #expect(try DocumentScan.scan(folder, selection("b", "a")).identity == one)
        for other in [try selection("a"), try selection("a", "b", "photos"), .all] {
            let identity = try DocumentScan.scan(folder, other).identity
            #expect(identity.isOther(than: one) && one.isOther(than: identity), "\(other)")
        }
    }

    @Test("A selected entry that is not there is missing, and so is a folder that became a file")
    func missing() async throws {
        let gone = try selection("a", "gone")
        let error = #expect(throws: DocumentError.self) { _ = try DocumentScan.scan(folder, gone) }
        #expect(error?.code == .missing && error?.subject.hasSuffix("/folder/gone") == true)
        let file = folder.appending("a")
        #expect(await DocumentFixture.code { _ = try DocumentSource(DocumentScan.scan(file, gone)) } == .missing)
        #expect(await DocumentFixture.code { _ = try DocumentScan.scan(file, gone) } == .missing)
    }

    enum Change: CaseIterable {
        case none, otherAdded, otherEdited, otherRemoved, edited, addedBelow, removed
    }

    @Test("Of what changes while it is sent, only changes of selected entries count", arguments: Change.allCases)
    func changes(_ change: Change) async throws {
        try DocumentFixture.write(DocumentFixture.content(3 << 20, seed: 1), to: folder.appending("b"))
        for folder in [folder.appending("photos"), folder] { try DocumentFixture.backdate(folder) }
        let pool = BufferPool(budget: 4 << 20)
        let document = try DocumentScan.scan(folder, selection("b", "photos"))
        let reader = try await DocumentReader.open(document)
        pool.release(try #require(try await reader.next(from: pool)).buffer)
        switch change {
        case .none: break
        case .otherAdded: try scratch.makeFile("folder/new", [1])
        case .otherEdited: try DocumentFixture.write([9], to: folder.appending("a"), at: 0)
        case .otherRemoved: try SystemCalls.call { unlink(folder.appending(".hidden").string) }
        case .edited: try DocumentFixture.write([9], to: folder.appending("photos/x"), at: 0)
        case .addedBelow: try scratch.makeFile("folder/photos/new", [1])
        case .removed: try SystemCalls.call { unlink(folder.appending("b").string) }
        }
        let code = await DocumentFixture.code {
            while let records = try await reader.next(from: pool) { pool.release(records.buffer) }
        }
        #expect(code == ([.edited, .removed].contains(change) ? .sourceChanged : nil))
        await reader.close()
    }

    @Test("The number of names and their bytes are bounded")
    func bounds() throws {
        func labels(_ count: Int, _ length: Int) throws -> [DocumentLabel] {
            try (0..<count).map { number in
                let digits = Array(String(number).utf8)
                return try DocumentLabel([UInt8](repeating: UInt8(ascii: "n"), count: length - digits.count) + digits)
            }
        }
        #expect(try DocumentSelection(labels(1000, 32))?.names.count == 1000)
        #expect(try DocumentSelection(labels(1001, 8)) == nil)
        #expect(try DocumentSelection(labels(128, 255)) != nil && DocumentSelection(labels(129, 255)) == nil)
        // Each is counted once.
        #expect(try DocumentSelection(labels(1000, 8) + labels(1000, 8))?.names.count == 1000)
        #expect(DocumentSelection([]) == .all)
    }
}
