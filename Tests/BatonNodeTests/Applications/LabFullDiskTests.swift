// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// A node whose disk is full: it says so where it matters, goes on where it does not, and has lost nothing.
@Suite(.serialized, .lab, .timeLimit(.minutes(3)))
struct LabFullDiskTests {
    @Test("A choice that cannot be kept is refused and does not count, activities go on, and nothing is lost")
    func choices() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let home = try lab.destination("home")
        let joined = try await lab.run(
            2, "account", "join", "--no-wait", "--name", "full", "--key-file", lab.keyFile.path, home: home)
        #expect(joined.status == 0, "\(joined.errors)")
        let kept = Data("off org.example.other\n".utf8)
        let file = home.appendingPathComponent("config/handoff")
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try kept.write(to: file)

        // Small file systems in the places of the two folders, which the node alone sees and which go with it. They are
        // filled when a file asks for it: a node that finds them full does not start.
        let script = """
            for folder in config state; do
                cp -a "$1/$folder" "$1/$folder.before" &&
                    mount -t tmpfs -o size=512k tmpfs "$1/$folder" &&
                    cp -a "$1/$folder.before/." "$1/$folder/" || exit 9
            done
            {
                tries=0
                until [ -e "$1/fill" ] || [ $((tries += 1)) -gt 600 ]; do sleep 0.1; done
                for folder in config state; do head -c 600000 /dev/zero >"$1/$folder/filler"; done
                : >"$1/filled"
            } >/dev/null 2>&1 </dev/null &
            shift
            exec "$@"
            """
        let laptop = try await lab.startNode(1).command
        let node = try await lab.startNode(
            2, home: home, wrapper: ["unshare", "-m", "sh", "-c", script, "sh", home.path]
        ).command
        let reader = try await LabApplication(lab, on: 2, LabManifest.write(lab, "org.example.reader"), home: home)
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        try Data().write(to: home.appendingPathComponent("fill"))
        try await eventually("the disks are full") { FileManager.default.fileExists(atPath: home.path + "/filled") }

        let refused = try await lab.run(2, "handoff", "off", home: home)
        #expect(refused.status == 1, "\(refused)")
        #expect(
            refused.errors.contains("the choice cannot be kept")
                && refused.errors.contains("No space left on device"), "\(refused.errors)")
        let state = try await lab.run(2, "handoff", "--json", home: home).lines.joined()
        #expect(state.contains(#""handoff":"on""#) && state.contains("org.example.other"), "\(state)")

        // That the application was used cannot be noted, which takes nothing from the handoff.
        origin.offer("Note")
        let accept = try lab.start(2, "accept", "--wait", "30", home: home)
        try await reader.agree()
        try await origin.save()
        #expect(try await reader.continue().userInfo?.page == 2)
        #expect(try await accept.end().status == 0)
        #expect(node.program.isRunning && laptop.program.isRunning)
        _ = try await node.end(by: SIGTERM)

        // The folders as they were: the next node knows what the user had chosen.
        #expect(try Data(contentsOf: file) == kept)
        _ = try await lab.startNode(2, home: home)
        let later = try await lab.run(2, "handoff", "--json", home: home).lines.joined()
        #expect(later.contains(#""handoff":"on""#) && later.contains("org.example.other"), "\(later)")
        #expect(try await lab.run(2, "handoff", "off", home: home).status == 0)
    }
}
