// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonTestSupport
import Foundation
import Glibc
import SystemPackage
import Testing

/// Pages of a file that are put beneath a secret, so that they can be looked at when it has gone and unmapped them.
private final class LastingPages {
    private let file: FileDescriptor
    private let size: Int

    /// - Parameter count: bytes of the secret.
    init(for count: Int) throws {
        let page = Int(getpagesize())
        size = max(1, (count + page - 1) / page) * page
        let folder = try ScratchFolder("pages")
        defer { folder.remove() }
        file = try FileDescriptor.open(
            folder.filePath.appending("pages"), .readWrite, options: [.create, .exclusiveCreate],
            permissions: .ownerReadWrite)
        try file.resize(to: Int64(size))
    }

    deinit { try? file.close() }

    /// Puts the pages in the place of a secret's own, with its content.
    func lay(beneath bytes: UnsafeRawBufferPointer) throws(Errno) {
        guard let start = bytes.baseAddress, pwrite(file.rawValue, start, bytes.count, 0) == bytes.count else {
            throw .ioError
        }
        let place = UnsafeMutableRawPointer(mutating: start)
        let laid = mmap(place, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.rawValue, 0)
        guard laid == place else { throw .noMemory }
    }

    /// The present content of the pages.
    var content: [UInt8] {
        var content = [UInt8](repeating: 0xFF, count: size)
        return pread(file.rawValue, &content, size, 0) == size ? content : []
    }
}

@Suite struct SecretBytesTests {
    @Test func equalityComparesEveryByte() {
        let secret = SecretBytes(of: [1, 2, 3])
        #expect(secret == SecretBytes(of: [1, 2, 3]))
        #expect(secret != SecretBytes(of: [1, 2, 4]))
        #expect(secret != SecretBytes(of: [0, 2, 3]))
        #expect(secret != SecretBytes(of: [1, 2]))
        #expect(SecretBytes(of: []) == SecretBytes(of: []))
    }

    @Test func nothingPrintsIt() {
        let secret = SecretBytes(of: Array("hunter2".utf8))
        var dumped = ""
        dump(secret, to: &dumped)
        let key = AccountKey()
        for text in ["\(secret)", String(reflecting: secret), dumped, "\([secret])", "\(key)"] {
            #expect(text.contains("<secret>"))
            #expect(!text.contains("hunter2") && !text.contains("104"))
        }
        #expect(Mirror(reflecting: secret).children.isEmpty)
    }

    @Test func randomSecretsDiffer() {
        #expect(SecretBytes.random(count: 32) != SecretBytes.random(count: 32))
        #expect(SecretBytes.random(count: 5000).count == 5000)
    }

    /// `dd` among a mapping's flags says that the mapping stays out of core dumps (proc(5)).
    @Test func itsPagesStayOutOfCoreDumps() throws {
        let secret = SecretBytes.random(count: 20)
        let address = secret.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
        // A file of /proc claims to be empty: it must be read to its end.
        let file = try #require(FileHandle(forReadingAtPath: "/proc/self/smaps"))
        let maps = try withExtendedLifetime(secret) { String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self) }
        guard maps.contains("VmFlags:") else { return }
        var isInside = false
        var flags: Substring?
        for line in maps.split(separator: "\n") {
            let bounds = line.prefix { $0 != " " }.split(separator: "-").compactMap { UInt($0, radix: 16) }
            if bounds.count == 2 { isInside = bounds[0] <= address && address < bounds[1] }
            if isInside, line.hasPrefix("VmFlags:") { flags = line }
        }
        #expect(try #require(flags).split(separator: " ").contains("dd"))
    }

    @Test(arguments: [20, 32, 4096, 5000]) func itsMemoryIsWipedWhenItGoes(count: Int) throws {
        let pages = try LastingPages(for: count)
        var secret: SecretBytes? = .random(count: count)
        try secret?.withUnsafeBytes { (bytes) throws(Errno) in try pages.lay(beneath: bytes) }
        let isThere = secret?.withUnsafeBytes { pages.content.starts(with: $0) } == true
        #expect(isThere && !pages.content.allSatisfy { $0 == 0 })
        secret = nil
        #expect(!pages.content.isEmpty && pages.content.allSatisfy { $0 == 0 })
    }

    @Test func whatAFailingFillWroteIsWiped() throws {
        let pages = try LastingPages(for: 4)
        #expect(throws: Errno.ioError) {
            try SecretBytes(count: 4) { bytes throws(Errno) in
                bytes.copyBytes(from: [1, 2, 3, 4])
                try pages.lay(beneath: UnsafeRawBufferPointer(bytes))
                guard pages.content.starts(with: [1, 2, 3, 4]) else { return }
                throw .ioError
            }
        }
        #expect(!pages.content.isEmpty && pages.content.allSatisfy { $0 == 0 })
    }

    @Test func aFailingFillThrowsItsError() {
        #expect(throws: Errno.ioError) {
            try SecretBytes(count: 4) { _ throws(Errno) in throw .ioError }
        }
    }

    /// Gives a pipe some bytes and reads the secret from its other end.
    private func read(
        _ chunks: [[UInt8]], limit: Int, until end: SecretBytes.ReadingEnd = .line
    ) throws -> SecretBytes {
        let pipe = try FileDescriptor.pipe()
        defer { try? pipe.readEnd.close() }
        for chunk in chunks { try pipe.writeEnd.writeAll(chunk) }
        try pipe.writeEnd.close()
        return try SecretBytes(readingFrom: pipe.readEnd, limit: limit, until: end)
    }

    @Test func readingStopsAtTheEndOfTheLine() throws {
        #expect(try read([Array("abc\nrest".utf8)], limit: 10).text == "abc")
        #expect(try read([Array("ab".utf8), Array("c".utf8)], limit: 10).text == "abc")
        #expect(try read([Array("\n".utf8)], limit: 10).text == "")
        #expect(try read([Array("a\nb\n".utf8)], limit: 10, until: .input).text == "a\nb\n")
    }

    @Test func readingKeepsItsLimit() throws {
        #expect(try read([Array("abcd\n".utf8)], limit: 4).text == "abcd")
        #expect(try read([Array("abcd".utf8)], limit: 4).text == "abcd")
        #expect(throws: SecretReadingError.tooLong(limit: 4)) { try read([Array("abcde".utf8)], limit: 4) }
        #expect(throws: SecretReadingError.tooLong(limit: 4)) { try read([Array("abcde\n".utf8)], limit: 4) }
        #expect(throws: SecretReadingError.nothingToRead) { try read([], limit: 4) }
    }

    @Test func readingFromAClosedDescriptorFails() {
        #expect(throws: SecretReadingError.failed(.badFileDescriptor)) {
            try SecretBytes(readingFrom: FileDescriptor(rawValue: 9999), limit: 4)
        }
    }
}
