// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import Foundation
import SystemPackage
import Testing

@testable import BatonDocuments

/// Knowledge of files here that an origin gains from the digests of a document's older copy.
///
/// An attacker can guess the short content of a digest: Harnik, Pinkas and Shulman-Peleg, "Side Channels in Cloud
/// Services: Deduplication in Cloud Storage", IEEE Security & Privacy 2010.
@Suite("Attacks for digests")
struct DigestAttacks {
    private let scratch: ScratchFolder
    private static let least = Int(OlderCopy.leastSharedSize)

    init() throws {
        scratch = try ScratchFolder("attack")
    }

    /// Whether an origin is told anything of what is here at its document's place.
    private func isTold(of copy: URL, for document: URL) async throws -> Bool {
        let copy = FilePath(copy.path)
        let writer = try await DocumentWriter.create(
            try DocumentScan.scan(FilePath(document.path)).tree, from: "hostile",
            in: try DestinationFolder(FilePath(scratch.folder("in-\(UUID().uuidString)").path)),
            ledger: try PartFileLedger(stateFolder: scratch.filePath.appending("parts")),
            sharedCopy: copy, on: EventLoop(name: "test"))
        let batch = try await writer.nextSignatures()
        await writer.end()
        return batch?.bytes.isEmpty == false
    }

    @Test("Short files in a shared folder", arguments: [9, least - 1], [true, false])
    func shortFile(size: Int, isInFolder: Bool) async throws {
        let (theirs, ours) = (try scratch.folder("theirs"), try scratch.folder("ours"))
        try Data(count: 3 << 20).write(to: theirs.appendingPathComponent("pin"))
        try Data(count: size).write(to: ours.appendingPathComponent("pin"))
        func place(_ folder: URL) -> URL { isInFolder ? folder : folder.appendingPathComponent("pin") }
        try await attack("digests of \(size) bytes\(isInFolder ? " in a folder" : "") at a document's place") {
            Outcome(succeeds: try await isTold(of: place(ours), for: place(theirs)))
        }
    }
}
