// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonMessages
import BatonProtocol
import BatonTestSupport
import Foundation
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonCLI

@Suite("Command lines")
struct ParsingTests {
    @Test("accept")
    func accept() throws {
        let command = try AcceptCommand.parse([
            "3F2a", "--from", "laptop", "--wait", "1.5", "--to", "x", "--json",
        ])
        #expect(command.activity?.text == "3F2a")
        #expect(command.wait == 1.5)
        #expect(command.output.json)
    }

    @Test(
        "wrong usage is refused",
        arguments: [
            ["accept", "--wait", "x"], ["accept", "--wait=-1"], ["accept", "--wait", "nan"],
            ["accept", "--stream", "--print"], ["accept", "--stream", "--to", "x"], ["accept", "--print", "--to", "x"],
            ["accept", "--from", ""], ["withdraw", ""], ["accept", "--name", "a/b"], ["accept", "--name", ".."],
            ["accept", "--stream", "--name", "x"], ["accept", "--on-conflict", "replace"],
            ["accept", "--range", "0-1", "--on-conflict", "rename"],
            ["node", "--port", "1023"], ["node", "--port", "65536"],
            ["account", "join", "baton1-qqqq"], ["bogus"],
        ])
    func usage(_ arguments: [String]) {
        #expect(throws: (any Error).self) { try BatonCommand.parseAsRoot(arguments) }
    }

    @Test("an offer is one thing")
    func offers() throws {
        #expect(try OfferDraft(paths: ["x"]).documentPath?.lastComponent == "x")
        #expect(try OfferDraft(url: "https://swift.org").subject == .webPage("https://swift.org"))
        let draft = try OfferDraft(type: "org.example.a", title: "t", userInfo: #"{"a":1}"#, serve: "cat -n")
        #expect(draft.command?.arguments == [Array("-n".utf8)])
        let request = try draft.request()
        #expect(request.type == "org.example.a")
        #expect(request.supportsContinuationStreams)
        #expect(try UserInfo(request.userInfo) == ["a": 1])
        #expect(!request.needsSave)
        let page = try OfferDraft(url: "https://swift.org").request()
        #expect(page.webPageURL == "https://swift.org" && !page.needsSave)
    }

    @Test("several paths in one folder are one offer")
    func severalPaths() throws {
        let scratch = try ScratchFolder("several")
        defer { scratch.remove() }
        for name in ["notes.md", "drawing.svg", "photos/x"] { try scratch.write("text", to: name) }
        try FileManager.default.createSymbolicLink(atPath: scratch.path + "/same", withDestinationPath: scratch.path)
        func request(_ names: String..., title: String? = nil) throws -> WireOfferRequest {
            let paths = names.map { FilePath($0.hasPrefix("/") ? $0 : scratch.path + "/" + $0) }
            return try OfferDraft(paths: paths, title: title).request()
        }
        func refusal(_ names: String...) -> String {
            let paths = names.map { FilePath($0.hasPrefix("/") ? $0 : scratch.path + "/" + $0) }
            let error = #expect(throws: CommandError.self) { _ = try OfferDraft(paths: paths).warning() }
            return error?.message ?? ""
        }
        let several = try request("notes.md", "photos/", "./drawing.svg", "notes.md")
        #expect(several.documentPath.isEmpty && several.folderEntries.folder == Data(scratch.path.utf8))
        #expect(several.folderEntries.names == ["drawing.svg", "notes.md", "photos"].map { Data($0.utf8) })
        #expect(several.title == "notes.md and 2 more")
        #expect(try request("notes.md", "photos", title: "Trip").title == "Trip")
        // A folder may be written in several ways.
        #expect(try request("notes.md", "same/photos", "photos/../drawing.svg").folderEntries.names.count == 3)
        let one = try request("notes.md", "photos/../notes.md")
        #expect(one.documentPath == Data((scratch.path + "/notes.md").utf8))
        #expect(!one.hasFolderEntries && one.title.isEmpty)

        #expect(refusal("notes.md", "photos/x").hasSuffix("offer each by itself, or a folder that has both"))
        #expect(refusal("notes.md", ".").contains("different folders"))
        #expect(refusal("notes.md", "gone").contains("gone' does not exist"))
        #expect(refusal("/etc", "/tmp").contains("no name"))
        #expect(refusal("/etc", "/").contains("no name"))
        let many = #expect(throws: CommandError.self) { try OfferDraft(paths: (0...1000).map { FilePath("\($0)") }) }
        #expect(many?.message.hasPrefix("1001 paths are too many") == true)

        let command = try BatonCommand.parseAsRoot(["offer", "a", "--title", "t", "b"]) as? OfferCommand
        #expect(command?.paths.map(\.text) == ["a", "b"])
    }

    @Test("what cannot be offered is told why")
    func refusedOffers() {
        func refusal(_ make: @autoclosure () throws -> OfferDraft) -> CommandError? {
            #expect(throws: CommandError.self) {
                let draft = try make()
                _ = try (draft.warning(), draft.request())
            }
        }
        #expect(refusal(try OfferDraft())?.status == .usage)
        #expect(refusal(try OfferDraft(paths: ["a"], url: "https://a.b"))?.status == .usage)
        #expect(refusal(try OfferDraft(paths: ["a"], userInfo: "{}"))?.status == .usage)
        #expect(refusal(try OfferDraft(paths: ["a"], throughShell: true))?.status == .usage)
        #expect(refusal(try OfferDraft(url: "ftp://a.b"))?.status == .usage)
        #expect(refusal(try OfferDraft(url: "https://"))?.status == .usage)
        #expect(refusal(try OfferDraft(type: ""))?.status == .usage)
        #expect(refusal(try OfferDraft(type: "a b"))?.status == .usage)
        #expect(refusal(try OfferDraft(type: String(repeating: "a", count: 97)))?.status == .usage)
        #expect(refusal(try OfferDraft(type: "a", serve: " "))?.status == .usage)
        #expect(refusal(try OfferDraft(type: "a", userInfo: "@"))?.status == .usage)
        #expect(refusal(try OfferDraft(type: "a", userInfo: "@/nonexistent/file"))?.status == .usage)
        #expect(refusal(try OfferDraft(paths: ["/nonexistent/file"]))?.code == "documentUnreadable")
        #expect(refusal(try OfferDraft(paths: ["/"]))?.message.contains("folder") == true)
        #expect(refusal(try OfferDraft(paths: ["/dev/null"]))?.code == "documentUnreadable")
    }

