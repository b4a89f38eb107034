// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

extension LabAttackTests {
    /// Asking a device for the digests of its files, without its user: Harnik, Pinkas and Shulman-Peleg, "Side Channels
    /// in Cloud Services", IEEE Security & Privacy 2010.
    ///
    /// In the other suite, so that only one lab of theirs is there at a time.
    @Suite(.timeLimit(.minutes(3)))
    struct LabDigestAttackTests {
        /// Whose user has not accepted it by its name could be asked for digests of any file by who offers one of that
        /// name.
        @Test("Of what a rule accepts the other device hears no digests of what is here: all of it is sent")
        func wholeByRule() async throws {
            let lab = try await HandoffLab(["origin", "taker"])
            defer { lab.down() }
            let scans = try lab.destination("scans")
            let write = "mkdir -p \"$BATON_HOME/config\" && echo \"$1\" >\"$BATON_HOME/config/accept-policy\""
            let written = try await lab.startProgram(
                2, ["sh", "-c", write, "sh", "accept device=origin type=public.* to=\(scans.path)"]
            ).end()
            #expect(written.status == 0, "\(written.errors)")
            let size = 8_000_000
            let document = try lab.document("noise", bytes: size, seed: 47)
            let copies = try ["here", "there"].map { name in
                let copy = try lab.destination(name).appendingPathComponent("disk.img")
                try FileManager.default.copyItem(at: document, to: copy)
                return copy
            }
            for (host, copy) in zip(1..., copies) {
                let folder = copy.deletingLastPathComponent().path
                #expect(try await lab.run(host, "roots", "add", "Documents", folder).status == 0)
            }
            _ = try await lab.startNodes()
            try await attack("digests of a file by offering one of its name to a rule") {
                let before = try await lab.sentBytes(1)
                let offer = try await lab.offer(1, copies[0].path)
                try await offer.command.event("continued") { $0.device == "taker" }
                let arrived = scans.appendingPathComponent("disk.img")
                #expect(FileManager.default.contentsEqual(atPath: arrived.path, andPath: document.path))
                try await offer.command.end(by: SIGTERM)
                return Outcome(succeeds: try await lab.sentBytes(1) - before < size)
            }
        }
    }
}
