// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// What is neither announced nor listed nor taken while its user has switched Handoff off.
@Suite(.serialized, .lab, .timeLimit(.minutes(3)))
struct LabHandoffSwitchTests {
    @Test("Switched off, for a device or an application, nothing is announced, listed or taken; on again it is back")
    func switchedOff() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let reader = try await LabApplication(lab, on: 2, LabManifest.write(lab, "org.example.reader"))
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Note")
        func list(_ titles: [String], _ what: String) async throws {
            try await eventually(what, within: .seconds(40)) {
                try await lab.run(2, "activities", "--json").events.map(\.title) == titles
            }
        }
        try await list(["Note"], "it is listed")
        let id = try #require(try await lab.run(2, "activities", "--json").events.first?.id)

        for switched in [[], ["--application", "org.example.writer"]] {
            #expect(try await lab.start(1, ["handoff", "off"] + switched).end().status == 0)
            try await list([], "it is gone: \(switched)")
            #expect(try await lab.run(2, "accept", id, "--json").events.last?.code == "noSuchActivity")
            #expect(try await lab.start(1, ["handoff", "on"] + switched).end().status == 0)
            try await list(["Note"], "it is back: \(switched)")
        }

        #expect(try await lab.run(2, "handoff", "off").status == 0)
        try await list([], "nothing is listed where it is off")
        #expect(try await lab.run(2, "accept", id, "--json").status != 0)
        #expect(try await lab.run(2, "accept", "--wait", "1", "--json").events.last?.code == "handoffOff")
        #expect(try await lab.run(2, "handoff", "on").status == 0)
        try await list(["Note"], "it is listed again")

        #expect(try await lab.run(2, "handoff", "off", "--application", "org.example.reader").status == 0)
        try await list([], "nothing is listed that only an application continues for which it is off")
        let refused = try await lab.run(2, "accept", "--application", "org.example.reader", "--json")
        #expect(refused.status == 77)
        #expect(refused.events.last?.code == "handoffOff")
        let said = try await lab.run(2, "accept").errors
        #expect(said.contains("baton handoff on --application org.example.reader"), "\(said)")
        #expect(!said.contains("baton handoff on`"), "\(said)")
        let waited = try await lab.run(2, "accept", "--wait", "1").errors
        #expect(waited.contains("baton handoff on --application org.example.reader"), "\(waited)")
        // Another application that continues it makes it listed, for who watches as well.
        let watch = try lab.watch(2)
        // The event that comes now says that it is added: it was not listed in the beginning.
        try await watch.event("listed")
        let other = try await LabApplication(lab, on: 2, LabManifest.write(lab, "org.example.other"))
        try await watch.listed("Note")
        try await other.kill()
        try await list([], "nobody is left that could continue it")
        // So does one that is only installed.
        func told(_ event: String, _ count: Int) async throws {
            try await eventually("\(event), \(count) times: \(watch.events.map(\.event))", within: .seconds(20)) {
                watch.events.count { $0.event == event } == count
            }
        }
        try await told("removed", 1)
        let installed = try LabManifest.write(lab, "org.example.installed")
        let registered = try await lab.run(2, "applications", "register", installed.path, "--command", "/bin/true")
        #expect(registered.status == 0, "\(registered.errors)")
        try await told("added", 2)
        #expect(try await lab.run(2, "applications", "remove", "org.example.installed").status == 0)
        try await told("removed", 2)
        #expect(reader.count("willContinue") == 0)
        #expect(try await lab.run(2, "handoff", "on", "--application", "org.example.reader").status == 0)
        let accept = try lab.start(2, "accept")
        try await reader.agree()
        try await origin.save()
        try await reader.continue()
        #expect(try await accept.end().status == 0)
    }

    @Test("Switched off, the record that stays when a node does not answer says nothing of it")
    func switchedOffRecord() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        var nodes = try await lab.startNodes()
        let reader = try LabManifest.write(lab, "org.example.reader")
        #expect(try await lab.run(2, "applications", "register", reader.path, "--command", "/bin/true").status == 0)
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Note")

        // A node that has heard nothing else of the origin, which cannot answer.
        func announced() async throws -> [String] {
            nodes[0].program.signal(SIGSTOP)
            defer { nodes[0].program.signal(SIGCONT) }
            _ = try await nodes[1].end(by: SIGTERM)
            nodes[1] = try await lab.startNode(2).command
            try await lab.awaitPeers(1, on: 2)
            return try await lab.run(2, "activities", "--json").events.compactMap(\.title)
        }
        for switched in [[], ["--application", "org.example.writer"]] {
            try await eventually("on: \(switched)", within: .seconds(60)) { try await announced() == ["Note"] }
            #expect(try await lab.start(1, ["handoff", "off"] + switched).end().status == 0)
            try await eventually("off: \(switched)", within: .seconds(60)) { try await announced().isEmpty }
            #expect(try await lab.start(1, ["handoff", "on"] + switched).end().status == 0)
        }
    }
}
