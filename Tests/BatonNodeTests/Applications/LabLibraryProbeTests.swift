// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// Tests between two real nodes that need Swift, not JSON lines: `library-probe` is an application of the library.
@Suite(.serialized, .lab, .timeLimit(.minutes(3)))
struct LabLibraryProbeTests {
    @Test("Responders and didUpdate gather the state at takeover; the target identifier chooses what is restored")
    func windows() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let restoring = try lab.startProgram(2, [Self.probe, "restore", "first", "second", "third"])
        try await restoring.program.line { $0 == "connected" }
        let sharing = try lab.startProgram(1, [Self.probe, "share"])
        let accepted = try await lab.run(2, "accept", "--wait", "30")
        #expect(accepted.status == 0, "\(accepted.errors)")

        try await sharing.program.line { $0 == "continued by desktop" }
        #expect(
            sharing.program.lines == [
                "update left: ", "update right: left", "willSave left,right", "didUpdate left,right",
                "continued by desktop",
            ])
        try await restoring.program.line { $0 == "handled" }
        #expect(restoring.program.lines == ["connected", "restored second: left,right,updated", "handled"])
        for probe in [sharing, restoring] {
            probe.program.closeInput()
            #expect(try await probe.end().status == 0)
        }
    }

    @Test("Foundation's blocking streams carry bytes both ways, each direction with an end of its own; typed without")
    func blockingStreams() async throws {
        let (seed, count) = (UInt64(303), 3_000_001)
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let asking = try lab.startProgram(2, [Self.probe, "ask", "\(seed)", "\(count)"])
        try await asking.program.line { $0 == "connected" }
        let echoing = try lab.startProgram(1, [Self.probe, "echo"])
        // Streams of an activity that was not continued fail at once.
        try await echoing.program.line { $0 == "offered: 46002" }
        let accepted = try await lab.run(2, "accept", "--wait", "30")
        #expect(accepted.status == 0, "\(accepted.errors)")

        // So do those of one that was let go, which is what the last line says.
        try await asking.program.line(within: .seconds(60)) { $0 == "let go: 46002" }
        #expect(
            asking.program.lines == ["connected", "continued: streams", "echoed \(count) true", "let go: 46002"],
            "seed \(seed)")
        #expect(echoing.program.lines == ["offered: 46002", "served \(count) true"])
        for probe in [asking, echoing] {
            probe.program.closeInput()
            #expect(try await probe.end().status == 0)
        }
    }

    @Test("An application that a desktop entry tells of is launched, told and given the activity")
    func desktopEntry() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let data = try lab.destination("data")
        let entries = data.appendingPathComponent("applications")
        try FileManager.default.createDirectory(at: entries, withIntermediateDirectories: true)
        let client = LabApplication.client
        let log = lab.folder.appendingPathComponent("desktop-log").path
        let entry = """
            [Desktop Entry]
            Type=Application
            Name=Desktop Reader
            Exec=python3 "\(client)" continue "\(Lab.product("baton"))" org.example.desktop-reader "\(log)"
            X-Baton-Types=\(LabManifest.type);
            X-Baton-Team=EXAMPLE

            """
        try Data(entry.utf8).write(to: entries.appendingPathComponent("org.example.desktop-reader.desktop"))
        _ = try await lab.startNode(1)
        _ = try await lab.startNode(2, wrapper: ["env", "XDG_DATA_HOME=\(data.path)"])
        for host in 1...2 { try await lab.awaitPeers(1, on: host) }
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Note", #","supportsContinuationStreams":true"#)

        let accept = try lab.start(2, "accept", "--wait", "30", "--json")
        try await origin.save(page: 7)
        let accepted = try await accept.end()
        #expect(accepted.status == 0, "\(accepted.errors)")
        #expect(accepted.lines.last?.contains(#""application":"org.example.desktop-reader""#) == true)
        let told = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
            .compactMap { BridgeLine(String($0)) }.filter { $0.event != "node" }
        #expect(told.prefix(3).map(\.event) == ["ready", "willContinue", "continue"], "\(told)")
        #expect(told.first { $0.event == "continue" }?.userInfo?.page == 7)
        try await origin.event("wasContinued") { $0.device == "desktop" }
    }

    private static let probe = Lab.product("library-probe")
}

/// In a suite of its own, because it may take longer than any other: 11 s where nothing else runs.
@Suite(.lab, .timeLimit(.minutes(10)))
struct LabRandomUserInfoTests {
    @Test("1,000 random user infos are the same on the other device, each in its handoff")
    func randomUserInfo() async throws {
        let count = 1000
        let seed = SeededGenerator.chosenSeed % (1 << 32)
        print("user infos of the seeds \(seed)..<\(seed + UInt64(count))")
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let probe = Lab.product("library-probe")
        let receiving = try lab.startProgram(2, [probe, "receive", "\(seed)", "\(count)"])
        let sending = try lab.startProgram(1, [probe, "send", "\(seed)"])
        let result = try await receiving.program.line(within: .seconds(480)) { $0.hasPrefix("same ") }
        print(result.text)
        #expect(result.text.hasPrefix("same \(count) "), "\(receiving.program.lines)")
        #expect(receiving.program.lines.count == 1, "\(receiving.program.lines)")
        #expect(sending.program.lines.isEmpty, "\(sending.program.lines)")
        for probe in [sending, receiving] {
            probe.program.closeInput()
            #expect(try await probe.end().status == 0)
        }
    }
}
