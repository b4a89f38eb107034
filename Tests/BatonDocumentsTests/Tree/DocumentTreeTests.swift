// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import Testing

@testable import BatonDocuments

@Suite("Paths in a folder")
struct EntryPathTests {
    static func path(_ text: String) throws -> EntryPath { try EntryPath(Array(text.utf8)) }

    @Test(arguments: [
        "", "/", "/a", "a/", "a//b", ".", "..", "./a", "a/.", "a/..", "../a", "a/../b", "a\0b", "a/\0",
        String(repeating: "x", count: 256), "a/" + String(repeating: "x", count: 256),
    ])
    func attacksAreRefused(_ text: String) async {
        #expect(await DocumentFixture.code { _ = try Self.path(text) } == .badName, "\(text)")
    }

    @Test func lengthAndDepthAreBounded() async throws {
        let name = String(repeating: "x", count: 255)
        let longest = Array(repeating: name, count: 15).joined(separator: "/") + "/" + name
        #expect(longest.utf8.count == EntryPath.maximumLength)
        #expect(try Self.path(longest).depth == 16)
        #expect(await DocumentFixture.code { _ = try Self.path(longest + "x") } == .badName)
        let deepest = try Self.path(Array(repeating: "d", count: EntryPath.maximumDepth).joined(separator: "/"))
        #expect(deepest.depth == 64)
        let label = try DocumentLabel(Array("d".utf8))
        #expect(await DocumentFixture.code { _ = try deepest.appending(label) } == .badName)
        #expect(await DocumentFixture.code { _ = try EntryPath(deepest.bytes + Array("/d".utf8)) } == .badName)
        #expect(await DocumentFixture.code { _ = try Self.path(longest).appending(label) } == .badName)
        #expect(try deepest.parent.appending(label) == deepest)
    }

    @Test func partsOfAPath() throws {
        let path = try Self.path("a/bc/d.e")
        #expect(try path.parent == Self.path("a/bc"))
        #expect(path.parent.parent.parent == .root)
        #expect(EntryPath.root.parent == .root && EntryPath.root.depth == 0 && EntryPath.root.isRoot)
        #expect(path.names.map { Array($0) } == ["a", "bc", "d.e"].map { Array($0.utf8) })
        #expect(Array(path.name) == Array("d.e".utf8))
        #expect(try EntryPath([0xFF, 0x2F, 0x1B]).description == "\\xff/\\u{1b}")
    }

    @Test("The order is that of a walk that sorts each folder's names by their bytes")
    func order() throws {
        var generator = SeededGenerator()
        // Around the slash and beyond ASCII, where orders differ.
        let letters: [UInt8] = [0x01, 0x20, 0x2D, 0x2E, 0x30, 0x41, 0x61, 0xC3, 0xFF]
        var paths: Set<EntryPath> = []
        while paths.count < 60 {
            let names = (0..<Int.random(in: 1...4, using: &generator)).map { _ in
                (0..<Int.random(in: 1...3, using: &generator)).map { _ in letters.randomElement(using: &generator) ?? 1
                }
            }
            if let path = try? EntryPath(Array(names.joined(separator: [0x2F]))) { paths.insert(path) }
        }
        let naive = paths.sorted { $0.names.lexicographicallyPrecedes($1.names) { $0.lexicographicallyPrecedes($1) } }
        for (index, path) in naive.enumerated() {
            #expect(path.follows(.root) && !EntryPath.root.follows(path), "\(generator)")
            #expect(!path.follows(path), "\(generator)")
            for later in naive[(index + 1)...] {
                #expect(later.follows(path) && !path.follows(later), "\(generator): \(path) \(later)")
            }
        }
    }
}

@Suite("Where links in a folder lead")
struct LinkTargetTests {
    @Test(arguments: [
        ("a", "b"), ("a", "./b"), ("a", "b/c"), ("a/b", "../c"), ("a/b/c", "../../d"), ("a/b/c", ".././../d"),
        ("a", "."),
        ("a/b", ".."), ("a", "b//c"), ("a", "b/."), ("a", "..."), ("a", "b\n"),
    ])
    func staysInside(_ path: String, _ target: String) throws {
        let found = LinkTarget(Array(target.utf8), at: try EntryPathTests.path(path))
        #expect(found?.bytes == Array(target.utf8))
    }

