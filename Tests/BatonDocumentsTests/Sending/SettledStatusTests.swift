// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import CLinux
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Writers that touch no time of a file")
struct SettledStatusTests {
    private let scratch: ScratchFolder
    private let pool = BufferPool(budget: 4 << 20)

    init() throws {
        scratch = try ScratchFolder()
    }

    /// Whether the tests' folder is on a file system that writes what is mapped to a disk.
    private static let hasDisk: Bool = {
        guard let folder = try? SystemCalls.open(ScratchFolder.base, 0) else { return false }
        return ![0x0102_1994, 0x8584_58F6, 0x794C_7630].contains(baton_file_system(folder.rawValue))
    }()

    /// A file that is mapped for writing, all its pages stored to, after its descriptor was closed.
    private struct Mapping: ~Copyable {
        let bytes: UnsafeMutableRawBufferPointer

        init(_ path: FilePath, count: Int) throws {
            let file = try SystemCalls.open(path, O_RDWR)
            let start = mmap(nil, count, PROT_READ | PROT_WRITE, MAP_SHARED, file.rawValue, 0)
            guard start != MAP_FAILED else { throw Errno(rawValue: errno) }
            bytes = UnsafeMutableRawBufferPointer(start: start, count: count)
            for place in stride(from: 0, to: count, by: 4096) { bytes[place] &+= 1 }
        }

        deinit { munmap(bytes.baseAddress, bytes.count) }
    }

    private func take(_ reader: DocumentReader) async throws {
        pool.release(try #require(try await reader.next(from: pool)).buffer)
    }

    @Test(
        "A store to a page of a mapped file that was stored to before is noticed",
        .enabled(if: hasDisk, "the tests' folder is on no disk"))
    func mapped() async throws {
        let path = try scratch.makeFile("document", DocumentFixture.content(4 << 20, seed: 1))
        let mapping = try Mapping(path, count: 4 << 20)
        let reader = try await DocumentReader.open(try DocumentScan.scan(path))
        for _ in 0..<2 { try await take(reader) }
        mapping.bytes[3 << 20] &+= 1
        #expect(await DocumentFixture.code { try await take(reader) } == .sourceChanged)
    }

    @Test(
        "So is one to a page that was stored to again while the tick of the clock was waited for",
        .enabled(if: hasDisk, "the tests' folder is on no disk"))
    func mappedWithinATick() throws {
        let path = try scratch.makeFile("document", DocumentFixture.content(1 << 20, seed: 5))
        let mapping = try Mapping(path, count: 1 << 20)
        let file = try SystemCalls.open(path, O_RDONLY)
        var hasSlept = false
        // A tick that is over before it is looked at is not waited for.
        for round in 0..<1000 where !hasSlept {
            try DocumentFixture.write([UInt8(truncatingIfNeeded: round)], to: path)
            let settled = try SystemCalls.settledStatus(of: file) { tick in
                mapping.bytes[1] &+= 1
                // Two ticks: the store may be of the second one.
                usleep(2 * tick)
                hasSlept = true
            }
            mapping.bytes[1] &+= 1
            #expect(FileIdentity(try SystemCalls.status(of: file)) != FileIdentity(settled) || !hasSlept)
        }
        #expect(hasSlept)
    }

    @Test("Of a file that is in the middle of being written over by one call no mixture is read")
    func writeUnderWay() async throws {
        let count = 256
        let path = try scratch.makeFile("document", [])
        try Self.overwrite(path, with: 1, megabytes: count)
        let writing = try PrivateThread(name: "writer", waking: EventLoop(name: "test"))
        writing.submit { try? Self.overwrite(path, with: 2, megabytes: count) }
        let file = try SystemCalls.open(path, O_RDONLY)
        #expect(try await eventually { try Self.byte(of: file, at: 0) == 2 })
        let source = try DocumentScan.scan(path)
        // The reader starts with the chunk that the call writes last.
        let last = UInt64(count - 1)
        var read: [UInt8] = []
        do {
            let reader = try await DocumentReader.open(source, ranges: [last..<last + 1, 0..<1])
            while let records = try await reader.next(from: pool) {
                read.append(records.buffer.bytes[2])
                pool.release(records.buffer)
            }
        } catch {
            #expect(error.code == .sourceChanged)
            read = []
        }
        #expect(Set(read).count <= 1)
        await writing.perform {}
    }

    /// Writes so many times 1 MiB of one byte over a file, by one call of the system.
    private static func overwrite(_ path: FilePath, with byte: UInt8, megabytes: Int) throws {
        let file = try SystemCalls.open(path, O_WRONLY)
        var content = [UInt8](repeating: byte, count: 1 << 20)
        let written = content.withUnsafeMutableBytes { bytes in
            let vectors = [iovec](
                repeating: iovec(iov_base: bytes.baseAddress, iov_len: bytes.count), count: megabytes)
            return pwritev(file.rawValue, vectors, Int32(megabytes), 0)
        }
        guard written == megabytes << 20 else { throw Errno.noSpace }
    }

    private static func byte(of file: borrowing OwnedDescriptor, at offset: UInt64) throws -> UInt8 {
        var byte: UInt8 = 0
        _ = try withUnsafeMutableBytes(of: &byte) { try SystemCalls.read(file, into: $0, at: offset) }
        return byte
    }

    @Test(
        "Two edits within one tick of the clock are noticed where a file system has no finer times",
        .enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
    func withinATick() async throws {
        let disk = try MountedFolder(ramfsAt: try scratch.makeFolder("disk"))
        let path = disk.path.appending("document")
        try DocumentFixture.write(DocumentFixture.content(1 << 20 + 1, seed: 3), to: path)
        for round in 0..<30 {
            try DocumentFixture.write([UInt8(round)], to: path)
            let reader = try await DocumentReader.open(try DocumentScan.scan(path))
            try await take(reader)
            try DocumentFixture.write([UInt8(round) + 1], to: path)
            #expect(await DocumentFixture.code { try await take(reader) } == .sourceChanged)
        }
    }

    @Test("Who opens a file for writing at the moment in which that is looked at disturbs nobody")
    func opensBesideIt() async throws {
        let path = try scratch.makeFile("document", [1, 2, 3])
        // The kernel's signal would end the process.
        await #expect(processExitsWith: .success) { [path = path.string as String] in
            let path = FilePath(path)
            let (writing, stop) = (try PrivateThread(name: "writer", waking: EventLoop(name: "test")), SharedCounter())
            writing.submit {
                while stop.value == 0 { _ = try? SystemCalls.open(path, O_WRONLY) }
            }
            let file = try SystemCalls.open(path, O_RDONLY)
            for _ in 0..<100_000 { _ = baton_may_have_writer(file.rawValue) }
            stop.increment()
            await writing.perform {}
        }
    }
}
