// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import BatonCLI

/// The built command at a terminal, with an account whose key is kept under a passphrase.
@Suite("The passphrase of the account key", .timeLimit(.minutes(5)))
final class PassphraseTests {
    private static let passphrase = "correct horse battery staple"
    private static let unlocking = "Passphrase (Enter alone to type the account key): "

    private let home = FileManager.default.temporaryDirectory.path + "/baton-passphrase-\(UUID().uuidString)"
    private let key: String
    private let created: String

    init() throws {
        let made = try TerminalDialogue.run(
            ["account", "create", "--name", "laptop"], home: home,
            answers: [
                ("Passphrase: ", "short"), ("Passphrase: ", Self.passphrase), ("Once more: ", "another one"),
                ("Passphrase: ", Self.passphrase), ("Once more: ", Self.passphrase),
            ])
        try #require(made.status == 0, "\(made.shown)")
        created = made.shown
        key = try #require(made.shown.firstMatch(of: /baton1(-[0-9a-z]{1,4})+/)).output.0.description
    }

    deinit { try? FileManager.default.removeItem(atPath: home) }

    @Test("It is chosen twice, and no line of the dialogue is wider than a terminal")
    func choosing() {
        #expect(created.contains("baton: a passphrase has at least 8 characters: choose a longer one"))
        #expect(created.contains("baton: the two are not the same: type both again"))
        #expect(created.contains("This is the account key, for the day when you lose this device:"))
        #expect(created.contains("Write it down. `baton account show --key` prints it again."))
        #expect(!created.contains("horse") && !created.contains("another one"))
        for line in created.split(whereSeparator: \.isNewline) { #expect(line.count <= 80, "\(line)") }
    }

    @Test("It prints the key again, and another passphrase does not")
    func showing() async throws {
        let asked = try TerminalDialogue.run(
            ["account", "show", "--key"], home: home,
            answers: [("Passphrase: ", "correct horse"), ("Passphrase: ", Self.passphrase)])
        #expect(asked.status == 0 && asked.shown.contains(key), "\(asked.shown)")
        #expect(asked.shown.contains("baton: this is not the passphrase"))

        let piped = try await BuiltCommand.run(["account", "show", "--key"], home: home, input: Self.passphrase + "\n")
        #expect(piped.status == 0 && piped.output == key + "\n", "\(piped.errors)")
        let wrong = try await BuiltCommand.run(["account", "show", "--key"], home: home, input: "wrong\n")
        #expect(wrong.status == ExitStatus.usage.rawValue && wrong.output.isEmpty)
        #expect(wrong.errors == "baton: this is not the passphrase\n")
        let empty = try await BuiltCommand.run(["account", "show", "--key"], home: home)
        #expect(empty.errors == "baton: the passphrase cannot be read: the input is empty\n")

        let shown = try await BuiltCommand.run(["account", "show"], home: home)
        #expect(shown.output.hasSuffix("key        kept here, under your passphrase\n"))
        let joined = home + "/joined"
        let join = try await BuiltCommand.run(["account", "join", "--no-wait"], home: joined, input: key)
        #expect(join.status == 0, "\(join.errors)")
        let other = try await BuiltCommand.run(["account", "show"], home: joined)
        #expect(other.output.hasSuffix("key        not kept here\n"))
        let none = try await BuiltCommand.run(["account", "show", "--key"], home: joined, input: Self.passphrase)
        #expect(none.status == ExitStatus.account.rawValue)
        #expect(none.errors.contains("the account key is not kept on this device: run this on the"), "\(none.errors)")
    }

    @Test("It locks a device out, and so does the key where the passphrase is forgotten")
    func revoking() async throws {
        let joined = home + "/joined"
        _ = try await BuiltCommand.run(["account", "join", "--no-wait"], home: joined, input: key)
        let shown = try await BuiltCommand.run(["account", "show", "--json"], home: joined)
        let id = String(shown.output.split(separator: "\"")[11])
        let revoked = try TerminalDialogue.run(
            ["devices", "revoke", id, "--yes"], home: home, answers: [(Self.unlocking, Self.passphrase)])
        #expect(revoked.status == 0 && revoked.shown.contains("is revoked"), "\(revoked.shown)")
        let again = try TerminalDialogue.run(
            ["devices", "revoke", id, "--yes"], home: home, answers: [(Self.unlocking, ""), ("Account key: ", key)])
        #expect(again.status == 0 && again.shown.contains("was revoked before"), "\(again.shown)")
        // The question was hidden. ^C ends the search behind it all the same.
        let left = try TerminalDialogue.run(
            ["devices", "revoke", String(repeating: "q", count: 32), "--yes"], home: home,
            answers: [(Self.unlocking, Self.passphrase), ("on other devices...\r\n", "\u{3}")])
        #expect(left.status == ExitStatus.interrupted.rawValue, "\(left.shown)")
        // A script gives the key, as before.
        let piped = try await BuiltCommand.run(["devices", "revoke", id, "--yes"], home: home, input: key)
        #expect(piped.status == 0, "\(piped.errors)")
    }

    @Test("It keeps the key of the account that takes the place of this one")
    func rotating() async throws {
        let wrong = try await BuiltCommand.run(["account", "rotate", "--yes"], home: home, input: key)
        #expect(wrong.status == ExitStatus.usage.rawValue && wrong.output.isEmpty)
        let rotated = try await BuiltCommand.run(
            ["account", "rotate", "--yes"], home: home, input: Self.passphrase + "\n")
        #expect(rotated.status == 0 && rotated.output != key + "\n", "\(rotated.errors)")
        let shown = try await BuiltCommand.run(["account", "show", "--key"], home: home, input: Self.passphrase)
        #expect(shown.output == rotated.output, "\(shown.errors)")
    }

    @Test("Enter alone keeps the key nowhere")
    func none() async throws {
        let other = home + "/other"
        let made = try TerminalDialogue.run(["account", "create"], home: other, answers: [("Passphrase: ", "")])
        #expect(made.status == 0 && made.shown.contains("It is shown this once and kept nowhere:"), "\(made.shown)")
        let shown = try await BuiltCommand.run(["account", "show"], home: other)
        #expect(shown.output.hasSuffix("key        not kept here\n"))
    }
}
