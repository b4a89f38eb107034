// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// A node runs on a kernel or file system without a call that receiving needs. It takes no document rather than risk
/// something, and says why. (NFS and FUSE cannot rename without replacing, FAT has no second names, and a container's
/// filter may forbid any of it: `Support/without-calls.py` is one.)
@Suite(.serialized, .lab, .timeLimit(.minutes(3)))
struct LabLackingCallTests {
    private static let wrapper = [
        "python3",
        URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Support/without-calls.py").path,
    ]

    /// What is lacking, and what then becomes of a file and of a folder: nil where it arrives.
    private struct Lack {
        let calls: String
        let file, folder: (code: String, sentence: String)?
    }

    private static let lacks: [Lack] = {
        let naming = (
            code: "destinationUnwritable",
            sentence: "cannot name a file without risking to replace another. Accept into a folder on another file"
        )
        let opening = (
            code: "unsupported", sentence: "It needs Linux 5.13 or later with openat2, which a container can forbid"
        )
        return [
            Lack(calls: "-", file: nil, folder: nil),
            // A second name cannot replace anything either, and folders have none.
            Lack(calls: "rename", file: nil, folder: naming),
            Lack(calls: "rename,link", file: naming, folder: naming),
            Lack(calls: "open", file: opening, folder: opening),
        ]
    }()

    @Test("A document arrives, or is refused with a sentence before a byte of it is asked for and nothing is left")
    func lacking() async throws {
        let seed: UInt64 = 91
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNode(1)
        let size = 8_000_000
        let folder = try lab.destination("album")
        let file = try lab.document("report.bin", bytes: size, seed: seed)
        try FileManager.default.copyItem(at: file, to: folder.appendingPathComponent("inside.bin"))

        for (number, lack) in Self.lacks.enumerated() {
            let node = try await lab.startNode(2, wrapper: Self.wrapper + [lack.calls]).command
            try await lab.awaitPeers(1, on: 2)
            for (document, refusal) in [(file, lack.file), (folder, lack.folder)] {
                let name = document.lastPathComponent
                let inbox = try lab.destination("inbox-\(number)-\(name)")
                let offer = try await lab.offer(1, document.path)
                try await lab.watch(2).listed(name)
                let before = try await lab.sentBytes(1)
                let accepted = try await lab.run(2, "accept", offer.id, "--json", "--to", inbox.path)
                let sent = try await lab.sentBytes(1) - before
                if let refusal {
                    #expect(accepted.status != 0)
                    #expect(accepted.events.last?.code == refusal.code, "\(accepted)")
                    #expect(accepted.events.last?.message?.contains(refusal.sentence) == true, "\(accepted)")
                    #expect(try lab.contents(of: inbox).isEmpty, "\(lack.calls), \(name)")
                    #expect(sent < size / 4, "\(lack.calls), \(name)")
                } else {
                    #expect(accepted.status == 0, "\(lack.calls): \(accepted)")
                    #expect(try lab.contents(of: inbox) == [name])
                    let arrived = inbox.appendingPathComponent(name).path
                    #expect(FileManager.default.contentsEqual(atPath: arrived, andPath: document.path), "seed \(seed)")
                }

                // A file that has the name already stays as it is, whatever call is missing.
                let taken = try lab.destination("taken-\(number)-\(name)")
                let mine = taken.appendingPathComponent(name)
                try Data("mine".utf8).write(to: mine)
                let again = try await lab.run(2, "accept", offer.id, "--json", "--to", taken.path)
                #expect(again.status != 0, "\(again)")
                #expect(try lab.contents(of: taken) == [name] && Data(contentsOf: mine) == Data("mine".utf8))
                try await offer.command.end(by: SIGTERM)
            }
            // Nor does it remember anything as unfinished.
            let records = try lab.startProgram(2, ["sh", "-c", "find \"$BATON_HOME\" -name '*.part-record'"])
            #expect(try await records.end().lines.isEmpty)
            try await node.end(by: SIGTERM)
        }
    }
}
