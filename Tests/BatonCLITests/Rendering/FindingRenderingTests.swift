// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import BatonCLI
@testable import BatonNode

@Suite("Findings of the doctor")
struct FindingRenderingTests {
    private static let findings = [
        Finding.fine(.account, "this device has an account that can be used"), .fine(.folders, "only this user"),
        .problem(.noNode, evidence: ["nothing listens at /run/user/1000/baton/node.socket"], remedy: ["baton node"]),
        .notMeasured(.limits, because: "only a running node knows how many files it may open, and none is running"),
    ]

    @Test("What is fine shares a line, and every line but a command fits the terminal")
    func text() {
        #expect(
            FindingRendering.lines(Self.findings, isVerbose: false, width: 60) == [
                "this machine",
                "  fine          account, folders",
                "  problem       no node is running here",
                "                nothing listens at",
                "                /run/user/1000/baton/node.socket",
                "                $ baton node",
                "  not measured  system limits: only a running node knows how",
                "                many files it may open, and none is running",
            ])
        let verbose = FindingRendering.lines(Self.findings, isVerbose: true, width: .max)
        #expect(verbose[1] == "  fine          this device has an account that can be used")
        #expect(verbose[2] == "  fine          only this user")
    }

    @Test("What was not measured for one reason shares a line, and what is done elsewhere is no command")
    func road() {
        let findings = [
            Finding.notMeasured(.dial, because: "no node is running here"),
            .problem(.revoked, of: "desktop", remedy: [Finding.there("desktop", "baton account join")]),
            .notMeasured(.clock, because: "no node is running here"),
        ]
        #expect(
            FindingRendering.lines(findings, about: "desktop", isVerbose: false, width: 80) == [
                "the road to desktop",
                "  problem       desktop was revoked from the account",
                "                on desktop: baton account join",
                "  not measured  connection, clock: no node is running here",
            ])
    }

    @Test("JSON has the same, and the counts last")
    func json() {
        #expect(
            FindingRendering.json(Self.findings[2])
                == #"{"check":"node","group":"machine","result":"problem","cause":"noNode","#
                + #""sentence":"no node is running here","#
                + #""evidence":["nothing listens at /run/user/1000/baton/node.socket"],"remedy":["baton node"]}"#)
        #expect(FindingRendering.jsonSummary(Self.findings) == #"{"problems":1,"notMeasured":1}"#)
        #expect(FindingRendering.json(Self.findings[3]).contains(#""result":"notMeasured","sentence""#))
    }

    @Test("The exit status says whether there is a problem, and never success for what was not measured")
    func status() {
        #expect(FindingRendering.error(Self.findings)?.status == .failed)
        #expect(FindingRendering.error(Self.findings)?.message == "1 problem, 1 not measured")
        #expect(FindingRendering.error([Self.findings[0], Self.findings[3]])?.status == .notMeasured)
        #expect(FindingRendering.error(Array(Self.findings.prefix(2))) == nil)
    }
}

/// The command, run as a process.
@Suite("baton doctor")
struct DoctorTests {
    /// A bus that is no path counts as one that answers.
    private static let bus = ["DBUS_SYSTEM_BUS_ADDRESS": "tcp:host=localhost"]

    private static func causes(_ result: BuiltCommand.Result) -> [String] {
        // The network of the machine that tests is not known.
        result.output.split(separator: "\n").filter { $0.contains(#""group":"machine""#) }.compactMap { line in
            line.split(separator: #""cause":""#).dropFirst().first.map { String($0.prefix { $0 != "\"" }) }
        }
    }

    @Test("It names what is missing, from nothing at all to a running node")
    func steps() async throws {
        let folder = FileManager.default.temporaryDirectory.path + "/baton-doctor-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        @Sendable func doctor(_ environment: [String: String] = Self.bus) async throws -> BuiltCommand.Result {
            try await BuiltCommand.run(["doctor", "--json"], home: folder + "/home", environment: environment)
        }
        _ = try await BuiltCommand.run(["account", "create"], home: folder + "/home")
        async let empty = BuiltCommand.run(["doctor", "--json"], home: folder + "/empty", environment: Self.bus)
        let created = try await doctor()
        let nothing = try await empty
        #expect(Self.causes(nothing) == ["noAccount"] && nothing.status == 1, "\(nothing)")
        #expect(Self.causes(created) == ["noNode"] && created.status == 1, "\(created)")
        let node = try BuiltNode(["BATON_HOME": folder + "/home"], in: folder)
        try await node.ready()
        async let silenced = doctor(["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent/bus"])
        let running = try await doctor()
        let silent = try await silenced
        #expect(Self.causes(running).isEmpty && running.output.contains(#""check":"node""#), "\(running)")
        #expect(Self.causes(silent) == ["noBus"], "\(silent)")
        node.send(SIGTERM)
        #expect(await node.end() == 0)
    }

    @Test("A stopped node is not measured, within ten seconds")
    func hanging() async throws {
        let folder = FileManager.default.temporaryDirectory.path + "/baton-doctor-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        _ = try await BuiltCommand.run(["account", "create"], home: folder + "/home")
        let node = try BuiltNode(["BATON_HOME": folder + "/home"], in: folder)
        try await node.ready()
        node.send(SIGSTOP)
        let began = ContinuousClock.now
        let result = try await BuiltCommand.run(["doctor"], home: folder + "/home", environment: Self.bus)
        #expect([1, 79].contains(result.status) && ContinuousClock.now - began < .seconds(10), "\(result)")
        #expect(
            result.output.contains("not measured  node: the node does not answer within 3 s"),
            "\(result.output)")
        node.send(SIGCONT)
        node.send(SIGTERM)
        #expect(await node.end() == 0)
    }
}