    @Test("A `..` behind a link leads where the system says, and a link in last place keeps its name")
    func pathsThroughLinks() throws {
        let folder = try ScratchFolder("links")
        defer { folder.remove() }
        let files = FileManager.default
        try files.createDirectory(atPath: folder.path + "/data/v5", withIntermediateDirectories: true)
        try folder.write("meant", to: "data/report")
        try folder.write("other", to: "report")
        for (name, target) in [("cur", "data/v5"), ("data/latest", "report")] {
            try files.createSymbolicLink(atPath: folder.path + "/" + name, withDestinationPath: target)
        }
        func path(_ rest: String) -> FilePath { FilePath(folder.path + "/" + rest) }

        #expect(try OfferDraft(paths: [path("cur/../report")]).warning() == nil)
        let meant = try path("cur/../report").stat()
        for absolute in [
            CommandEnvironment.absolute(path("cur/../report")),
            try #require(try OfferDraft(paths: [path("cur/../report")]).documentPath),
        ] {
            let found = try absolute.stat()
            #expect(found.inode == meant.inode, "\(absolute)")
            #expect(!absolute.string.contains(".."))
        }
        #expect(CommandEnvironment.absolute(path("cur/../latest")).lastComponent == "latest")
        #expect(try path("cur/..").stat().inode == CommandEnvironment.absolute(path("cur/..")).stat().inode)
        // A path that does not exist stays as written. A path without `..` keeps its links.
        #expect(CommandEnvironment.absolute(path("none/../report")) == path("none/../report"))
        #expect(CommandEnvironment.absolute(path("./cur/./x")) == path("cur/x"))
        #expect(CommandEnvironment.absolute(FilePath("./x")).isAbsolute)
        #expect(CommandEnvironment.absolute(FilePath("/..")) == "/")
    }

