// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import Foundation
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonDocuments
@testable import BatonNode
@testable import BatonTLS

/// Attacks of a malicious device of the account during a handoff that its victim's user wanted, and what a
/// listener sees of it.
@Suite("Attacks in a handoff", .timeLimit(.minutes(5)))
struct HandoffAttacks {
    /// How long an attack that is refused may take. The node itself needs less. Under the thread sanitizer the floods
    /// of other suites hold both threads of Swift's pool for up to a minute, and every deadline waits for them.
    private static let patience = Duration.seconds(240)
    private let scratch: ScratchFolder

    init() throws {
        scratch = try ScratchFolder("attack")
    }

    private func contents(of folder: URL) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    }

    /// CVE-2023-43617 (croc) and CVE-2024-38272 (Quick Share): the file gets another name than the user saw, here the
    /// name of a file that a shell runs at the next login.
    @Test("A hidden name in the place of the one that was listed", arguments: [".bashrc", ".profile", ".git"])
    func hiddenName(name: String) async throws {
        try await attack("a document listed as report.pdf comes as \(name)") {
            let folder = try scratch.folder(name)
            let origin = HostileOrigin(name: name, records: HostileOrigin.records("evil"))
            try await origin.tryToFetch(title: "report.pdf", into: folder)
            return Outcome(succeeds: try contents(of: folder).contains(name))
        }
    }

    /// A page opens in the user's browser, with what that is logged in to, and nobody looked at its address: user
    /// interface misrepresentation of critical information (CWE-451).
    @Test("A web page in the place of the document that was accepted")
    func pageForDocument() async throws {
        let accepted = WireActivitySummary.with {
            ($0.type, $0.title, $0.kind) = ("com.adobe.pdf", "report", .document)
        }
        let plan = Handoff.Plan(
            activity: accepted, origin: PeerName(id: "hostile", name: "laptop"), candidates: [], destination: nil)
        await attack("what was accepted as a document comes as an activity with a page") {
            var sent = accepted
            (sent.kind, sent.hasWebPage_p) = (.application, true)
            return Outcome(succeeds: (try? plan.requireAccepted(sent)) != nil)
        }
        try plan.requireAccepted(accepted)
    }

    /// The list changes between the user's look at it and the node's request at the accept. By its title a document is
    /// the same as a file of a shared folder, and may have a hidden name.
    @Test("A document that is called otherwise as soon as it is accepted", arguments: ["tax.pdf", ".profile"])
    func renamed(title: String) async throws {
        let origin = PeerName(id: "hostile", name: "laptop")
        func isTaken(_ kind: WireActivityKind, asShown shown: (title: String, kind: WireActivityKind)) -> Bool {
            let offered = WireActivitySummary.with { ($0.title, $0.kind) = (title, kind) }
            let request = WireAcceptRequest.with { ($0.shownTitle, $0.shownKind) = shown }
            return (try? ControlService.require(offered, of: origin, asShownIn: request)) != nil
        }
        await attack("what was shown as the document report.pdf is \(title)") {
            Outcome(succeeds: isTaken(.document, asShown: ("report.pdf", .document)))
        }
        await attack("what was shown as a note called so is the document \(title)") {
            Outcome(succeeds: isTaken(.document, asShown: (title, .application)))
        }
        for kind in [WireActivityKind.web, .application] {
            await attack("what was shown as the document \(title) is of kind \(kind), with a page that is opened") {
                Outcome(succeeds: isTaken(kind, asShown: (title, .document)))
            }
        }
        #expect(isTaken(.document, asShown: (title, .document)))
        #expect(isTaken(.web, asShown: ("a title of before", .web)))
    }

    /// The names of the other suite once more, all the way from the manifest to the disk.
    ///
    /// The name of a part begins with the name of its document, which here leads into a folder. That folder is there,
    /// because an earlier document can have brought it.
    @Test(
        "Names in a manifest that lead elsewhere",
        arguments: ["../victim", "../inner/victim", "inner/victim", "/an/absolute/path"])
    func namesInManifest(name: String) async throws {
        // Out of the destination, the kernel refuses it as well.
        try await attack("a document called \(name), on its whole way") {
            let place = try scratch.folder("place")
            let folder = place.appendingPathComponent("destination")
            let label = name.hasPrefix("/") ? place.path + "/victim" : name
            let part = folder.path + "/." + (label as NSString).deletingLastPathComponent
            for path in [place.path + "/inner", folder.path + "/inner", part] {
                try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            }
            // Shown with a dot as well, since some of these begin with one.
            try await HostileOrigin(name: label, records: HostileOrigin.records("evil")).tryToFetch(
                title: ".report", into: folder)
            return Outcome(
                succeeds: FileManager.default.fileExists(
                    atPath: name.hasPrefix("/") ? label : folder.path + "/" + name))
        }
    }

    @Test("Names in a manifest that are none", arguments: ["..", "", String(repeating: "a", count: 300)])
    func noNamesInManifest(name: String) async throws {
        let folder = try scratch.folder("names")
        let origin = HostileOrigin(name: name, records: HostileOrigin.records("evil"))
        await #expect(throws: HandoffError.self) { try await origin.fetch(title: ".report", into: folder) }
        #expect(try contents(of: folder).isEmpty)
    }

    /// An entry of a folder, as the manifest tells it.
    private static func entry(
        _ path: String, _ kind: WireDocumentEntryKind, to target: String = "", size: UInt64 = 4
    ) -> WireDocumentEntry {
        .with {
            $0.name = Data(path.utf8)
            $0.kind = kind
            $0.size = kind == .file ? size : 0
            $0.linkTarget = Data(target.utf8)
        }
    }

    /// Comes as a folder with these entries.
    private static func folder(_ entries: [WireDocumentEntry]) -> HostileOrigin {
        HostileOrigin(tree: [entry("holiday", .folder)] + entries, records: HostileOrigin.records("evil"))
    }

    /// Warpinator (CVE-2022-42725, CVE-2023-29380) wrote where the paths of a folder's entries led, as "Zip Slip"
    /// (Snyk, 2018) had shown of archives. Each folder on the way is in the manifest: all is in a folder that came
    /// before.
    @Test(
        "Path traversal in what is in a folder",
        arguments: [
            ["..", "../x"], ["a", "a/..", "a/../..", "a/../../x"], ["..", "../..", "../../x"],
            ["a", "a/..", "a/../..", "a/../../..", "a/../../../x"],
        ])
    func entryPaths(paths: [String]) async throws {
        let last = try #require(paths.last)
        let origin = Self.folder(paths.dropLast().map { Self.entry($0, .folder) } + [Self.entry(last, .file)])
        // Beside the folder, where the thread that writes may reach, or beside the destination, where it may not.
        let leaves = last.hasSuffix("../../x") && !last.hasPrefix("a") || last.hasSuffix("../../../x")
        // The check of its path, the kernel's and, outside of the destination, Landlock each refuse it.
        try await attack("a file in a folder, at \(last)") {
            let place = try scratch.folder("beside")
            let folder = place.appendingPathComponent("destination")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
            try await origin.tryToFetch(title: "holiday", into: folder)
            return Outcome(succeeds: try contents(of: leaves ? place : folder).contains("x"))
        }
    }

    /// A link that leads out of the folder, and is followed later by whoever opens it: CVE-2022-42725 (Warpinator),
    /// CVE-2025-4330's kind.
    @Test("A link in a folder that leads out of it", arguments: ["..", "/etc/passwd", "a/../../.bashrc"])
    func linkOutside(target: String) async throws {
        try await attack("a link to \(target) in a folder") {
            let folder = try scratch.folder("link")
            try await Self.folder([Self.entry("out", .link, to: target)]).tryToFetch(title: "holiday", into: folder)
            let link = folder.appendingPathComponent("holiday/out").path
            return Outcome(succeeds: (try? FileManager.default.destinationOfSymbolicLink(atPath: link)) == target)
        }
    }

    /// The other half of the same: what comes after the link is written through it.
    ///
    /// Each of these refuses it alone: links lead nowhere outside, and a link is no parent folder; no file is opened
    /// through a link; links are made after all files; and the kernel confines the thread to the destination. The file
    /// has no bytes, because such a file is made with the links, and any other before them.
    @Test("A link in a folder, and a file in the link", arguments: ["..", "../.."])
    func fileBehindLink(target: String) async throws {
        let origin = Self.folder([Self.entry("out", .link, to: target), Self.entry("out/x", .file, size: 0)])
        try await attack("a file in a link to \(target)") {
            let place = try scratch.folder("behind")
            let folder = place.appendingPathComponent("destination")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
            try await origin.tryToFetch(title: "holiday", into: folder)
            return Outcome(succeeds: try contents(of: target == "../.." ? place : folder).contains("x"))
        }
    }

    /// The content changes after the check: CWE-367. A rule that takes small texts took a folder of any number of
    /// entries.
    @Test("A folder in the place of what a rule has accepted", arguments: ["public.plain-text", "public.folder"])
    func folderByRule(type: String) async throws {
        let policy = try AcceptPolicy(parsing: Array("accept max=1MB to=/inbox".utf8))
        let isListed = type == "public.folder"
        let folders = (0..<(isListed ? 300 : 0)).map { Self.entry("\(1_000 + $0)", .folder) }
        try await attack("a folder of \(folders.count + 1) entries, where a rule takes 1 MB of \(type)") {
            let folder = try scratch.folder("rule")
            try await Self.folder(folders + [Self.entry("note", .file)]).tryToFetch(
                title: "holiday", type: type, by: policy.rules.first, into: folder)
            return Outcome(succeeds: try contents(of: folder) == ["holiday"])
        }
    }

    /// croc (CVE-2023-43616) and Warpinator believed what a sender said of size and content.
    @Test("A document that is not what the manifest says")
    func liesAboutContent() async throws {
        let whole = HostileOrigin.records("evil")
        let changed = [0, 0] + Array("evil".utf8) + HostileOrigin.records("good").suffix(16)
        let lies = [
            ("a changed byte", HostileOrigin(records: changed)),
            ("more than the manifest says", HostileOrigin(records: whole + [0])),
            ("less than all of it", HostileOrigin(records: Array(whole.dropLast()))),
            ("a size that is more than what comes", HostileOrigin(size: 5, records: whole)),
            ("a size that is less than what comes", HostileOrigin(size: 3, records: whole)),
            // The second file would be written in the place of the first.
            ("another in it", HostileOrigin(entries: 2, records: HostileOrigin.records("good") + whole)),
        ]
        for (name, lie) in lies {
            try await attack("a document with \(name)") {
                Outcome(succeeds: try await contents(after: lie, name) == ["report.pdf"])
            }
        }
        // No attacks, because nothing refuses them: without a description there is no document, and nobody can count in
        // numbers of bytes that are no offsets. The honest origin shows that a document would be seen.
        #expect(try await contents(after: HostileOrigin(entries: 0, records: whole), "undescribed").isEmpty)
        #expect(try await contents(after: HostileOrigin(size: .max, records: whole), "endless").isEmpty)
        #expect(try await contents(after: HostileOrigin(records: whole), "honest") == ["report.pdf"])
    }

    /// What is in a folder after a document of an origin was fetched into it.
    private func contents(after origin: HostileOrigin, _ name: String) async throws -> [String] {
        let folder = try scratch.folder(name)
        try await origin.tryToFetch(title: "report.pdf", into: folder)
        return try contents(of: folder)
    }

    /// A size that no disk has: the file has it, or the disk is full for everybody. Few file systems make such a file,
    /// so this one is in memory.
    @Test("A document of 2^62 bytes, of which four come")
    func liesAboutSize() async throws {
        let memory = URL(filePath: "/dev/shm/baton-attack-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: memory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: memory) }
        // The disk's room and the missing bytes each refuse it.
        try await attack("a document of 2^62 bytes, of which four come") {
            try await HostileOrigin(size: 1 << 62, records: HostileOrigin.records("evil")).tryToFetch(
                title: "report.pdf", into: memory)
            return Outcome(succeeds: try contents(of: memory) == ["report.pdf"])
        }
    }

    /// Slow loris in the body, from both sides: a device that stops in the middle of a document, or stops to read it.
    @Test("Slow loris in the body")
    func slowBody() async throws {
        try await attack("an origin that sends half of the document and stays") { defence in
            let folder = try scratch.folder("slow-\(defence)")
            let origin = HostileOrigin(records: Array(HostileOrigin.records("evil").prefix(3)), ends: false)
            return try await isStuck(after: defence.isOn ? Self.patience : .seconds(3)) {
                try await origin.fetch(
                    title: "report.pdf", into: folder, stallDeadline: defence.isOn ? .milliseconds(600) : .seconds(3600)
                )
            }
        }
        try await attack("an origin that sends a byte now and then") { defence in
            let origin = HostileOrigin(
                size: 100_000, records: [UInt8](repeating: 0, count: 100_016), drip: .milliseconds(50))
            // The time in which an origin may be silent does not end what stays for twice as long.
            let stall = defence.isOn ? 0.6 : 3
            let folder = try scratch.folder("dripping-\(defence)")
            return try await isStuck(after: defence.isOn ? Self.patience : .seconds(2 * stall)) {
                try await origin.fetch(
                    title: "report.pdf", into: folder, stallDeadline: .seconds(stall),
                    leastProgress: defence.isOn ? 16 << 10 : 0)
            }
        }
        try await attack("a device that asks for a document and reads nothing of it") { defence in
            let origin = try await Origin(
                bytes: 8 << 20, stallDeadline: defence.isOn ? .milliseconds(300) : .seconds(3600))
            let device = PeerName(id: "thief", name: "thief")
            let claim = try await origin.grantClaim(to: device)
            return try await isStuck(after: defence.isOn ? Self.patience : .seconds(3)) {
                try await origin.sendUnread(
                    .documentRanges(
                        .with {
                            $0.claimID = Data(claim.bytes)
                            $0.ranges = [.with { $0.count = 1 }]
                        }), to: device)
            }
        }
    }

    /// Slow loris towards who asks: what it tells of its older copy is read by nobody. CVE-2019-9517 (a peer that asks
    /// and does not read) with the parts exchanged.
    @Test("An origin that does not read what it is told")
    func unreadSignatures() async throws {
        // 4,600 pieces or so, which are 92 KB: what may wait to be sent holds 3,300.
        let copy = try scratch.file("copy.img", "")
        var chance = SeededGenerator(seed: 95)
        let part = Data(chance.bytes(8 << 20))
        try Data((0..<10).map { _ in part }.joined()).write(to: copy)
        try await attack("an origin that reads no signatures") { defence in
            let folder = try scratch.folder("unread-\(defence)")
            let origin = HostileOrigin(size: 64 << 20, records: [], ends: false, window: 1024)
            return try await isStuck(after: defence.isOn ? Self.patience : .seconds(10)) {
                try await origin.fetch(
                    title: "report.pdf", into: folder, copies: [FilePath(copy.path)],
                    stallDeadline: defence.isOn ? .milliseconds(600) : .seconds(3600))
            }
        }
    }

    /// Whether an operation has not ended after so long a time.
    private func isStuck(
        after time: Duration, _ operation: @escaping @Sendable () async throws -> Void
    ) async throws -> Outcome {
        try await withThrowingTaskGroup { group in
            group.addTask {
                // It does not matter here how it ends.
                try? await operation()
                return Outcome.refused
            }
            group.addTask {
                try await Task.sleep(for: time)
                return Outcome.succeeded
            }
            defer { group.cancelAll() }
            return try #require(try await group.next())
        }
    }

    /// LocalSend's first protocol was plain HTTP; Wireshark was all one needed (its versions before 1.8).
    @Test("A listener on the way of a handoff")
    func listener() async throws {
        let account = try TestAccount()
        try await attack("reading the payload from the connection") { defence in
            let wire = Wiretap()
            let contexts = try (account.devices[0].context(), account.devices[1].context())
            try wire.carry(
                Array("user info of a handoff".utf8), from: contexts.0, to: contexts.1, isSealed: defence.isOn)
            return Outcome(succeeds: wire.heard.holds(Array("user info of a handoff".utf8)))
        }
    }
}