    @Test(arguments: [
        ("a", ""), ("a", "/"), ("a", "/etc/passwd"), ("a", ".."), ("a", "../b"), ("a/b", "../../c"),
        ("a/b", "./../../c"),
        ("a/b", "c/../../d"), ("a/b", "c/.."), ("a", "b/../.."), ("a", "b\0c"), ("a/b/c", "../../../d"), ("a", "./.."),
    ])
    func couldLeadOut(_ path: String, _ target: String) throws {
        #expect(LinkTarget(Array(target.utf8), at: try EntryPathTests.path(path)) == nil)
    }

    @Test func lengthIsBounded() throws {
        let path = try EntryPathTests.path("a")
        #expect(LinkTarget([UInt8](repeating: 0x61, count: LinkTarget.maximumLength), at: path) != nil)
        #expect(LinkTarget([UInt8](repeating: 0x61, count: LinkTarget.maximumLength + 1), at: path) == nil)
    }
}

@Suite("Trees")
struct DocumentTreeTests {
    private enum Shape {
        case file, folder, link
    }

    @Test func roomIsTakenAsATreeGrowsAndGivenBackWithIt() throws {
        let part = ByteBudget(bytes: 9 << 20).part(reserved: 0, ceiling: 9 << 20)
        func build(_ count: Int) throws -> DocumentTree {
            var builder = DocumentTree.Builder(
                try DocumentLabel(Array("folder".utf8)), room: ByteReservation(in: part))
            try builder.append(entry("", .folder))
            for number in 0..<count {
                // In the order of a manifest.
                try builder.append(entry(String(String(100_000_000 + number).dropFirst()), .file))
            }
            return try builder.finish()
        }
        for (count, bytes) in [(1, 1000), (1000, 180_000), (50_000, 9_000_000)] {
            let tree = try build(count)
            // 8 bytes of a name, 24 of the layout, and more than 100 of the entry.
            #expect(part.held > count * 132 && part.held < max(bytes, 4096), "\(count): \(part.held)")
            let copy = tree
            withExtendedLifetime((tree, copy)) {}
        }
        #expect(part.held == 0)
        let error = #expect(throws: DocumentError.self) { _ = try build(90_000) }
        #expect(error?.code == .busy && part.held == 0)
        withExtendedLifetime(try build(50_000)) { #expect(part.held > 0) }
    }

    private func entry(_ text: String, _ shape: Shape) throws -> DocumentEntry {
        let path = text.isEmpty ? EntryPath.root : try EntryPathTests.path(text)
        switch shape {
        case .file: return DocumentEntry(path: path, kind: .file(.init(size: 3)))
        case .folder: return DocumentEntry(path: path, kind: .folder)
        case .link:
            return DocumentEntry(path: path, kind: .link(try #require(LinkTarget([0x78], at: path))))
        }
    }

    private func code(_ entries: [(String, Shape)]) async -> DocumentError.Code? {
        await DocumentFixture.code {
            var builder = DocumentTree.Builder(try DocumentLabel(Array("folder".utf8)))
            for (index, (text, shape)) in entries.enumerated() {
                do {
                    try builder.append(try entry(text, shape))
                } catch {
                    #expect(index == entries.count - 1, "\(text) was refused")
                    throw error
                }
            }
            _ = try builder.finish()
        }
    }

    @Test func whatIsNoTreeIsRefused() async {
        #expect(await code([]) == .incomplete)
        #expect(await code([("", .link)]) == .badName)
        #expect(await code([("a", .file)]) == .badName)
        #expect(await code([("", .file), ("a", .file)]) == .badName)
        #expect(await code([("", .folder), ("", .folder)]) == .badName)
        #expect(await code([("", .folder), ("a", .file), ("a", .file)]) == .badName)
        #expect(await code([("", .folder), ("a", .folder), ("a", .link)]) == .badName)
        #expect(await code([("", .folder), ("b", .file), ("a", .file)]) == .badName)
        #expect(await code([("", .folder), ("a/b", .file)]) == .badName)
        #expect(await code([("", .folder), ("a", .file), ("a/b", .file)]) == .badName)
        #expect(await code([("", .folder), ("a", .link), ("a/b", .file)]) == .badName)
        #expect(await code([("", .folder), ("a", .folder), ("b", .folder), ("a/c", .file)]) == .badName)
        #expect(await code([("", .folder), ("a", .folder), ("a/b", .folder), ("a/c/d", .file)]) == .badName)
        #expect(await code([("", .folder), ("a", .folder), ("a.b", .file), ("a/b", .file)]) == .badName)
    }

    @Test func whatIsOneIsTaken() async {
        #expect(await code([("", .file)]) == nil)
        #expect(await code([("", .folder)]) == nil)
        #expect(
            await code([
                ("", .folder), ("a", .folder), ("a/b", .folder), ("a/b/c", .file), ("a/d", .link), ("a.b", .file),
                ("e", .folder), ("f", .file),
            ]) == nil)
    }

    @Test("What comes out is what went in, whatever it is")
    func packing() throws {
        var generator = SeededGenerator()
        var builder = DocumentTree.Builder(try DocumentLabel(Array("folder".utf8)))
        var entries = [
            DocumentEntry(path: .root, kind: .folder, modified: .init(seconds: -1, nanoseconds: 999_999_999))
        ]
        for number in 0..<200 {
            let path = try EntryPathTests.path("name \(10_000 + number)")
            let time = FileIdentity.Time(
                seconds: .random(in: .min ... .max, using: &generator),
                nanoseconds: .random(in: 0..<1_000_000_000, using: &generator))
            let kind: DocumentEntry.Kind =
                switch Int.random(in: 0..<4, using: &generator) {
                case 0: .folder
                case 1:
                    .link(try #require(LinkTarget([0x78] + generator.bytes(40).filter { $0 > 0x2F }, at: path)))
                case _:
                    .file(
                        .init(
                            size: .random(in: 0...1 << 40, using: &generator), isExecutable: .random(using: &generator),
                            isSparse: .random(using: &generator),
                            version: FileVersion(high: generator.next(), low: generator.next())))
                }
            entries.append(DocumentEntry(path: path, kind: kind, modified: Bool.random(using: &generator) ? time : nil))
        }
        for entry in entries { try builder.append(entry) }
        let tree = try builder.finish()
        #expect(tree.entryCount == entries.count && tree.isFolder)
        #expect((0..<tree.entryCount).map { tree[$0] } == entries, "\(generator)")
        let files = entries.indices.filter { entries[$0].file != nil }
        #expect(tree.layout.fileCount == files.count)
        #expect(files.indices.map { tree.entryIndex(ofFile: $0) } == files, "\(generator)")
        #expect(tree.size == entries.reduce(0) { $0 + ($1.file?.size ?? 0) }, "\(generator)")
    }

    @Test("A document has 100,000 entries and no more")
    func entryLimit() async throws {
        var builder = DocumentTree.Builder(try DocumentLabel(Array("folder".utf8)))
        try builder.append(DocumentEntry(path: .root, kind: .folder))
        for number in 1..<DocumentTree.entryLimit {
            try builder.append(try entry(String(1_000_000 + number), .file))
        }
        #expect(try builder.finish().entryCount == 100_000)
        let code = await DocumentFixture.code { try builder.append(try entry("2000000", .file)) }
        #expect(code == .tooManyEntries)
    }

    @Test("Names have 16 MiB in all, and one more")
    func nameLimit() async throws {
        var builder = DocumentTree.Builder(try DocumentLabel(Array("folder".utf8)))
        try builder.append(DocumentEntry(path: .root, kind: .folder))
        let stem = String(repeating: "x", count: 248)
        var (bytes, number) = (0, 1_000_000)
        while bytes <= DocumentTree.nameByteLimit {
            try builder.append(try entry(stem + String(number), .file))
            (bytes, number) = (bytes + 255, number + 1)
        }
        let next = try entry(stem + String(number), .file)
        #expect(await DocumentFixture.code { try builder.append(next) } == .tooManyEntries)
    }

    @Test func sizesAreBoundedInAll() async throws {
        var builder = DocumentTree.Builder(try DocumentLabel(Array("folder".utf8)))
        try builder.append(DocumentEntry(path: .root, kind: .folder))
        try builder.append(
            DocumentEntry(path: try EntryPathTests.path("a"), kind: .file(.init(size: UInt64(Int64.max)))))
        #expect(try builder.finish().size == UInt64(Int64.max))
        try builder.append(DocumentEntry(path: try EntryPathTests.path("b"), kind: .file(.init(size: 1))))
        #expect(await DocumentFixture.code { _ = try builder.finish() } == .tooLarge)
    }

    @Test func versionsAreSixteenBytes() {
        let bytes = (1...16).map { UInt8($0) }
        #expect(FileVersion(bytes: bytes)?.bytes == bytes)
        #expect(FileVersion(bytes: bytes)?.high == 0x0102_0304_0506_0708)
        #expect(FileVersion(bytes: bytes.dropLast()) == nil && FileVersion(bytes: bytes + [0]) == nil)
    }
}
