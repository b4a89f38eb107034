// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import CLinux
import Foundation
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Parts that others have laid hands on")
struct ResumeAttackTests {
    enum Attack: CaseIterable {
        case removed, exchanged, truncated, grown, linkedTo, linkedFrom, folder, pipe
    }

    /// Does it to the part, and tells what has to be as it is afterwards.
    private func commit(_ attack: Attack, against part: FilePath, in fixture: ResumeFixture) throws -> FilePath? {
        let victim = try fixture.scratch.makeFile("victim", [7, 8, 9])
        let aside = fixture.scratch.filePath.appending("aside")
        switch attack {
        case .removed:
            try SystemCalls.call { unlink(part.string) }
            return nil
        case .exchanged:
            let size = try DocumentFixture.size(at: part)
            try SystemCalls.call { rename(part.string, aside.string) }
            try SystemCalls.call { rename(victim.string, part.string) }
            try SystemCalls.call { truncate(part.string, size) }
            return part
        case .truncated:
            try SystemCalls.call { truncate(part.string, 2 << 20) }
            return nil
        case .grown:
            try SystemCalls.call { truncate(part.string, 20 << 20) }
            return nil
        case .linkedTo:
            try SystemCalls.call { rename(part.string, aside.string) }
            try SystemCalls.call { symlink(aside.string, part.string) }
            return aside
        case .linkedFrom:
            try SystemCalls.call { link(part.string, aside.string) }
            return aside
        case .folder:
            try SystemCalls.call { unlink(part.string) }
            try SystemCalls.call { mkdir(part.string, 0o755) }
            return part
        case .pipe:
            try SystemCalls.call { unlink(part.string) }
            try SystemCalls.call { mkfifo(part.string, 0o600) }
            return part
        }
    }

    private func state(of path: FilePath?) throws -> (inode: UInt64, content: [UInt8])? {
        guard let path else { return nil }
        var status = stat()
        guard lstat(path.string, &status) == 0 else { return nil }
        let isFile = status.st_mode & S_IFMT == S_IFREG
        return (FileIdentity(status).inode, isFile ? try DocumentFixture.read(path) : [])
    }

    @Test(
        "It begins anew, follows nothing, and touches nothing of theirs", .timeLimit(.minutes(2)),
        arguments: Attack.allCases)
    func beginsAnew(_ attack: Attack) async throws {
        let fixture = try ResumeFixture(seed: 20)
        try await fixture.receive([0..<5])
        let theirs = try commit(attack, against: try fixture.part(), in: fixture)
        let before = try state(of: theirs)
        let writer = try await fixture.open()
        #expect(try await writer.missing() == [0..<8])
        #expect(await writer.progress.verifiedByteCount == 0)
        try await fixture.complete(writer)
        let after = try state(of: theirs)
        #expect(after?.inode == before?.inode && after?.content == before?.content)
        #expect(try SystemCalls.status(at: fixture.document).st_nlink == 1)
    }

    @Test("Exchanged while it is received, it is neither committed nor followed")
    func exchangedMeanwhile() async throws {
        let fixture = try ResumeFixture(seed: 21)
        try await fixture.receive([0..<5])
        let writer = try await fixture.open()
        try await writer.begin([5..<8])
        try await writer.write(ResumeFixture.records([5..<8], of: fixture.content))
        let theirs = try commit(.exchanged, against: try fixture.part(), in: fixture)
        let before = try state(of: theirs)
        #expect(await DocumentFixture.code { _ = try await writer.commit() } == .writeFailed)
        let after = try state(of: theirs)
        #expect(after?.inode == before?.inode && after?.content == before?.content)
        #expect(access(fixture.document.string, F_OK) != 0)
        // And the next one has the document all the same.
        try await fixture.complete(try await fixture.open())
    }

    @Test("A journal of another document beside a part says nothing of it")
    func exchangedJournal() async throws {
        let fixture = try ResumeFixture(seed: 22)
        try await fixture.receive([0..<5])
        let header = JournalHeader(
            origin: DocumentFixture.origin,
            tree: try DocumentFixture.tree(UInt64(fixture.content.count), called: "other.pdf", version: 77))
        let journal = try TransferJournal.create(at: try fixture.journal(), header)
        for chunk in 0..<UInt64(8) { journal.append(chunk, fixture.checksum(of: chunk)) }
        try journal.flush()
        let writer = try await fixture.open()
        #expect(try await writer.missing() == [0..<8])
        try await fixture.complete(writer)
    }
}
