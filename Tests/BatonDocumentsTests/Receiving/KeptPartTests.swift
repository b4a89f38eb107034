// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Kept parts")
struct KeptPartTests {
    let fixture: ResumeFixture

    init() throws {
        fixture = try ResumeFixture(seed: 61)
    }

    @Test("A part is listed with what came of it, and deleting it leaves nothing")
    func discarded() async throws {
        try await fixture.receive([0..<3])
        let ledger = try fixture.nextStart()
        let part = try #require(try ledger.keptParts().first)
        #expect(try ledger.keptParts().count == 1)
        #expect(part.bytes == 3 << 20 && part.total == UInt64(fixture.content.count))
        #expect(part.name == Array("report.pdf".utf8) && part.origin == DocumentFixture.origin)
        #expect(part.folder.lastComponent == fixture.folder.lastComponent)
        #expect(part.changed > 0 && part.changed <= UInt64(time(nil)))
        #expect(ledger.discard(part) == .done)
        fixture.writers.expectOnly([])
        #expect(try ledger.keptParts().isEmpty)
        #expect(ledger.discard(part) == .done, "it has gone already")
    }

    @Test("A part that a transfer uses is not listed and not deleted")
    func inUse() async throws {
        try await fixture.receive([0..<3])
        let part = try #require(try fixture.writers.ledger.keptParts().first)
        let writer = try await fixture.open(ledger: fixture.writers.ledger)
        #expect(try fixture.writers.ledger.keptParts().isEmpty)
        #expect(fixture.writers.ledger.discard(part) == .inUse)
        _ = await writer.end()
        #expect(fixture.writers.ledger.discard(part) == .done)
        fixture.writers.expectOnly([])
    }

    @Test("A part whose folder is away stays listed, and can be deleted when the folder is back")
    func unreachable() async throws {
        try await fixture.receive([0..<3])
        let ledger = try fixture.nextStart()
        let part = try #require(try ledger.keptParts().first)
        let away = fixture.scratch.filePath.appending("away")
        try SystemCalls.call { rename(fixture.folder.string, away.string) }
        #expect(ledger.discard(part) == .unreachable)
        #expect(try ledger.keptParts() == [part])
        try SystemCalls.call { rename(away.string, fixture.folder.string) }
        #expect(ledger.discard(part) == .done)
        fixture.writers.expectOnly([])
    }
}
