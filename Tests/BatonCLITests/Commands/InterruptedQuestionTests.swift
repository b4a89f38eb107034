// SPDX-License-Identifier: Apache-2.0

import BatonMessages
import BatonTestSupport
import BatonTransport
import Foundation
import SwiftProtobuf
import Testing

@testable import BatonCLI

/// ^C at each question of the built command that one device asks.
///
/// The questions of two devices that pair are in `LabPairingTests`.
@Suite("^C at a question", .timeLimit(.minutes(5)))
struct InterruptedQuestionTests {
    private enum Place { case noAccount, account, node }

    private typealias Case = (
        place: Place, command: [String], answers: [(question: String, answer: String)], question: String
    )

    private static let passphrase = "correct horse battery staple"
    private static let which = "Which one? (1-2) "
    private static let unlocking = "Passphrase (Enter alone to type the account key): "
    private static let confirming = "Type yes, or no to leave everything as it is: "
    private static let revoke = ["devices", "revoke", String(repeating: "q", count: 32)]

    /// Each question, behind the answers that lead to it.
    private static let cases: [Case] = [
        (.noAccount, [], [], which), (.noAccount, [], [(which, "1")], "Passphrase: "),
        (.noAccount, ["account", "create"], [], "Passphrase: "),
        (.noAccount, ["account", "create"], [("Passphrase: ", passphrase)], "Once more: "),
        (.noAccount, ["account", "join", "--key"], [], "Account key: "),
        (.account, ["account", "show", "--key"], [], "Passphrase: "), (.account, ["account", "invite"], [], unlocking),
        (.account, ["account", "invite"], [(unlocking, "")], "Account key: "),
        (.account, ["account", "leave"], [], confirming), (.account, ["account", "rotate"], [], confirming),
        (.account, ["account", "rotate"], [(confirming, "yes")], "Passphrase: "),
        (.account, revoke, [], confirming), (.account, revoke, [(confirming, "yes")], unlocking),
        (.account, revoke, [(confirming, "yes"), (unlocking, "")], "Account key: "),
        (.node, ["accept"], [], which), (.node, ["accept", "Note 1"], [], "Continue it in which? (1-2) "),
        (.node, ["accept", "Note 2"], [], "Continue it in which? (1-2) "),
    ]

    @Test("It ends the command, changes nothing, and leaves a terminal with echo")
    func interrupt() throws {
        let (node, scratch) = (try Self.node(), try ScratchFolder("questions"))
        let account = scratch.path + "/account"
        let made = try TerminalDialogue.run(
            ["account", "create"], home: account,
            answers: [("Passphrase: ", Self.passphrase), ("Once more: ", Self.passphrase)])
        try #require(made.status == 0, "\(made.shown)")
        for (place, command, answers, question) in Self.cases {
            let home =
                switch place {
                case .noAccount: scratch.path + "/none"
                case .account: account
                case .node: node.folder
                }
            let before = Self.content(of: home)
            let asked = try TerminalDialogue.run(command, home: home, answers: answers + [(question, "\u{3}")])
            // A terminal whose echo is off ends the dialogue with another status.
            #expect(asked.status == ExitStatus.interrupted.rawValue, "\(command) at \(question): \(asked.shown)")
            #expect(asked.shown.contains(question) && !asked.shown.contains("baton1"), "\(command): \(asked.shown)")
            #expect(Self.content(of: home) == before, "\(command) at \(question)")
            for line in asked.shown.split(whereSeparator: \.isNewline) { #expect(line.count <= 80, "\(line)") }
        }
    }

    /// A node that knows two activities. Two applications can continue each of them.
    private static func node() throws -> ScriptedNode {
        let applications = ["first", "second"].map { name in
            WireInstalledApplication.with { $0.identifier = "org.example.\(name)" }
        }
        return try ScriptedNode { request, stream, _ in
            switch request {
            case .activities:
                try await Script.send([Script.listing(1), Script.listing(2, kind: .web)], on: stream)
            case .accept(let request) where request.activityID.first == 1:
                try await stream.respond(.accept(.with { $0.choices = applications }))
                await stream.finish()
            case .accept:
                try await stream.respond(.accept(.with { $0.handoffID = Data(count: 16) }))
                try await stream.send(
                    record: WireAcceptEvent.with { $0.choose = .with { $0.applications = applications } })
                // Until the command has ended.
                _ = try? await stream.read()
            default: throw HandoffError(.unsupported, "not in this script")
            }
        }
    }

    /// The files in a folder, with their contents.
    private static func content(of folder: String) -> [String: Data] {
        ((try? FileManager.default.subpathsOfDirectory(atPath: folder)) ?? []).reduce(into: [:]) { content, path in
            content[path] = FileManager.default.contents(atPath: folder + "/" + path) ?? Data()
        }
    }
}
