// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

/// A folder that is sent from a reader to a writer, as two nodes do, with what crosses counted.
struct FolderDelta {
    let writers: WriterFixture
    let pool = BufferPool()

    init() throws {
        writers = try WriterFixture()
    }

    /// The result of an attempt.
    struct Attempt {
        /// Bytes of records and signatures.
        var crossed = 0
        /// Bytes that were missing before.
        var missing: UInt64 = 0
        /// Requests for what was missing.
        var requests = 0
        /// Where the document is; nil when it was interrupted.
        var arrived: FilePath?
    }

    /// One attempt.
    ///
    /// - Parameters:
    ///   - limit: it is interrupted when so many bytes of the document have come.
    ///   - meanwhile: is called between the signatures and the first record.
    func attempt(
        _ source: FilePath, against copies: [FilePath] = [], interruptedAfter limit: UInt64 = .max,
        meanwhile: () throws -> Void = {}
    ) async throws -> Attempt {
        let document = try DocumentScan.scan(source)
        let writer = try await DocumentWriter.create(
            document.tree, from: DocumentFixture.origin, in: try DestinationFolder(writers.folder),
            ledger: try PartFileLedger(stateFolder: writers.scratch.filePath.appending("parts")), against: copies)
        var attempt = Attempt()
        var came: UInt64 = 0
        var missing = try await writer.missing()
        attempt.missing = missing.reduce(0) { $0 + document.tree.layout.byteCount(of: $1) }
        while !missing.isEmpty, came < limit {
            try await request(
                missing, of: document, for: writer, counting: &attempt, &came, interruptedAfter: limit, meanwhile)
            missing = try await writer.missing()
        }
        guard missing.isEmpty else {
            await writer.end()
            return attempt
        }
        attempt.arrived = try await writer.commit()
        return attempt
    }

    /// One request of an attempt: signatures first, then the records.
    private func request(
        _ missing: [Range<UInt64>], of document: ScannedDocument, for writer: DocumentWriter,
        counting attempt: inout Attempt, _ came: inout UInt64, interruptedAfter limit: UInt64,
        _ meanwhile: () throws -> Void
    ) async throws {
        attempt.requests += 1
        let reader = try await DocumentReader.open(document, ranges: missing)
        if let size = writer.pieceSize {
            var index = SignatureIndex(size: size)
            while let batch = try await writer.nextSignatures() {
                attempt.crossed += batch.bytes.count
                try index.append(batch.bytes, basis: batch.basis)
            }
            await reader.take(.init(signatures: index))
        }
        try meanwhile()
        try await writer.begin(missing)
        while came < limit, let records = try await reader.next(from: pool) {
            defer { pool.release(records.buffer) }
            attempt.crossed += records.buffer.count
            came += records.contentByteCount
            do {
                try await writer.write(records.buffer)
            } catch {
                await reader.close()
                throw error
            }
        }
        await reader.close()
        if came < limit { try await writer.finish() }
    }

    func makeSource(_ files: [(String, [UInt8])]) throws -> FilePath {
        let source = try writers.scratch.makeFolder("folder")
        for (name, content) in files {
            if let slash = name.firstIndex(of: "/") {
                _ = try? SystemCalls.call { mkdir(source.appending(String(name[..<slash])).string, 0o755) }
            }
            try writers.scratch.makeFile("folder/\(name)", content)
        }
        return source
    }

    func expectArrived(
        _ attempt: Attempt, _ source: FilePath, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let arrived = try #require(attempt.arrived, sourceLocation: sourceLocation)
        let (theirs, ours) = (try FolderSnapshot(source), try FolderSnapshot(arrived))
        #expect(theirs == ours, "\(theirs.differences(from: ours))", sourceLocation: sourceLocation)
        writers.expectOnly(["folder"], sourceLocation: sourceLocation)
    }
}

@Suite("Only what differs of a folder")
struct FolderDeltaTests {
    let delta: FolderDelta

    init() throws {
        delta = try FolderDelta()
    }

    private var writers: WriterFixture { delta.writers }

