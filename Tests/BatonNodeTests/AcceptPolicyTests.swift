// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTestSupport
import Foundation
import Logging
import Testing

import struct SystemPackage.FilePath

@testable import BatonNode

@Suite("Accept policy")
struct AcceptPolicyTests {
    private static let deviceID = DeviceID(ed25519PublicKey: [UInt8](repeating: 7, count: 32)).description

    private func parse(_ text: String) throws(ConfigurationError) -> AcceptPolicy {
        try AcceptPolicy(parsing: Array(text.utf8))
    }

    private func subject(
        device: String = "laptop", id: String = deviceID, type: String = "public.data", size: UInt64 = 1000,
        interfaces: Set<String> = ["wlan0"], addresses: [String] = ["192.168.1.7", "fe80::1"]
    ) -> AcceptPolicy.Subject {
        AcceptPolicy.Subject(
            deviceID: id, deviceName: device, type: type, size: size, interfaces: interfaces,
            addresses: addresses.compactMap { IPAddress($0) })
    }

    @Test("Without rules, and where none matches, everything is asked about")
    func asksByDefault() throws {
        #expect(AcceptPolicy().rule(for: subject()) == nil)
        for text in ["", "\n\n", "# accept to=/tmp\n", "accept device=other to=/tmp", "refuse type=org.example.*"] {
            #expect(try parse(text).rule(for: subject()) == nil, "\(text)")
        }
    }

    @Test("The first rule that matches decides")
    func firstWins() throws {
        let policy = try parse("ask device=laptop max=999\nrefuse max=1000\naccept to=/tmp\n")
        #expect(policy.rule(for: subject())?.action == .refuse)
        #expect(policy.rule(for: subject())?.line == 2)
        #expect(policy.rule(for: subject(size: 999))?.action == .ask)
        #expect(policy.rule(for: subject(size: 1001))?.destination == "/tmp")
        #expect(policy.refusal(of: subject()) != nil && policy.refusal(of: subject(size: 1001)) == nil)
    }

    @Test(
        "A condition matches what it says",
        arguments: [
            ("device=laptop", true), ("device=LAPTOP", true), ("device=lap", false), ("device=*", true),
            ("device=\(deviceID)", true), ("device=\(deviceID.uppercased())", true),
            ("device=\(deviceID.prefix(8))", false),
            ("type=public.data", true), ("type=Public.*", true), ("type=*.data", true), ("type=*c.d*a*", true),
            ("type=public", false), ("type=*.dat", false), ("type=p*c.text", false),
            ("max=1000", true), ("max=999", false), ("max=1KB", true), ("max=0.999KB", false), ("max=1KiB", true),
            ("max=0.976KiB", false), ("max=0.977KiB", true), ("max=16EB", nil), ("max=\"1 kb\"", true),
            ("max=18446744073709551615", true),
            ("network=wlan0", true), ("network=wlan1", false), ("network=192.168.1.0/24", true),
            ("network=192.168.1.7", true), ("network=192.168.1.8", false), ("network=192.168.2.0/23", false),
            ("network=192.168.1.200/25", false), ("network=192.168.1.100/25", true), ("network=0.0.0.0/0", true),
            ("network=fe80::/10", true), ("network=fec0::/10", false), ("network=::/0", true),
            ("network=192.168.1.0/33", nil), ("network=a/b", nil), ("network=interface-name-x", nil),
            ("device=laptop type=public.* max=2MB network=wlan0", true),
            ("device=laptop type=public.* max=2MB network=eth0", false),
        ] as [(String, Bool?)])
    func conditions(_ text: String, _ matches: Bool?) throws {
        guard let matches else {
            #expect(throws: ConfigurationError.self) { try parse("ask " + text) }
            return
        }
        let policy = try parse("refuse " + text)
        #expect((policy.refusal(of: subject()) != nil) == matches)
        #expect(try parse(policy.rules.map(\.description).joined(separator: "\n")) == policy)
    }

    @Test("No device takes another's place by calling itself by its id")
    func namesAreNoIDs() throws {
        let policy = try parse("accept device=\(Self.deviceID) to=/tmp")
        let other = DeviceID(ed25519PublicKey: [UInt8](repeating: 8, count: 32)).description
        #expect(policy.rule(for: subject(device: Self.deviceID, id: other)) == nil)
        #expect(policy.rule(for: subject(device: "any")) != nil)
    }

