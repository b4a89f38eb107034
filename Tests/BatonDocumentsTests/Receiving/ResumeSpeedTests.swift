// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("How soon a transfer goes on", .nightly)
struct ResumeSpeedTests {
    /// A part of which all chunks but the last have come, out of order, each of them in the journal.
    private func time(_ chunks: UInt64) async throws -> Duration {
        let writers = try WriterFixture()
        let tree = try DocumentFixture.tree(chunks << 20, version: 5, isSparse: true)
        let zeros = [UInt8](repeating: 0, count: 1 << 20)
        let record = DocumentFixture.record(zeros, encoding: 1, saying: [])
        let writer = try await DocumentWriter.create(
            tree, from: DocumentFixture.origin, in: try DestinationFolder(writers.folder), ledger: writers.ledger)
        for half in [chunks / 2..<chunks - 1, 0..<chunks / 2] {
            try await writer.begin([half])
            for start in stride(from: half.lowerBound, to: half.upperBound, by: 512) {
                let count = min(512, half.upperBound - start)
                try await writer.write(Array((0..<count).map { _ in record }.joined()))
            }
        }
        #expect(await writer.end() == (chunks - 1) << 20)
        let ledger = try PartFileLedger(stateFolder: writers.scratch.filePath.appending("parts"))
        let start = ContinuousClock.now
        let next = try await DocumentWriter.create(
            tree, from: DocumentFixture.origin, in: try DestinationFolder(writers.folder), ledger: ledger)
        #expect(try await next.missing() == [chunks - 1..<chunks])
        return ContinuousClock.now - start
    }

    @Test("10 GiB of which nearly all is there are gone on with within a second", .timeLimit(.minutes(10)))
    func tenGigabytes() async throws {
        _ = try await time(64)
        let (small, large) = (try await time(64), try await time(10 << 10))
        print("64 MiB after \(small), 10 GiB after \(large)")
        // Where everything is slow, a small one is as well.
        #expect(large < max(.seconds(1), small * 4))
    }
}