    @Test("Of a file that was edited between two attempts, under 3 % crosses again", .timeLimit(.minutes(10)))
    func oneByte() async throws {
        let size = 64 << 20
        var content = DocumentFixture.content(size, seed: 90)
        let source = try delta.makeSource([("a/big", content), ("z", DocumentFixture.content(3 << 20, seed: 91))])
        let first = try await delta.attempt(source, interruptedAfter: UInt64(size))
        #expect(first.arrived == nil)
        let place = 40_000_077
        content[place] ^= 0xFF
        try DocumentFixture.write([content[place]], to: source.appending("a/big"), at: UInt64(place))
        // It goes on being built upon when that is interrupted as well, and when it is edited once more.
        let second = try await delta.attempt(source, interruptedAfter: 20 << 20)
        #expect(second.arrived == nil)
        #expect(second.missing == UInt64(size + 3 * DocumentFixture.megabyte))
        try DocumentFixture.write([~content[5]], to: source.appending("a/big"), at: 5)
        let third = try await delta.attempt(source, interruptedAfter: 30 << 20)
        let fourth = try await delta.attempt(source)
        try delta.expectArrived(fourth, source)
        // Content that never arrived crosses in any case.
        let crossed = second.crossed + third.crossed + fourth.crossed
        let again = crossed - 3 * DocumentFixture.megabyte
        #expect(again < size * 3 / 100, "\(again) bytes")
    }

    @Test(
        "Of a file or folder that has another name at the next attempt, under 3 % crosses again",
        .timeLimit(.minutes(10)),
        arguments: [("a/big", "a/bigger"), ("a", "b"), ("a/big", "big")])
    func renamed(_ from: String, _ to: String) async throws {
        let size = 24 << 20
        let source = try delta.makeSource([
            ("a/big", DocumentFixture.content(size, seed: 93)), ("a/small", DocumentFixture.content(5000, seed: 94)),
            ("z", DocumentFixture.content(3 << 20, seed: 95)),
        ])
        let first = try await delta.attempt(source, interruptedAfter: UInt64(size + 1))
        #expect(first.arrived == nil)
        try SystemCalls.call { rename(source.appending(from).string, source.appending(to).string) }
        // Also when that is interrupted.
        let second = try await delta.attempt(source, interruptedAfter: 10 << 20)
        #expect(second.arrived == nil && second.missing >= UInt64(size))
        let third = try await delta.attempt(source)
        try delta.expectArrived(third, source)
        let again = second.crossed + third.crossed - 3 * DocumentFixture.megabyte
        #expect(again < size * 3 / 100, "\(again) bytes")
    }

