// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// The first handoff of the README, typed as it stands there.
@Suite(.serialized, .lab, .timeLimit(.minutes(2)))
struct LabReadmeTests {
    /// The lines under a heading that a host is to type, without their comments.
    private static func commands(under heading: String) throws -> [(host: String, command: String)] {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../README.md")
        let part = try #require(
            try String(contentsOf: file, encoding: .utf8).components(separatedBy: heading + "\n").last?
                .components(separatedBy: "\n## ").first)
        return part.split(separator: "\n").compactMap { line in
            let halves = line.split(separator: "$", maxSplits: 1)
            guard line.hasPrefix("    "), halves.count == 2 else { return nil }
            let command = halves[1].components(separatedBy: " # ")[0]
            return (
                halves[0].trimmingCharacters(in: .whitespaces), command.trimmingCharacters(in: .whitespaces)
            )
        }
    }

    /// A shell of a host. Every command has to end well before the next one is typed.
    private struct Shell {
        let program: LabProgram

        init(_ lab: Lab, _ host: Int) throws {
            program = try lab.start(host, ["bash"])
            let folder = URL(filePath: Lab.product("baton")).deletingLastPathComponent().path
            program.send("exec 2>&1; PATH='\(folder)':$PATH; cd; echo 'the report' >report.pdf; mkdir to; cd to")
        }

        /// - Parameter input: a line that the command reads.
        /// - Returns: the lines that it printed.
        @discardableResult
        func type(_ command: String, input: String? = nil) async throws -> [String] {
            let before = program.lines.count
            program.send(input.map { "\(command) <<<'\($0)'" } ?? command)
            let mark = UUID().uuidString
            program.send("echo $? \(mark)")
            let end = try await program.line(within: .seconds(40)) { $0.hasSuffix(mark) }.text
            #expect(end == "0 \(mark)", "\(command): \(program.lines.joined(separator: "\n"))")
            return program.lines.dropFirst(before).filter { $0 != end }
        }

        /// Waits, as a person does who reads, until a command is successful.
        func wait(until condition: String) async throws {
            try await type("for i in $(seq 150); do \(condition) >/dev/null 2>&1 && break; sleep 0.2; done")
        }
    }

    @Test("The eight commands work in the order given")
    func firstHandoff() async throws {
        let lab = try await Lab.make(hosts: 2)
        defer { lab.down() }
        let shells = ["laptop": try Shell(lab, 1), "desktop": try Shell(lab, 2)]
        let commands = try Self.commands(under: "## Your first handoff")
        #expect(commands.count == 8)
        var key = ""
        for (host, command) in commands {
            let shell = try #require(shells[host])
            switch command {
            case "baton account create":
                key = try #require(try await shell.type(command).first { $0.hasPrefix("baton1") })
            case "baton account join": try await shell.type(command, input: key)
            case "baton node &":
                try await shell.type(command)
                try await shell.wait(until: "baton status")
            case "baton activities":
                try await shell.wait(until: "baton activities --json | grep report")
                #expect(try await shell.type(command).contains { $0.contains("report.pdf") })
            case _: try await shell.type(command)
            }
        }
        #expect(try await shells["desktop"]?.type("cat report.pdf").contains("the report") == true)
    }
}
