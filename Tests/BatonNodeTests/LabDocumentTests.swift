// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// Documents of applications between hosts: read before they are there, fetched, and shared in place.
@Suite(.serialized, .lab, .timeLimit(.minutes(3)))
struct LabDocumentTests {
    /// Two hosts, with an application each.
    private func continuing(
        _ lab: HandoffLab, on host: Int = 2, offset: Int, length: Int, folder: URL
    ) async throws -> HostCommand {
        let program = try lab.startProgram(
            host, [Lab.product("document-probe"), "continue", folder.path, "\(offset)", "\(length)"])
        try await program.program.line(within: .seconds(20)) { $0 == "connected" }
        return program
    }

    private func offering(
        _ lab: HandoffLab, on host: Int = 1, role: String = "offer", _ arguments: String...
    ) async throws -> HostCommand {
        let program = try lab.startProgram(host, [Lab.product("document-probe"), role] + arguments)
        try await eventually("it is offered") { try await lab.run(3 - host, "activities", "--json").events.count == 1 }
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
        // The document stood back for it: little of it came before, on the same link.
        let behind = try #require(application.program.lines.first { $0.hasPrefix("behind ") })
        let before = try #require(Int(behind.filter(\.isNumber)))
        #expect(before < size / 4, "\(behind)")
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

    @Test("Over a slow link what can be compressed crosses in fewer bytes, and what cannot in hardly more")
    func compression() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let size = 30_000_000
        var generator = SeededGenerator(seed: 86)
        let words = (0..<4096).map { _ in
            let letters = 3...Int.random(in: 3...9, using: &generator)
            return Data(letters.map { _ in UInt8.random(in: 97...104, using: &generator) })
        }
        var text = Data(capacity: size + 16)
        while text.count < size { text += words[Int.random(in: 0..<words.count, using: &generator)] + [0x20] }
        let book = lab.folder.appendingPathComponent("book.txt")
        try text.write(to: book)
        let inbox = try lab.destination("inbox")
        try lab.lab.command("rate", "1", "20")
        // Until the link is known to be slow much crosses as it is.
        for (document, bounds) in [
            (book, size / 10..<size * 7 / 10),
            (try lab.document("noise", bytes: size / 3, seed: 87), size / 3..<size * 11 / 30),
        ] {
            let offer = try await lab.offer(1, document.path)
            try await eventually("it is offered") {
                try await lab.run(2, "activities", "--json").events.contains { $0.id == offer.id }
            }
            let before = try await lab.sentBytes(1)
            let accepted = try await lab.start(2, "accept", offer.id, "--json", "--to", inbox.path).end(
                within: .seconds(120))
            #expect(accepted.status == 0, "\(accepted.errors)")
            let sent = Int(try await lab.sentBytes(1) - before)
            print("of \(document.lastPathComponent) \(sent) bytes were sent")
            #expect(bounds.contains(sent))
            let arrived = inbox.appendingPathComponent(document.lastPathComponent).path
            #expect(FileManager.default.contentsEqual(atPath: arrived, andPath: document.path))
            try await offer.command.end(by: SIGTERM)
        }
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

    @Test("A look at a document shows the other device's, also where this one has an older copy in a shared folder")
    func look() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let (here, there) = (try lab.destination("here"), try lab.destination("there"))
        for (host, folder, text) in [(1, here, "as it is now"), (2, there, "as it was before that")] {
            try Data(text.utf8).write(to: folder.appendingPathComponent("a.txt"))
            #expect(try await lab.run(host, "roots", "add", "Documents", folder.path).status == 0)
        }
        _ = try await lab.startNodes()
        let origin = try await offering(lab, here.appendingPathComponent("a.txt").path)
        let range = lab.folder.appendingPathComponent("range")
        let looking = try await lab.start(2, "accept", "--range", "0-100", output: range).end()
        #expect(looking.status == 0, "\(looking.errors)")
        #expect(try String(contentsOf: range, encoding: .utf8) == "as it is now")
        // Where it would be here is told all the same.
        let printed = try await lab.run(2, "accept", "--print")
        #expect(printed.lines.contains { $0.contains("file://\(there.path)/a.txt") }, "\(printed)")
        origin.program.closeInput()
        #expect(try await origin.end().status == 0)
    }

    @Test(
        "Links and .. in files of a shared folder count for what they lead to, in both directions", arguments: [1, 2])
    func links(origin host: Int) async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let other = 3 - host
        let here = try lab.destination("here")
        let there = try lab.destination("there")
        let elsewhere = try lab.destination("elsewhere")
        for (folder, text) in [(here, "here"), (there, "there!"), (elsewhere, "else")] {
            try FileManager.default.createDirectory(
                at: folder.appendingPathComponent("inner"), withIntermediateDirectories: false)
            for name in ["a.txt", "b.txt", "inner/c.txt"] {
                try Data(text.utf8).write(to: folder.appendingPathComponent(name))
            }
        }
        func link(_ name: String, in folder: URL, to target: String) throws {
            try FileManager.default.createSymbolicLink(
                atPath: folder.appendingPathComponent(name).path, withDestinationPath: target)
        }
        try link("inside", in: here, to: "inner/c.txt")
        try link("alias", in: here, to: "a.txt")
        try link("leak", in: here, to: "../elsewhere/a.txt")
        try link("into", in: elsewhere, to: here.path + "/inner")
        #expect(try await lab.run(host, "roots", "add", "Documents", here.path).status == 0)
        #expect(try await lab.run(other, "roots", "add", "Documents", there.path).status == 0)
        _ = try await lab.startNodes()
        let inbox = try lab.destination("inbox")