    @Test(
        "What came of a file that has another name now goes if the disk has no room for both",
        .enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
    func noRoomForBoth() async throws {
        let mounted = try MountedFolder(tmpfsAt: writers.folder, size: 12 << 20)
        let source = try delta.makeSource([("big", DocumentFixture.content(8 << 20, seed: 96))])
        #expect(try await delta.attempt(source, interruptedAfter: 6 << 20).arrived == nil)
        try SystemCalls.call { rename(source.appending("big").string, source.appending("bigger").string) }
        try delta.expectArrived(try await delta.attempt(source), source)
        withExtendedLifetime(mounted) {}
    }

    @Test("An older folder that the user names is built upon, file by file", .timeLimit(.minutes(10)))
    func against() async throws {
        let files = (0..<40).map { ("in/\($0)", DocumentFixture.content(4096 + $0 * 999, seed: UInt64($0))) }
        let big = DocumentFixture.content(8 << 20, seed: 92)
        let source = try delta.makeSource(files + [("big", big)])
        let older = try writers.scratch.makeFolder("older")
        try SystemCalls.call { mkdir(older.appending("in").string, 0o755) }
        for (name, content) in files { try writers.scratch.makeFile("older/\(name)", content) }
        // Something in front moves all that follows.
        try writers.scratch.makeFile("older/big", [1] + big)
        let attempt = try await delta.attempt(source, against: [older])
        try delta.expectArrived(attempt, source)
        #expect(attempt.crossed < Int(attempt.missing) * 3 / 100, "\(attempt.crossed) bytes")
        #expect(try DocumentFixture.read(older.appending("big")) == [1] + big)
    }

    @Test("A single file is looked up by its name in a folder that the user names")
    func fileInFolder() async throws {
        let content = DocumentFixture.content(4 << 20, seed: 93)
        let source = try writers.scratch.makeFile("report.pdf", content)
        let older = try writers.scratch.makeFolder("older")
        try writers.scratch.makeFile("older/report.pdf", content)
        let attempt = try await delta.attempt(source, against: [older])
        #expect(try DocumentFixture.read(try #require(attempt.arrived)) == content)
        #expect(attempt.crossed < 100_000)
        // One without it is nothing to build upon, and no error.
        try SystemCalls.call { unlink(writers.document.string) }
        let empty = try writers.scratch.makeFolder("empty")
        #expect(try await delta.attempt(source, against: [empty]).crossed > content.count)
    }

    @Test(
        "Random edits between random interruptions", .timeLimit(.minutes(10)), arguments: 1...6 as ClosedRange<UInt64>)
    func randomEdits(_ seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        var files: [String: [UInt8]] = [:]
        for number in 0..<12 {
            let size = Int.random(in: 1...(number == 0 ? 5 << 20 : 300_000), using: &random)
            files["\(number % 3)/\(number)"] = DocumentFixture.content(size, seed: random.next())
        }
        let source = try delta.makeSource(files.sorted { $0.key < $1.key })
        var last: FolderDelta.Attempt?
        for _ in 0..<8 where last?.arrived == nil {
            last = try await delta.attempt(
                source, interruptedAfter: UInt64.random(in: 1...(7 << 20), using: &random))
            guard last?.arrived == nil else { break }
            for _ in 0..<Int.random(in: 0...3, using: &random) { try edit(&files, in: source, &random) }
        }
        if last?.arrived == nil { last = try await delta.attempt(source) }
        try delta.expectArrived(try #require(last), source)
    }

    private func edit(
        _ files: inout [String: [UInt8]], in source: FilePath, _ random: inout SeededGenerator
    ) throws {
        let names = files.keys.sorted()
        let name = names[Int.random(in: 0..<names.count, using: &random)]
        var content = files[name] ?? []
        let place = Int.random(in: 0...content.count, using: &random)
        let end = min(content.count, place + Int.random(in: 0...5000, using: &random))
        switch Int.random(in: 0..<5, using: &random) {
        case 0: content.replaceSubrange(place..<end, with: random.bytes(end - place))
        case 1: content.insert(contentsOf: random.bytes(Int.random(in: 1...5000, using: &random)), at: place)
        case 2: content.removeSubrange(place..<end)
        case 3: content.removeSubrange(place...)
        default:
            let (path, other) = (source.appending(name), source.appending("\(name)-other"))
            // A file that is another one, as editors save.
            try SystemCalls.call { rename(path.string, other.string) }
            files["\(name)-other"] = files[name]
        }
        files[name] = content
        let path = source.appending(name)
        try DocumentFixture.write(content, to: path)
        try SystemCalls.call { truncate(path.string, content.count) }
    }

    @Test("What is no file beneath the folder is neither opened nor followed", .timeLimit(.minutes(10)))
    func hostileCopies() async throws {
        let content = DocumentFixture.content(2 << 20, seed: 94)
        let names = ["fifo", "in/file", "link", "out", "zone"]
        let source = try delta.makeSource(names.map { ($0, content) })
        let secret = try writers.scratch.makeFolder("secret")
        try writers.scratch.makeFile("secret/file", content)
        let older = try writers.scratch.makeFolder("older")
        try SystemCalls.call { mkfifo(older.appending("fifo").string, 0o600) }
        try SystemCalls.call { symlink(secret.string, older.appending("in").string) }
        try SystemCalls.call { symlink("../secret/file", older.appending("link").string) }
        try SystemCalls.call { symlink(secret.appending("file").string, older.appending("out").string) }
        try SystemCalls.call { mkdir(older.appending("zone").string, 0o755) }
        let attempt = try await delta.attempt(source, against: [older])
        try delta.expectArrived(attempt, source)
        #expect(attempt.crossed > names.count * content.count)
    }

    @Test("A copy that becomes something else after its signatures is noticed", arguments: ["link", "fifo", "gone"])
    func race(_ attack: String) async throws {
        let content = DocumentFixture.content(2 << 20, seed: 95)
        let source = try delta.makeSource([("file", content)])
        let older = try writers.scratch.makeFolder("older")
        let file = try writers.scratch.makeFile("older/file", content)
        let aside = writers.scratch.filePath.appending("aside")
        let code = await DocumentFixture.code {
            _ = try await delta.attempt(source, against: [older]) {
                try SystemCalls.call { rename(file.string, aside.string) }
                // The very same bytes, but outside of what the user named.
                if attack == "link" { try SystemCalls.call { symlink(aside.string, file.string) } }
                if attack == "fifo" { try SystemCalls.call { mkfifo(file.string, 0o600) } }
            }
        }
        #expect(code == .basisChanged)
    }

    @Test("Holes of a copy are not read, however large they are", .timeLimit(.minutes(10)))
    func holes() throws {
        let path = try writers.scratch.makeFile("sparse", [])
        try SystemCalls.call { truncate(path.string, 64 << 30) }
        let content = DocumentFixture.content(1 << 20, seed: 96)
        for place in [3 * UInt64(DocumentFixture.megabyte) + 5000, 40 << 30] {
            try DocumentFixture.write(content, to: path, at: place)
        }
        guard case .file(let basis) = try OlderCopy(opening: path).content else { throw Errno.invalidArgument }
        let megabyte = UInt64(DocumentFixture.megabyte)
        let expected: [Range<UInt64>] = [
            3 * megabyte..<5 * megabyte, 40 * 1024 * megabyte..<(40 * 1024 + 1) * megabyte,
        ]
        #expect(basis.stretches() == expected)
        #expect(basis.stretches(limit: 2) == expected)
        #expect(basis.stretches(limit: 1) == Array(expected.prefix(1)))
        let plain = try writers.scratch.makeFile("plain", DocumentFixture.content(3_000_000, seed: 97))
        guard case .file(let whole) = try OlderCopy(opening: plain).content else { throw Errno.invalidArgument }
        #expect(whole.stretches() == [0..<3_000_000])
        let empty = try writers.scratch.makeFile("empty", [])
        guard case .file(let nothing) = try OlderCopy(opening: empty).content else { throw Errno.invalidArgument }
        #expect(nothing.stretches().isEmpty)
    }

    @Test("A file with holes is built upon what lies between them")
    func sparse() async throws {
        let content = DocumentFixture.content(2 << 20, seed: 98)
        let places: [UInt64] = [0, 2_000_000_000, 5_000_000_123]
        let source = try delta.makeSource([])
        let older = try writers.scratch.makeFolder("older")
        for folder in [source, older] {
            let path = folder.appending("sparse")
            try DocumentFixture.write([], to: path)
            try SystemCalls.call { truncate(path.string, 6 << 30) }
            for place in places { try DocumentFixture.write(content, to: path, at: place) }
        }
        let attempt = try await delta.attempt(source, against: [older])
        #expect(attempt.crossed < 300_000, "\(attempt.crossed) bytes")
        let arrived = try #require(attempt.arrived).appending("sparse")
        for place in places {
            let file = try SystemCalls.open(arrived, O_RDONLY)
            var bytes = [UInt8](repeating: 0, count: content.count)
            _ = try bytes.withUnsafeMutableBytes { try SystemCalls.read(file, into: $0, at: place) }
            #expect(bytes == content)
        }
    }

    @Test("A second part of the same version goes with the commit")
    func secondPart() async throws {
        let fixture = try ResumeFixture(seed: 99)
        // Two at once, each with a part of its own.
        let ledger = try fixture.nextStart()
        let (one, other) = (try await fixture.open(ledger: ledger), try await fixture.open(ledger: ledger))
        for writer in [one, other] {
            try await writer.begin([0..<2])
            try await writer.write(ResumeFixture.records([0..<2], of: fixture.content))
            #expect(await writer.end() > 0)
        }
        #expect(fixture.names.count == 2)
        try await fixture.complete(try await fixture.open())
        fixture.writers.expectOnly(["report.pdf"])
    }

    @Test("Bytes of chunks that nobody has named end the process")
    func writeBeforeBegin() async throws {
        await #expect(processExitsWith: .failure) { [path = writers.scratch.path as String] in
            let scratch = FilePath(path)
            let writer = try await DocumentWriter.create(
                try DocumentFixture.tree(10), from: DocumentFixture.origin,
                in: try DestinationFolder(scratch.appending("destination")),
                ledger: try PartFileLedger(stateFolder: scratch.appending("parts")))
            try await writer.write([1, 2, 3])
        }
    }
}