    @Test(
        "An error is told with its place",
        arguments: [
            ("allow", 1, "begins with accept, ask or refuse"), ("ask\n\n  ask devise=x", 3, "no condition"),
            ("ask device", 1, "NAME=VALUE"), ("ask device=", 1, "no value"),
            ("ask max=1 max=2", 1, "twice"), ("ask max=much", 1, "no size"),
            ("ask max=1.2345GB", 1, "no size"),
            ("accept device=laptop", 1, "to=FOLDER"), ("refuse to=/tmp", 1, "is for accept"),
            ("ask on-conflict=rename", 1, "is for accept"),
            ("accept to=/tmp on-conflict=replace", 1, "rename or fail"),
            ("accept to=Scans", 1, "begin with / or ~/"), ("ask device=\"a b", 1, "never closed"),
            ("ask device=a\u{1B}b", 1, "control character"), ("accept to=~anna/x", 1, "begin with"),
        ])
    func errors(_ text: String, _ line: Int, _ problem: String) {
        do {
            _ = try parse(text)
            Issue.record("\(text) was taken")
        } catch {
            #expect(error.line == line, "\(error)")
            #expect(error.problem.contains(problem), "\(error)")
        }
    }

    @Test("Comments, quotes, tabs and CR LF are understood; ~ is the user's folder")
    func writing() throws {
        let home = FilePath(try #require(ProcessInfo.processInfo.environment["HOME"]))
        let policy = try parse(
            "# all of it\r\n\taccept\tdevice=\"Anna's laptop\" to=\"~/My Scans\" # home\r\n")
        let rule = try #require(policy.rules.first)
        #expect(rule.line == 2 && rule.destination == home.appending("My Scans"))
        #expect(rule.description == "accept device=\"Anna's laptop\" to=\"~/My Scans\"")
        #expect(policy.rule(for: subject(device: "anna's laptop")) != nil)
        #expect(try parse("accept to=~").rules.first?.destination == home)
        #expect(try parse("accept to=/a//./b/").rules.first?.destination == "/a/b")
        // Where that leads if `a` is a link only the system knows.
        #expect(try parse("accept to=/a/../b/").rules.first?.destination == "/a/../b")
        #expect(throws: ConfigurationError.self) { try AcceptPolicy(parsing: [0x61, 0xFF]) }
    }

    @Test("There are at most 256 rules")
    func bound() throws {
        let full = String(repeating: "ask\n", count: AcceptPolicy.ruleBound)
        #expect(try parse(full).rules.count == AcceptPolicy.ruleBound)
        #expect(throws: ConfigurationError.self) { try parse(full + "ask") }
    }

    @Test("A wildcard agrees with its definition on random texts")
    func wildcards() {
        func matches(_ pattern: ArraySlice<Character>, _ text: ArraySlice<Character>) -> Bool {
            guard let first = pattern.first else { return text.isEmpty }
            if first == "*" {
                return (text.startIndex...text.endIndex).contains { matches(pattern.dropFirst(), text[$0...]) }
            }
            return text.first == first && matches(pattern.dropFirst(), text.dropFirst())
        }
        let seed = SeededGenerator.chosenSeed
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<20_000 {
            let pattern = (0..<Int.random(in: 0...6, using: &generator)).map { _ in
                "ab**".randomElement(using: &generator)!
            }
            let text = (0..<Int.random(in: 0...8, using: &generator)).map { _ in "ab".randomElement(using: &generator)!
            }
            #expect(
                Wildcard.matches(String(pattern), String(text)) == matches(pattern[...], text[...]),
                "seed \(seed): \(String(pattern)) \(String(text))")
        }
    }

    @Test("The answer of a device that is asked is held against the rule again")
    func heldAgain() throws {
        let rule = try #require(try parse("accept type=public.* max=1MB to=/tmp").rules.first)
        try rule.require(type: "public.text", size: 1_000_000)
        try rule.require(type: nil, size: 0)
        #expect(throws: (any Error).self) { try rule.require(type: "org.example.a", size: 1) }
        #expect(throws: (any Error).self) { try rule.require(type: "public.text", size: 1_000_001) }
    }

    @Test("A folder is nothing that was listed as a text, and each of its entries counts")
    func folders() throws {
        let rule = try #require(try parse("accept max=1MB to=/tmp").rules.first)
        func folder(of entries: Int) throws -> DocumentTree {
            var builder = DocumentTree.Builder(try DocumentLabel(Array("album".utf8)))
            try builder.append(DocumentEntry(path: .root, kind: .folder))
            for number in 1..<entries {
                let path = try EntryPath(Array("\(10_000 + number)".utf8))
                try builder.append(DocumentEntry(path: path, kind: .folder))
            }
            return try builder.finish()
        }
        let small = try folder(of: 3)
        for type in ["public.folder", "Public.Folder", "org.example.project"] {
            try DocumentService.refuseFolder(small, listedAs: type)
        }
        #expect(throws: HandoffError.self) { try DocumentService.refuseFolder(small, listedAs: "public.plain-text") }
        let bound = 1_000_000 / Int(AcceptPolicy.Rule.entrySize)
        func require(_ entries: Int) throws {
            try rule.require(type: nil, size: AcceptPolicy.Rule.size(of: try folder(of: entries)))
        }
        try require(1 + bound)
        #expect(throws: HandoffError.self) { try require(2 + bound) }
    }
}

