// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import SystemPackage
import Testing

@testable import BatonApplications

@Suite("Which application continues")
struct ChoiceTests {
    private static func installed(
        _ identifier: String, name: String = "App", team: String = "T", types: [String] = ["t"],
        command: [String] = ["x"]
    ) throws -> ApplicationManifest {
        try ApplicationManifest(
            identifier: identifier, name: name, team: team, activityTypes: types, command: command,
            source: .registered(from: nil))
    }

    private static func running(_ identifier: String, continues: Bool = true) -> ApplicationChoice.Running {
        (identifier, "App", continues)
    }

    private static func names(
        _ installed: [ApplicationManifest], _ running: [ApplicationChoice.Running] = [], team: String = "T"
    ) -> [String] {
        ApplicationChoice.candidates(forType: "t", team: TeamTag(of: team), installed: installed, running: running)
            .map { $0.identifier + ($0.isRunning ? "*" : "") }
    }

    @Test("team and type decide; another team is never a candidate, and no team is a team of its own")
    func eligibility() throws {
        let all = try [
            Self.installed("ours"), Self.installed("theirs", team: "U"), Self.installed("nobodys", team: ""),
            Self.installed("other", types: ["u"]),
        ]
        #expect(Self.names(all) == ["ours"])
        #expect(Self.names(all, team: "U") == ["theirs"])
        #expect(Self.names(all, team: "") == ["nobodys"])
        #expect(Self.names([], [Self.running("s", continues: false)]).isEmpty)
    }

    @Test("what runs counts in place of what is installed, once, and what cannot be started only while it runs")
    func running() throws {
        let both = try [Self.installed("a"), Self.installed("b", command: [])]
        #expect(Self.names(both) == ["a"])
        #expect(Self.names(both, [Self.running("b"), Self.running("b")]) == ["a", "b*"])
        // The running application says itself that it continues another type now.
        #expect(Self.names(both, [Self.running("a", continues: false)]).isEmpty)
    }

    @Test("the one in front, then the most recently used, then the user, who sees names in order")
    func decisions() throws {
        let three = ApplicationChoice.candidates(
            forType: "t", team: TeamTag(of: "T"),
            installed: try [Self.installed("c", name: "A"), Self.installed("b", name: "Z"), Self.installed("a")],
            running: [])
        func decide(_ inFront: [String], _ recent: [String]) -> [ApplicationChoice.Candidate] {
            ApplicationChoice.decide(among: three, inFront: inFront, recentlyUsed: recent)
        }
        #expect(three.map(\.identifier) == ["c", "a", "b"])
        #expect(decide([], []) == three)
        #expect(decide(["x"], ["y"]) == three)
        #expect(decide([], ["y", "b", "a"]) == [three[2]])
        #expect(decide(["x", "a"], ["b"]) == [three[1]])
        #expect(ApplicationChoice.decide(among: [], inFront: ["a"], recentlyUsed: []).isEmpty)
        #expect(ApplicationChoice.decide(among: [three[0]], inFront: ["a"], recentlyUsed: ["b"]) == [three[0]])
    }
}

@Suite("Recently used applications")
struct RecentApplicationsTests {
    @Test("the latest first, each once, at most 64")
    func bound() {
        var recent = RecentApplications()
        for number in 0..<65 { recent.note("a\(number)") }
        #expect(recent.identifiers.count == 64)
        #expect(recent.identifiers.first == "a64" && recent.identifiers.last == "a1")
        recent.note("a1")
        #expect(recent.identifiers.prefix(2) == ["a1", "a64"] && recent.identifiers.count == 64)
    }

    @Test("kept in a file; what is damaged is passed over")
    func file() throws {
        let folder = try ScratchFolder("applications")
        defer { folder.remove() }
        let path = RecentApplications.path(in: folder.filePath)
        #expect(RecentApplications(reading: path).identifiers.isEmpty)
        let longest = (0..<64).map { number in
            String(repeating: "a", count: 198) + (number < 10 ? "0" : "") + "\(number)"
        }
        try RecentApplications(longest).write(to: path)
        #expect(RecentApplications(reading: path).identifiers == longest)
        try folder.write("org.b\n\nno identifier\n\u{1B}\norg.a", to: "applications-used")
        #expect(RecentApplications(reading: path).identifiers == ["org.b", "org.a"])
        try folder.write([UInt8](repeating: 0x61, count: 20_000), to: "applications-used")
        #expect(RecentApplications(reading: path).identifiers.isEmpty)
        #expect(throws: Errno.noSuchFileOrDirectory) {
            try RecentApplications().write(to: folder.filePath.appending("missing/x"))
        }
    }
}