    @Test("user info from a pipe is read once and can be asked for again; from a file it is read anew")
    func userInfoSources() throws {
        let folder = try ScratchFolder("info")
        defer { folder.remove() }
        try folder.write(#"{"a":1}"#, to: "info.json")
        let fromFile = try OfferDraft(type: "a", userInfo: "@\(folder.path)/info.json")
        #expect(try UserInfo(fromFile.request().userInfo) == ["a": 1])
        try folder.write(#"{"a":2}"#, to: "info.json")
        #expect(try UserInfo(fromFile.request().userInfo) == ["a": 2])

        let pipe = Pipe()
        try pipe.fileHandleForWriting.write(contentsOf: Data(#"{"a":3}"#.utf8))
        try pipe.fileHandleForWriting.close()
        let fromPipe = try OfferDraft(
            type: "a", userInfo: "@/dev/fd/\(pipe.fileHandleForReading.fileDescriptor)")
        for _ in 0..<2 { #expect(try UserInfo(fromPipe.request().userInfo) == ["a": 3]) }
    }

    @Test("over 3 KB of user info warns, over 48 KB fails")
    func sizes() throws {
        func draft(_ count: Int) throws -> OfferDraft {
            try OfferDraft(type: "a", userInfo: "{\"x\":\"\(String(repeating: "a", count: count))\"}")
        }
        #expect(try draft(3000).warning() == nil)
        #expect(try draft(3100).warning()?.contains("bytes") == true)
        #expect(throws: CommandError.self) { try draft(50_000).request() }
    }
}

@Suite("Exit status")
struct ExitStatusTests {
    @Test("numbers are distinct and in the help")
    func table() {
        #expect(Set(ExitStatus.allCases.map(\.rawValue)).count == ExitStatus.allCases.count)
        let help = BatonCommand.helpMessage(columns: 80)
        for status in ExitStatus.allCases { #expect(help.contains("\(status.rawValue)  \(status.meaning)")) }
    }

    @Test("no sentence of the help has a gap where a line was broken")
    func gaps() {
        func all(of command: any ParsableCommand.Type) -> [any ParsableCommand.Type] {
            [command] + command.configuration.subcommands.flatMap(all)
        }
        let commands = all(of: BatonCommand.self)
        #expect(commands.count > 20)
        for command in commands {
            let discussion = command.configuration.discussion
            #expect(discussion.firstMatch(of: #/[a-z,.] {8,}[a-z]/#) == nil, "\(command)")
        }
    }

    @Test("each failure has a name of its own and a status")
    func failures() {
        let known = WireFailure.Code.allCases.filter { $0 != .unspecified }
        #expect(Set(known.map(\.name)).count == known.count)
        #expect(WireFailure.Code.noSuchActivity.status == .noSuchActivity)
        #expect(WireFailure.Code.peerUnreachable.status == .unreachable)
        #expect(WireFailure.Code.refused.status == .refused)
        #expect(WireFailure.Code.destinationExists.status == .destination)
        #expect(WireFailure.Code.UNRECOGNIZED(99).status == .failed)
        #expect(known.allSatisfy { $0.status != .success })
    }

    @Test("what a peer says cannot reach the terminal raw")
    func escaped() {
        let error = CommandError(HandoffError(.claimHeld, "no\u{1B}[2J", device: "x\u{7}"))
        #expect(!error.message.unicodeScalars.contains { $0.isUnsafeToShow })
    }

    @Test("what a peer says cannot fill the terminal", arguments: ["x", "\u{301}", "\u{1B}"])
    func cut(_ piece: String) {
        func length(_ count: Int) -> Int {
            CommandError(HandoffError(.internal, String(repeating: piece, count: count))).message.unicodeScalars.count
        }
        #expect(length(64 << 10) == SafeText.sentenceBound + 1)
        #expect(length(3) < SafeText.sentenceBound)
        let full = String(repeating: "x", count: SafeText.sentenceBound)
        #expect(CommandError(HandoffError(.internal, full)).message == full)
    }

    @Test("an application that does not answer is no unreachable device, and one that declines no other account")
    func applications() {
        #expect(CommandError(HandoffError(.timedOut, "Notes did not answer within 5 s")).status == .failed)
        #expect(CommandError(HandoffError(.timedOut, "no answer", device: "laptop")).status == .unreachable)
        let declined = CommandError(HandoffError(.refused, "Notes declined: a dialog is open."))
        #expect(declined.message == "Notes declined: a dialog is open." && declined.status == .refused)
    }

    @Test("advice is added unless the failure says that it advises, whatever its last character is")
    func advice() {
        func message(_ text: String, advises: Bool) -> String {
            // The failure crosses the wire, as if another device had sent it.
            let failure = HandoffError(.corrupted, text, advises: advises).failure
            return CommandError(HandoffError(failure)).message
        }
        #expect(message("a chunk is damaged.", advises: false) == "a chunk is damaged.; accept it again")
        #expect(message("a chunk is damaged", advises: false) == "a chunk is damaged; accept it again")
        #expect(message("a chunk is damaged: try later", advises: true) == "a chunk is damaged: try later")
    }
}

@Suite("Which activity")
struct ActivityChoiceTests {
    private static func activity(_ id: UInt8, device: String, since: UInt64) -> ListedActivity {
        var summary = WireActivitySummary()
        summary.id = .init(repeating: id, count: 16)
        summary.since = since
        return ListedActivity(summary, device: device, deviceID: device + "id")
    }

    private static let all = [
        activity(0xAA, device: "Laptop", since: 5), activity(0xAB, device: "phone", since: 9),
        activity(0xBB, device: "Laptop", since: 7),
    ]

    @Test("by prefix, by device, the newest")
    func choices() {
        let all = Self.all
        #expect(ActivityChoice().pick(from: []) == [])
        #expect(ActivityChoice().pick(from: [all[0]]) == [all[0]])
        #expect(ActivityChoice().pick(from: all) == all)
        #expect(ActivityChoice(isLatest: true).pick(from: all) == [all[1]])
        #expect(ActivityChoice(name: ActivityName(text: "AA")).pick(from: all) == [all[0]])
        #expect(ActivityChoice(name: ActivityName(text: "a")).pick(from: all) == [all[0], all[1]])
        #expect(ActivityChoice(name: ActivityName(text: "c")).pick(from: all) == [])
        #expect(ActivityChoice(device: "laptop").pick(from: all) == [all[0], all[2]])
        #expect(ActivityChoice(isLatest: true, device: "LAPTOP").pick(from: all) == [all[2]])
        #expect(ActivityChoice(device: "phonei").pick(from: all) == [all[1]])
    }

    @Test("By title: an id counts before a title, a whole title before the beginning of one")
    func titles() {
        func activity(_ id: UInt8, _ title: String) -> ListedActivity {
            let summary = WireActivitySummary.with {
                $0.id = .init(repeating: id, count: 16)
                $0.title = title
            }
            return ListedActivity(summary, device: "phone", deviceID: "phoneid")
        }
        let all = [activity(0xAA, "Report"), activity(0xBB, "Report 2"), activity(0xCC, "aa, first draft")]
        func found(_ text: String) -> [ListedActivity] { ActivityName(text: text).matches(in: all) }
        #expect(found("report") == [all[0]] && found("report 2") == [all[1]])
        #expect(found("rep") == [all[0], all[1]])
        #expect(found("aa") == [all[0]] && found("aa,") == [all[2]])
        #expect(found("port").isEmpty)
        let choice = ActivityChoice(name: ActivityName(text: "x\u{1B}"), device: "phone")
        let error = choice.nothingFound(among: all, waited: nil)
        #expect(error.message.contains("from phone with an id or a title that begins with “x\\u{1b}”"))
    }

    @Test("Devices of one name are told apart by their ids, and others are not burdened with them")
    func names() {
        let names = DeviceNames([("laptop", "aaaaaaaabb"), ("laptop", "cccccccc"), ("phone", "dd"), ("phone", "dd")])
        #expect(names.shown("laptop", "aaaaaaaabb") == "laptop (aaaaaaaa)")
        #expect(names.shown("phone", "dd") == "phone")
        let same = [ListedActivity](
            [(UInt8(1), "aaaaaaaa"), (2, "bbbbbbbb")].map { id, device in
                ListedActivity(.with { $0.id = .init(repeating: id, count: 16) }, device: "laptop", deviceID: device)
            })
        let lines = ActivityRendering.lines(same, width: 100, now: 0)
        #expect(lines[1].contains("laptop (aaaaaaaa)") && lines[2].contains("laptop (bbbbbbbb)"), "\(lines)")
        #expect(ActivityChoice.ambiguous(same).message.contains("from laptop (bbbbbbbb)"))
    }

    @Test("nobody to ask gets the list")
    func ambiguous() {
        let error = ActivityChoice.ambiguous(Self.all)
        #expect(error.status == .usage)
        #expect(error.message.contains("aaaaaaaa") && error.message.contains("phone"))
        #expect(ActivityChoice().nothingFound(among: [], waited: nil).status == .noSuchActivity)
    }
}