@Suite("Accept policy file")
struct AcceptPolicyFileTests {
    private struct Scratch {
        private let root: ScratchFolder
        var folder: String { root.path }
        var path: FilePath { FilePath(folder + "/accept-policy") }
        var url: URL { URL(filePath: path.string, directoryHint: .notDirectory) }

        init() throws { root = try ScratchFolder("policy") }

        func write(_ text: String, mode: Int = 0o600) throws {
            try root.write(text, to: "accept-policy", mode: mode)
        }

        /// Makes a symbolic link in the file's place, or in another.
        func link(_ place: String? = nil, to target: String) throws {
            try FileManager.default.createSymbolicLink(atPath: place ?? path.string, withDestinationPath: target)
        }
    }

    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func keeper(of path: FilePath? = nil) throws -> PolicyKeeper {
        PolicyKeeper(
            path: path ?? scratch.path,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    @Test("With a mistake in it the file accepts nothing, and refuses what it refuses, in the order of its lines")
    func mistaken() async throws {
        let keeper = try keeper()
        func actions(_ activities: (device: String, type: String)...) async -> [AcceptPolicy.Action?] {
            let policy = await keeper.current()
            return activities.map { activity in
                policy.rule(
                    for: AcceptPolicy.Subject(
                        deviceID: String(repeating: "a", count: 32), deviceName: activity.device, type: activity.type,
                        size: 1, interfaces: [], addresses: [])
                )?.action
            }
        }
        let (text, note) = ("public.text", "org.example.note")
        let good = "accept device=scanner to=/scans\nask device=friend\nrefuse device=old\nrefuse type=org.example.*\n"
        try scratch.write(good)
        #expect(await actions(("scanner", text), ("old", text)) == [.accept, .refuse])
        for mistake in ["allow\n", "refuse max=lots\n", "refuse device=\"open\n", "refuse \u{1}\n"] {
            for content in [mistake + good, good + mistake] {
                try scratch.write(content)
                #expect(await keeper.currentProblem() != nil, "\(mistake)")
                #expect(await actions(("scanner", text), ("friend", note)) == [.ask, .ask], "\(mistake)")
                #expect(
                    await actions(("old", text), ("new", note), ("new", text)) == [.refuse, .refuse, nil],
                    "\(mistake)")
                let destinations = await keeper.current().rules.compactMap(\.destination)
                #expect(destinations.isEmpty)
            }
        }
        // One byte that is no UTF-8, and a rule too many.
        try Data(Array(good.utf8) + [0xFF]).write(to: URL(filePath: scratch.path.string))
        #expect(await keeper.currentProblem() != nil)
        #expect(await actions(("scanner", text), ("old", text)) == [.ask, .refuse])
        try scratch.write(good + String(repeating: "ask\n", count: AcceptPolicy.ruleBound))
        #expect(await keeper.currentProblem() != nil)
        #expect(await actions(("scanner", text), ("old", text)) == [.ask, .refuse])
        try scratch.write(good + "\n")
        #expect(await actions(("scanner", text)) == [.accept])
        #expect(await keeper.currentProblem() == nil)
    }

    @Test("A file that cannot be read, or that others could have written, leaves refused what was, and accepts nothing")
    func unreadable() async throws {
        let files = FileManager.default
        let keeper = try keeper()
        let good = "accept device=scanner to=/scans\nask device=friend\nrefuse device=old\n"
        let spoilers: [(String, () throws -> Void)] = [
            ("others could write to it", { try scratch.write("accept to=/theirs\n", mode: 0o620) }),
            ("a link leads nowhere", { try scratch.link(to: "nowhere") }),
            ("it is a folder", { try files.createDirectory(at: scratch.url, withIntermediateDirectories: false) }),
            ("it is too large", { try scratch.write(String(repeating: "#", count: ConfigurationFile.sizeBound + 1)) }),
        ]
        for (what, spoil) in spoilers {
            try scratch.write(good)
            #expect(await keeper.current().rules.map(\.action) == [.accept, .ask, .refuse])
            try files.removeItem(at: scratch.url)
            try spoil()
            #expect(await keeper.current().rules.map(\.action) == [.ask, .ask, .refuse], "\(what)")
            #expect(await keeper.current().rules.allSatisfy { $0.destination == nil }, "\(what)")
            #expect(await keeper.currentProblem() != nil, "\(what)")
            // A node that has just started does not know what the file refused.
            #expect(try await self.keeper().current().rules.isEmpty)
            try files.removeItem(at: scratch.url)
            #expect(await keeper.current().rules.isEmpty, "\(what)")
            #expect(await keeper.currentProblem() == nil, "\(what)")
        }
        // One mistake after another.
        try scratch.write(good + "allow\n")
        #expect(await keeper.current().rules.map(\.action) == [.ask, .ask, .refuse])
        try scratch.write(good, mode: 0o602)
        #expect(await keeper.current().rules.map(\.action) == [.ask, .ask, .refuse])
        try scratch.write("accept to=/theirs\n", mode: 0o602)
        #expect(await keeper.current().rules.map(\.action) == [.ask, .ask, .refuse])
        try scratch.write(good)
        #expect(await keeper.current().rules.map(\.action) == [.accept, .ask, .refuse])
    }

    @Test("The file is read again when it has changed, and accepts nothing while it is wrong")
    func changes() async throws {
        let keeper = try keeper()
        #expect(await keeper.current().rules.isEmpty)
        #expect(await keeper.currentProblem() == nil)
        try scratch.write("refuse device=a\n")
        #expect(await keeper.current().rules.count == 1)
        try scratch.write("accept to=/x\nallow\n")
        #expect(await keeper.current().rules.map(\.action) == [.ask])
        let problem = try #require(await keeper.currentProblem())
        #expect(problem.contains("accept-policy: line 2:"))
        try scratch.write("ask\nask\nask\n")
        #expect(await keeper.current().rules.count == 3)
        #expect(await keeper.currentProblem() == nil)
        try FileManager.default.removeItem(atPath: scratch.path.string)
        #expect(await keeper.current().rules.isEmpty)
    }

    @Test("A link that leads nowhere is a problem for as long as it is there, at the file's place or on the way to it")
    func deadEnds() async throws {
        let files = FileManager.default
        let keeper = try keeper()
        func problem() async -> Bool { await keeper.currentProblem()?.contains("leads nowhere") == true }
        #expect(await keeper.currentProblem() == nil)
        try scratch.link(to: "nowhere")
        #expect(await problem())
        try files.removeItem(atPath: scratch.path.string)
        #expect(await keeper.currentProblem() == nil)

        // What is behind it comes and goes, like a drive.
        let behind = scratch.folder + "/behind"
        try scratch.link(to: behind)
        #expect(await problem())
        try Data("refuse\n".utf8).write(to: URL(filePath: behind))
        #expect(await keeper.currentProblem() == nil)
        #expect(await keeper.current().rules.count == 1)
        try files.removeItem(atPath: behind)
        #expect(await problem())
        try files.removeItem(atPath: scratch.path.string)

        // The folder in its place, and one above that.
        let (folder, above) = (scratch.folder + "/folder", scratch.folder + "/above")
        for path in [folder + "/accept-policy", above + "/baton/accept-policy"] {
            let keeper = try self.keeper(of: FilePath(path))
            #expect(await keeper.currentProblem() == nil)
            let first = path.hasPrefix(folder) ? folder : above
            try scratch.link(first, to: "nowhere")
            let problem = try #require(await keeper.currentProblem())
            #expect(problem.contains("\(first), on the way to it, is a symbolic link that leads nowhere"))
            try files.removeItem(atPath: first)
            #expect(await keeper.currentProblem() == nil)
            // A link that leads to a folder without the file is no problem.
            try scratch.link(first, to: ".")
            #expect(await keeper.currentProblem() == nil)
            try files.removeItem(atPath: first)
        }
    }

    @Test("A file that others could have written, a large file and anything else than a file are not obeyed")
    func untrusted() throws {
        #expect(try AcceptPolicyFile.read(scratch.path) == nil)
        try scratch.write("ask", mode: 0o644)
        #expect(try AcceptPolicyFile.read(scratch.path)?.rules.count == 1)
        for mode in [0o620, 0o602] {
            try scratch.write("ask", mode: mode)
            #expect(throws: ConfigurationError.self) { try AcceptPolicyFile.read(scratch.path) }
        }
        try scratch.write(String(repeating: "#", count: ConfigurationFile.sizeBound))
        #expect(try AcceptPolicyFile.read(scratch.path)?.rules.isEmpty == true)
        try scratch.write(String(repeating: "#", count: ConfigurationFile.sizeBound + 1))
        #expect(throws: ConfigurationError.self) { try AcceptPolicyFile.read(scratch.path) }
        #expect(throws: ConfigurationError.self) { try AcceptPolicyFile.read(FilePath(scratch.folder)) }
        #expect(throws: ConfigurationError.self) { try AcceptPolicyFile.read("/dev/null") }
        // The refusals of a file do not vanish with a drive that is not there.
        let link = FilePath(scratch.folder).appending("link")
        try FileManager.default.createSymbolicLink(atPath: link.string, withDestinationPath: "nowhere")
        #expect(throws: ConfigurationError.self) { try AcceptPolicyFile.read(link) }
    }
}
