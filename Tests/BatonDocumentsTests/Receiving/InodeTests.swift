// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import CLinux
import Foundation
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Something else in the place of a part")
struct InodeTests {
    @Test("Where they are kept it begins anew, and what stands there is not forgotten")
    func strangerIsRemembered() async throws {
        let fixture = try ResumeFixture(seed: 31)
        try await fixture.receive([0..<5])
        let part = try #require(fixture.names.first)
        let record = try fixture.writers.renumberPart()
        let writer = try await fixture.open()
        #expect(try await writer.missing() == [0..<8])
        try await fixture.complete(writer)
        #expect(fixture.names == [part, "report.pdf"])
        #expect(try fixture.nextStart().unfinished().map(\.record) == [record])
    }

    @Test("Of another version nothing is built upon what stands there, and it is not forgotten either")
    func strangerOfAnotherVersionIsRemembered() async throws {
        let fixture = try ResumeFixture(seed: 34)
        try await fixture.receive([0..<5])
        let part = try #require(fixture.names.first)
        let record = try fixture.writers.renumberPart()
        let tree = try DocumentFixture.tree(UInt64(fixture.content.count), version: ResumeFixture.version + 1)
        let writer = try await fixture.open(tree)
        #expect(writer.pieceSize == nil)
        try await fixture.complete(writer)
        #expect(fixture.names == [part, "report.pdf"])
        #expect(try fixture.nextStart().unfinished().map(\.record) == [record])
    }

    @Test("Nor is it when its device has more unfinished documents than are kept")
    func strangerIsNoExcess() async throws {
        let fixture = try ResumeFixture(seed: 35)
        try await fixture.receive([0..<5])
        let part = try #require(fixture.names.first)
        let record = try fixture.writers.renumberPart()
        try DocumentFixture.backdate(try fixture.journal())
        for number in 0..<PartFileLedger.unfinishedLimitOfDevice {
            try await fixture.receive([0..<1], of: try DocumentFixture.tree(2 << 20, called: "\(number)", version: 1))
        }
        let other = try await fixture.open(try DocumentFixture.tree(2 << 20, called: "other", version: 1))
        await other.end()
        #expect(fixture.names.contains(part))
        #expect(try fixture.nextStart().unfinished().last?.record == record)
    }
}

extension WriterFixture {
    /// Has the ledger remember another number of the one part, as where the file system has made up a new one.
    @discardableResult
    func renumberPart() throws -> PartFileRecord {
        let ledger = try PartFileLedger(stateFolder: scratch.filePath.appending("parts"))
        var record = try #require(try ledger.unfinished().first).record
        record.inode += 1
        try ledger.enter(record)
        return record
    }
}
