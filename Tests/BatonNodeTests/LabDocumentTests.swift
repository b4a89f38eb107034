import BatonTestSupport
import Foundation
import Testing

/// Documents of applications between hosts: read before they are there, fetched, and shared in place.
@Suite(
    .serialized, .enabled(if: Lab.unavailableReason == nil, "\(Lab.unavailableReason ?? "")"), .timeLimit(.minutes(3)))
struct LabDocumentTests {
    /// Two hosts, with an application each.
    private func continuing(
        _ lab: HandoffLab, offset: Int, length: Int, folder: URL
    ) async throws -> HostCommand {
        let program = try lab.startProgram(
            2, [Lab.product("document-probe"), "continue", folder.path, "\(offset)", "\(length)"])
        try await program.program.line(within: .seconds(20)) { $0 == "connected" }
        return program
    }

    private func offering(_ lab: HandoffLab, _ arguments: String...) async throws -> HostCommand {
        let program = try lab.startProgram(1, [Lab.product("document-probe"), "offer"] + arguments)
        try await eventually("it is offered") { try await lab.run(2, "activities", "--json").events.count == 1 }
        return program
    }

    @Test("A range at the end of a document over a slow link is here long before the document")
    func rangeFirst() async throws {
        let seed: UInt64 = 81
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let size = 20_000_000
        let document = try lab.document("big.bin", bytes: size, seed: seed)
        let folder = try lab.destination("inbox")
        let scratch = try lab.destination("scratch")
        let origin = try await offering(lab, document.path)
        let application = try await continuing(lab, offset: size - 65_536, length: 65_536, folder: scratch)
        try lab.lab.command("rate", "1", "20")
        let accepting = try lab.start(2, "accept", "--json", "--to", folder.path)
        let clock = ContinuousClock()
        try await application.program.line(within: .seconds(30)) { $0 == "opened \(size)" }
        let opened = clock.now
        try await application.program.line(within: .seconds(30)) { $0.hasPrefix("read ") }
        let read = clock.now - opened
        #expect(try lab.contents(of: folder).filter { !$0.hasPrefix(".") }.isEmpty)
        try await application.program.line(within: .seconds(60)) { $0.hasPrefix("arrived ") }
        let arrived = clock.now - opened
        print("a range of 64 KiB at the end after \(read), the document after \(arrived)")
        #expect(read < arrived, "\(read), \(arrived)")
        try await application.program.line { $0 == "again true" }
        #expect(application.program.lines.contains { $0.hasPrefix("read 65536 bytes") && $0.hasSuffix("early") })
        #expect(application.program.lines.contains("restored cursor true"))
        let range = try Data(contentsOf: scratch.appendingPathComponent("range"))
        #expect(range == (try Data(contentsOf: document)).suffix(65_536), "seed \(seed)")

        // The document is whole, the user info names it, and it may be used; nothing else of this device may.
        let path = folder.appendingPathComponent("big.bin").path
        #expect(FileManager.default.contentsEqual(atPath: path, andPath: document.path), "seed \(seed)")
        #expect(
            application.program.lines.contains("url NSUserActivityDocumentURL file://\(path) allowed"),
            "\(application.program.lines)")
        #expect(application.program.lines.contains("passwd refused"))
        #expect(try await accepting.end().status == 0)
        try await origin.program.line { $0 == "continued by desktop" }
        #expect(origin.program.lines.contains("saving"))
        #expect(!origin.program.lines.contains { $0.hasPrefix("failed") }, "\(origin.program.lines)")
        application.program.closeInput()
        origin.program.closeInput()
        #expect(try await application.end().status == 0)
        #expect(try await origin.end().status == 0)
    }

    @Test("A document in a folder that both share is used where it is, and other files of it are the same files")
    func shared() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let here = try lab.destination("here")
        let there = try lab.destination("there")
        for (folder, text) in [(here, "here"), (there, "there!")] {
            try Data(text.utf8).write(to: folder.appendingPathComponent("a b.txt"))
            try Data(text.utf8).write(to: folder.appendingPathComponent("other.txt"))
        }
        #expect(try await lab.run(1, "roots", "add", "Documents", here.path).status == 0)
        _ = try await lab.startNodes()
        let folder = try lab.destination("inbox")
        let origin = try await offering(
            lab, here.appendingPathComponent("a b.txt").path, "other=\(here.path)/other.txt")
        let application = try await continuing(lab, offset: 0, length: 100, folder: lab.folder)

        // The other device does not know the folder: it is told what to do, and so is the application.
        let refused = try await lab.run(2, "accept", "--json", "--to", folder.path)
        #expect(refused.status != 0)
        #expect(refused.events.last?.code == "accessRefused")
        #expect(refused.events.last?.message?.contains("`baton roots add Documents FOLDER`") == true)
        try await application.program.line { $0.hasPrefix("did fail 46005 “other” is a file in the folder") }

        #expect(try await lab.run(2, "roots", "add", "Documents", there.path).status == 0)
        let accepted = try await lab.run(2, "accept", "--json", "--to", folder.path)
        #expect(accepted.status == 0, "\(accepted.errors)")
        try await application.program.line { $0 == "again true" }
        let lines = application.program.lines
        let prefix = "file://\(there.path)"
        #expect(lines.contains("opened 6"), "\(lines)")
        #expect(lines.contains { $0.hasPrefix("read 6 bytes") && $0.hasSuffix("local") }, "\(lines)")
        #expect(lines.contains("url NSUserActivityDocumentURL \(prefix)/a%20b.txt allowed"), "\(lines)")
        #expect(lines.contains("url other \(prefix)/other.txt allowed"), "\(lines)")
        #expect(try lab.contents(of: folder).isEmpty)

        // Where the file is not in the folder, it is fetched.
        try FileManager.default.removeItem(at: there.appendingPathComponent("a b.txt"))
        let second = try await continuingAgain(lab, application, folder: folder)
        #expect(second.contains("url NSUserActivityDocumentURL file://\(folder.path)/a%20b.txt allowed"), "\(second)")
        #expect(try String(contentsOf: folder.appendingPathComponent("a b.txt"), encoding: .utf8) == "here")
        origin.program.closeInput()
        #expect(try await origin.end().status == 0)
    }

    /// Accepts once more with a new instance of the application.
    private func continuingAgain(
        _ lab: HandoffLab, _ old: HostCommand, folder: URL
    ) async throws -> [String] {
        old.program.closeInput()
        _ = try await old.end()
        let application = try await continuing(lab, offset: 0, length: 100, folder: lab.folder)
        let accepted = try await lab.run(2, "accept", "--json", "--to", folder.path)
        #expect(accepted.status == 0, "\(accepted.errors)")
        try await application.program.line { $0 == "again true" }
        return application.program.lines
    }
}
