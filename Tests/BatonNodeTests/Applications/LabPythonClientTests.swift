// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// Programs in another language that meet with a failure, and go on: the Python example.
@Suite(.serialized, .lab, .timeLimit(.minutes(3)))
struct LabPythonClientTests {
    @Test("What Python does not handle its user is told of; the origin hears it, updates its note, and is continued")
    func failure() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let client = LabApplication.client
        func log(_ host: Int) -> URL { lab.folder.appending(path: "client-\(host)") }
        func told(_ host: Int) -> [BridgeLine] {
            ((try? String(contentsOf: log(host), encoding: .utf8)) ?? "").split(separator: "\n")
                .compactMap { BridgeLine(String($0)) }.filter { $0.event != "node" }
        }
        for (host, role) in [(1, "offer"), (2, "stumble")] {
            let manifest = try LabManifest.write(lab, "org.example.\(role)").path
            _ = try lab.startProgram(host, ["python3", client, role, Lab.product("baton"), manifest, log(host).path])
        }
        try await eventually("the second is there") {
            ((try? String(contentsOf: log(2), encoding: .utf8)) ?? "").contains(#""state":"connected""#)
        }

        let failed = try await lab.run(2, "accept", "--wait", "30", "--json")
        #expect(failed.events.last?.code == "notHandled", "\(failed)")
        try await eventually("both are told") { told(1).count == 3 && told(2).count == 5 }
        #expect(told(2).map(\.event) == ["ready", "willContinue", "continue", "didFailToContinue", "shown"])
        #expect(told(2)[2].userInfo?.page == 2 && told(2)[3].code == 46007)
        #expect(told(2)[4].message == told(2)[3].message)
        #expect(told(1).map(\.event) == ["ready", "willSave", "failed"])
        #expect(told(1)[2].code == 46007 && told(1)[2].device == "desktop" && told(1)[2].activity == "note")

        let title = "Python's note, once more for desktop"
        try await eventually("the update is listed", within: .seconds(40)) {
            try await lab.run(2, "activities", "--json").events.map(\.title) == [title]
        }
        let accepted = try await lab.run(2, "accept", "--json")
        #expect(accepted.status == 0, "\(accepted)")
        try await eventually("all bytes have come back", within: .seconds(40)) {
            told(2).contains { ["echoed", "corrupted", "streamFailed"].contains($0.event) }
        }
        #expect(told(2).dropFirst(5).map(\.event) == ["willContinue", "continue", "streamOpened", "end", "echoed"])
        #expect(told(2)[6].title == title && told(2)[6].userInfo?.page == 3)
        try await eventually("the origin is told") { told(1).contains { $0.event == "wasContinued" } }
        #expect(told(1).allSatisfy { $0.event != "error" } && told(2).allSatisfy { $0.event != "error" })
    }
}