        // A link in the folder leads out of it: that file is outside, and not the one that goes along.
        let leaking = try lab.startProgram(
            host,
            [Lab.product("document-probe"), "offer", here.path + "/a.txt", "leak=\(here.path)/leak"])
        try await leaking.program.line { $0.hasPrefix("failed") && $0.contains("“leak” names a second file") }
        leaking.program.closeInput()
        #expect(try await leaking.end().status == 0)
        try await eventually("it is not offered") { try await lab.run(other, "activities", "--json").events.isEmpty }

        let origin = try await offering(
            lab, on: host, here.path + "/inner/../alias", "link=\(here.path)/inside",
            "dots=\(here.path)/inner/../b.txt", "into=\(elsewhere.path)/into/../inner/c.txt")
        let application = try await continuing(lab, on: other, offset: 0, length: 100, folder: lab.folder)
        // A busy machine hears late of the offer that failed, and that it has ended.
        let accepted = try await lab.run(other, "accept", "--wait", "30", "--json", "--to", inbox.path)
        #expect(accepted.status == 0, "\(accepted.errors)")
        try await application.program.line { $0 == "again true" }
        let lines = application.program.lines
        let prefix = "file://\(there.path)"
        #expect(lines.contains { $0.hasPrefix("read 6 bytes") && $0.hasSuffix("local") }, "\(lines)")
        for (key, place) in [
            ("NSUserActivityDocumentURL", "a.txt"), ("link", "inner/c.txt"), ("dots", "b.txt"), ("into", "inner/c.txt"),
        ] { #expect(lines.contains("url \(key) \(prefix)/\(place) allowed"), "\(lines)") }
        #expect(try lab.contents(of: inbox).isEmpty)

        // On the device that continues it, a link that leads out of the folder is not followed.
        try FileManager.default.removeItem(at: there.appendingPathComponent("b.txt"))
        try link("b.txt", in: there, to: "../elsewhere/b.txt")
        let refused = try await lab.run(other, "accept", "--wait", "30", "--json", "--to", inbox.path)
        #expect(refused.events.last?.code == "accessRefused", "\(refused)")
        #expect(refused.events.last?.message?.contains("“dots”") == true, "\(refused)")
        #expect(refused.events.last?.message?.contains("a link there leads out") == true, "\(refused)")
        try await application.program.line { $0.hasPrefix("did fail 46005 “dots”") }
        for program in [origin, application] {
            program.program.closeInput()
            #expect(try await program.end().status == 0)
        }
    }

    @Test("A document that threads move all the time is one file to who takes it over: content, name, key and title")
    func hammered() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let files = try ["a.txt", "b.txt"].map { name in
            let file = lab.folder.appendingPathComponent(name)
            try Data("this is \(name)".utf8).write(to: file)
            return file.path
        }
        let application = try await continuing(lab, offset: 0, length: 100, folder: lab.folder)
        let origin = try await offering(lab, role: "hammer", files[0], files[1])
        var start = 0
        var last = ""
        for round in 1...6 {
            let isLast = round == 6
            if isLast {
                origin.program.send("settle")
                try await origin.program.line { $0.hasPrefix("settled ") }
                let settled = try #require(origin.program.lines.last { $0.hasPrefix("settled ") })
                let words = settled.split(separator: " ", maxSplits: 3).map(String.init)
                #expect(words.count == 4 && words[1] == words[2] && words[3] == "in front", "\(settled)")
                last = words[1]
            }
            let inbox = try lab.destination("inbox \(round)")
            func accept() async throws -> HostCommand.Finished {
                try await lab.run(2, "accept", "--json", "--wait", "30", "--to", inbox.path)
            }
            var accepted = try await accept()
            // If it has moved since it was listed, nothing is given under the other name, and the user looks again.
            while accepted.errors.contains("look at it again") { accepted = try await accept() }
            #expect(accepted.status == 0, "\(accepted)\n\(origin.program.lines)")
            try await application.program.line(from: start) { $0 == "again true" }
            let lines = Array(application.program.lines[start...])
            start += lines.count
            let name = try #require(try lab.contents(of: inbox).first)
            if isLast { #expect(name == last) }
            let file = inbox.appendingPathComponent(name)
            #expect(try String(contentsOf: file, encoding: .utf8) == "this is \(name)", "round \(round)")
            #expect(lines.contains("arrived \(file.path)"), "\(lines)")
            #expect(lines.contains("title \(name)"), "\(lines)")
            let url = file.absoluteString
            #expect(lines.contains("url NSUserActivityDocumentURL \(url) allowed"), "\(lines)")
        }
        #expect(!origin.program.lines.contains { $0.hasPrefix("failed") }, "\(origin.program.lines)")
        for program in [origin, application] {
            program.program.closeInput()
            #expect(try await program.end().status == 0)
        }
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
