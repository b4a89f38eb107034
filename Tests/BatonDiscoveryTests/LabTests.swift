// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// The lab itself: what the other tests stand on.
@Suite(.lab, .timeLimit(.minutes(2)))
struct LabTests {
    @Test func hostsReachEachOtherUntilTheCableIsPulled() async throws {
        let lab = try Lab()
        defer { lab.down() }
        #expect(try await lab.start(1, ["ping", "-c", "3", "-W", "5", "10.77.0.2"]).end() == 0)
        try lab.command("link", "2", "down")
        #expect(try await lab.start(1, ["ping", "-c", "1", "-W", "1", "10.77.0.2"]).end() != 0)
        try lab.command("link", "2", "up")
        #expect(try await lab.start(1, ["ping", "-c", "3", "-W", "5", "10.77.0.2"]).end() == 0)
        try lab.command("rate", "1", "10")
        #expect(try await lab.start(2, ["ping", "-c", "3", "-W", "5", "10.77.0.1"]).end() == 0)
        try lab.command("rate", "1", "off")
    }

    @Test func nothingIsLeftAfterDown() async throws {
        let lab = try Lab(hosts: 3)
        let folder = NSTemporaryDirectory() + "/baton-lab-" + lab.name
        #expect(FileManager.default.fileExists(atPath: folder))
        // A program that ignores SIGTERM, with a child.
        let stubborn = try lab.start(1, ["bash", "-c", "trap '' TERM; echo ready; sleep 1000 & wait; sleep 1000"])
        try await stubborn.line { $0 == "ready" }
        lab.down()
        _ = try await stubborn.end()
        #expect(!FileManager.default.fileExists(atPath: folder))
        #expect(try processes(naming: lab.name).isEmpty)
        // A second time is nothing.
        lab.down()
    }

    @Test func programsGetTheEnvironmentOfTheirHost() async throws {
        let lab = try Lab()
        defer { lab.down() }
        var homes: Set<String> = []
        for host in 1...2 {
            let program = try lab.start(host, ["sh", "-c", "echo $$; echo $BATON_HOME; echo $DBUS_SYSTEM_BUS_ADDRESS"])
            #expect(try await program.end() == 0)
            let lines = program.lines
            #expect(lines.count == 3)
            // The program's pid is that of the process that was started.
            #expect(lines.first == "\(program.processIdentifier)")
            homes.insert(lines.dropFirst().joined())
        }
        #expect(homes.count == 2)
    }

    /// Processes that run and have a word on their command line or in their environment.
    private func processes(naming word: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc").filter { pid in
            guard Int(pid) != nil else { return false }
            return ["cmdline", "environ"].contains { file in
                let data = FileManager.default.contents(atPath: "/proc/\(pid)/\(file)") ?? Data()
                let text = String(decoding: data, as: UTF8.self)
                // With what follows it, or "lab-1" would be found in "lab-12".
                return text.contains(word + "/") || text.contains(word + "\0")
            }
        }
    }
}
