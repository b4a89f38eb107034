// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// Applications that a real service manager of the user runs: `systemd --user` on a lab host.
@Suite(
    .serialized, .lab,
    .enabled(if: LabServiceManager.unavailableReason == nil, "\(LabServiceManager.unavailableReason ?? "")"),
    .timeLimit(.minutes(3)))
struct LabServiceManagerTests {
    @Test("Accept starts an application as a unit of its own, which lives on when the node ends and continues again")
    func unit() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let manager = try lab.startProgram(2, ["bash", LabServiceManager.script])
        try await manager.program.line(within: .seconds(40)) { $0 == "ready" }
        _ = try await lab.startNode(1)
        let node = try await lab.startNode(2).command
        try await lab.awaitPeers(1, on: 2)

        let manifest = try LabManifest.write(lab, "org.example.my-reader")
        let (log, groups) = (lab.folder.appending(path: "log"), lab.folder.appending(path: "groups"))
        let program = lab.folder.appending(path: "reader")
        let text = """
            #!/bin/sh
            cat /proc/self/cgroup >>'\(groups.path)'
            exec python3 '\(LabApplication.client)' continue '\(Lab.product("baton"))' "$1" '\(log.path)'

            """
        try Data(text.utf8).write(to: program)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program.path)
        let registered = try await lab.run(
            2, "applications", "register", manifest.path, "--command", "\(program.path) \(manifest.path)")
        #expect(registered.status == 0, "\(registered.errors)")
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Note")

        func accept(_ nth: Int) async throws {
            let accept = try lab.start(2, "accept", "--wait", "30", "--json")
            try await origin.save(nth: nth, page: nth)
            let accepted = try await accept.end()
            #expect(accepted.status == 0, "\(accepted.errors)\(node.errors)")
            #expect(accepted.lines.last?.contains(#""application":"org.example.my-reader""#) == true)
        }
        func told(_ event: String) -> [BridgeLine] {
            ((try? String(contentsOf: log, encoding: .utf8)) ?? "").split(separator: "\n")
                .compactMap { BridgeLine(String($0)) }.filter { $0.event == event }
        }
        /// The units that the application was started as, each with its slice.
        func units() throws -> [String] {
            try String(contentsOf: groups, encoding: .utf8).split(separator: "\n")
                .filter { $0.hasPrefix("0::") }.map { String($0.dropFirst(3)) }
        }
        func isActive(_ unit: String) async throws -> Bool {
            let answer = try await lab.startProgram(2, ["systemctl", "--user", "is-active", unit]).end()
            return answer.lines == ["active"]
        }

        try await accept(1)
        #expect(told("continue").map(\.userInfo?.page) == [1])
        let group = try #require(try units().first)
        let expected = #/^/app\.slice/app-baton-org\.example\.my\\x2dreader-[0-9a-f]{8}\.service$/#
        #expect(group.contains(expected), "\(group)")
        let unit = group.split(separator: "/").last.map(String.init) ?? ""
        #expect(try await isActive(unit))

        #expect(try await node.end(by: SIGTERM).status == 0)
        try await eventually("the application is without its node") { told("node").last?.state == "missing" }
        #expect(try await isActive(unit))
        _ = try await lab.startNode(2)
        try await eventually("it has found the new one") { told("node").last?.state == "connected" }
        try await accept(2)
        #expect(told("continue").map(\.userInfo?.page) == [1, 2])
        #expect(try units().count == 1, "it was not started twice")

        manager.program.closeInput()
        #expect(try await manager.end().status == 0)
    }
}
