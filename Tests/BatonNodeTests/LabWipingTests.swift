// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonTestSupport
import Foundation
import SystemPackage
import Testing

/// Commands that handle the account key have it in memory only for as long as they need it. If it were left when they
/// end, it could be found in a page that nobody has wiped, or on a swap disk.
///
/// `Support/memory-search.py` looks through all of their memory. It searches for the key as text and as bytes, and for
/// the key of the account's authority. It also searches for the key that everything is derived from, in the form that
/// the hash takes as well.
@Suite(.serialized, .lab, .timeLimit(.minutes(5)))
struct LabWipingTests {
    private static let search = [
        "python3",
        URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Support/memory-search.py").path,
    ]

    /// What is in the memory of a command now.
    private func found(in command: HostCommand) async throws -> Set<Substring> {
        let told = command.program.lines.count
        command.program.send("look")
        let line = try await command.program.line(from: told, within: .seconds(60)) { $0.hasPrefix("found") }
        return Set(line.text.split(separator: " ").dropFirst())
    }

    /// Waits for the end of a command, and for nothing of the key to be left in its memory then.
    private func expectWiped(_ command: HostCommand) async throws {
        let ended = try await command.end(within: .seconds(60))
        #expect(ended.status == 0, "\(ended)")
        #expect(ended.lines.last == "left", "\(ended.lines.filter { !$0.hasPrefix("printed") })")
    }

    @Test(
        "Of the key that a command made nothing is in its memory when it ends, and it is before",
        arguments: [["create"], ["rotate", "--yes"]])
    func made(by command: [String]) async throws {
        let lab = try await HandoffLab(["laptop"])
        defer { lab.down() }
        // There is an account in the host's own home.
        let home = command == ["create"] ? lab.folder.appendingPathComponent("made") : nil
        let making = try lab.start(1, ["account"] + command, home: home, wrapper: Self.search)
        // Its output is full, so that it stands there.
        try await eventually("it has the key to print", within: .seconds(60)) {
            try await found(in: making).isSuperset(of: ["text", "secret"])
        }
        making.program.send("drain")
        try await expectWiped(making)
        #expect(making.program.lines.contains { $0.hasPrefix("printed baton1-") })
    }

    @Test("Of the key that was typed nothing is in a command's memory when it ends, and it is while it is needed")
    func typed() async throws {
        let lab = try await HandoffLab(["laptop"])
        defer { lab.down() }
        let key = try String(contentsOf: lab.keyFile, encoding: .utf8).trimmingCharacters(in: .newlines)
        let home = lab.folder.appendingPathComponent("joined")
        let joining = try lab.start(1, "account", "join", "--name", "phone", home: home, wrapper: Self.search)
        joining.program.send("type \(key)")
        try await eventually("it has what was typed", within: .seconds(60)) {
            try await found(in: joining).contains("text")
        }
        joining.program.send("enter")
        // For ten seconds it looks for other devices, and needs only the key that opens their announcements. The typed
        // text has been wiped, and the authority's key was wiped as soon as the certificate was signed.
        try await eventually("it has the key that opens what they announce, and nothing else") {
            try await found(in: joining) == ["root"]
        }
        try await expectWiped(joining)

        let shown = try await lab.run(1, "account", "show", "--json", home: home)
        let phone = try #require(shown.events.first?.deviceID)
        let revoking = try lab.start(1, "devices", "revoke", phone, "--yes", wrapper: Self.search)
        revoking.program.send("type \(key)")
        try await eventually("it has what was typed", within: .seconds(60)) {
            try await found(in: revoking).contains("text")
        }
        revoking.program.send("enter")
        try await expectWiped(revoking)
        #expect(revoking.errors.contains("is revoked"), "\(revoking.errors)")
    }

    @Test("Of the key that was read from a file nothing is in a command's memory when it ends")
    func readFromFile() async throws {
        let lab = try await HandoffLab(["laptop"])
        defer { lab.down() }
        let search = Self.search + ["--key-file", lab.keyFile.path]
        let home = lab.folder.appendingPathComponent("joined")
        let joining = try lab.start(
            1, "account", "join", "--name", "phone", "--key-file", lab.keyFile.path, home: home, wrapper: search)
        try await eventually("it has the key that opens what they announce, and nothing else") {
            try await found(in: joining) == ["root"]
        }
        try await expectWiped(joining)
        let phone = try #require(try await lab.run(1, "account", "show", "--json", home: home).events.first?.deviceID)
        try await expectWiped(
            try lab.start(
                1, "devices", "revoke", phone, "--yes", "--key-file", lab.keyFile.path, wrapper: search))
    }

    @Test("An inviter has the key until it has handed the account over, and a joiner by digits never has it")
    func paired() async throws {
        let lab = try await HandoffLab(members: 1)
        defer { lab.down() }
        let search = Self.search + ["--key-file", lab.keyFile.path]
        let inviting = try lab.start(
            1, "account", "invite", "--key-file", lab.keyFile.path, wrapper: search)
        try await eventually("it invites: \(inviting.errors)") { inviting.errors.contains("--address 10.77.0.1") }
        #expect(try await found(in: inviting) == ["root"])
        let joining = try lab.start(
            2, "account", "join", "--yes", "--address", "10.77.0.1", "--name", "desktop", wrapper: search)
        joining.program.send("drain")
        let printed = try await joining.program.line(within: .seconds(60)) { $0.hasPrefix("printed ") }.text
        #expect(try await found(in: joining).isEmpty)
        try await eventually("the user is asked: \(inviting.errors)") { inviting.errors.hasSuffix("its screen: ") }
        inviting.program.send("say \(printed.dropFirst("printed ".count))")
        try await expectWiped(joining)
        try await expectWiped(inviting)
        #expect(inviting.errors.contains("is in the account now"), "\(inviting.errors)")
    }

    @Test(
        "Of a key that was decrypted, and of its passphrase, nothing is in a command's memory when it ends",
        arguments: [["--key"], ["--key", "--qr"]])
    func decrypted(options: [String]) async throws {
        let lab = try await HandoffLab(members: 0)
        defer { lab.down() }
        let home = lab.folder.appendingPathComponent("kept")
        let passphrase = "correct horse battery staple"
        let secret = Array(passphrase.utf8).withUnsafeBytes { SecretBytes(copying: $0) }
        let store = AccountStore(folder: FilePath(home.appending(path: "state/account").path))
        _ = try store.create(deviceName: "laptop", passphrase: secret) { key throws(AccountError) in
            let text = key.formatted().withUnsafeBytes { Data($0) }
            guard FileManager.default.createFile(atPath: lab.keyFile.path, contents: text) else {
                throw .noAccount
            }
        }
        let search = Self.search + ["--key-file", lab.keyFile.path]
        let showing = try lab.start(1, ["account", "show"] + options, home: home, wrapper: search)
        showing.program.send("pass \(passphrase)")
        try await eventually("it has the key to print", within: .seconds(60)) {
            try await found(in: showing).isSuperset(of: ["text", "secret"])
        }
        showing.program.send("drain")
        try await expectWiped(showing)
        #expect(showing.program.lines.contains { $0.hasPrefix("printed baton1-") })
        #expect(showing.program.lines.contains { $0.contains("\u{2588}") } == options.contains("--qr"))
    }
}
