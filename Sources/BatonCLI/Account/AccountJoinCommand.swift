// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BatonAccount
import BatonNode

/// `baton account join`
struct AccountJoinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "join",
        abstract: "Make this device one of an account's.",
        discussion: """
            Asks for the account key without showing what you type. Where standard input is not a terminal, the key is \
            its first line. Case, spaces and dashes do not matter, and a mistyped key is found by its checksum.

            Before the key is forgotten, other devices of the account are looked for, 3 s and up to 10 (30 where more is \
            announced than can be looked at), so that this one knows from the start who was revoked. Otherwise it learns that when it meets one who knows.

            The key is never an argument and never in the environment, where other programs could read it.

            EXAMPLES:
              baton account join
              baton account join --key-file key     # a file that only you can read: chmod 600 key
              pass show baton | baton account join
            """)

    @Option(name: .long, help: ArgumentHelp("Read the account key from a file of mode 0600.", valueName: "file"))
    var keyFile: String?

    @Option(name: .long, help: "What the other devices call this one. (default: the host's name)")
    var name: String?

    @Flag(name: .long, help: "Do not look for another device first.")
    var noWait = false

    /// How long another device is looked for.
    private static let patience = Duration.seconds(10)

    func run() async throws {
        let store = CommandEnvironment.accountStore(try CommandEnvironment.home())
        try Self.refuseExisting(store)
        do {
            let deviceName = name.map(RawArguments.repaired)
            // No variable holds the key: it is wiped when it has been used.
            var enrolment = try store.begin(try await AccountKeyInput.read(from: keyFile), deviceName: deviceName)
            let found = noWait ? nil : await Self.lookAround(enrolment)
            if let found { enrolment.account = found.account }
            let account = try store.finish(enrolment)
            if let found { try store.save(KnownDevices(found.met)) }
            Output.say("This device, \(SafeText.escaped(account.deviceName)), is in account \(account.id) now.")
            Output.say("Compare the account id with `baton account show` on another device; start with `baton node`.")
        } catch let error as AccountError {
            throw CommandError(error)
        }
    }

    /// The account with what other devices know of it, and these devices.
    private static func lookAround(_ enrolment: Enrolment) async -> AccountLookup.Outcome {
        Output.say("Looking for another device of the account, up to \(patience.components.seconds) s,")
        Output.say("or three times as long where the network is full of announcements...")
        let outcome = await AccountLookup(for: enrolment.account, with: enrolment.secrets).run(within: patience)
        for line in lines(of: outcome) { Output.say(line) }
        return outcome
    }

    /// What is said of a search.
    static func lines(of outcome: AccountLookup.Outcome) -> [String] {
        let later = "If a device was ever revoked, this one learns of it when it first meets another."
        var lines: [String] = []
        if !outcome.met.isEmpty {
            let names = Set(outcome.met.map { SafeText.escaped($0.name) }).sorted().joined(separator: ", ")
            switch outcome.account.state.revoked.count {
            case 0: lines.append("Asked \(names)" + (outcome.untaken == nil ? ": no device was revoked." : "."))
            case 1: lines.append("Asked \(names). Took over that 1 device was revoked.")
            case let count: lines.append("Asked \(names). Took over that \(count) devices were revoked.")
            }
        } else if let trouble = outcome.trouble {
            lines.append("No other device can be looked for (\(SafeText.escaped(trouble))). \(later)")
        } else {
            lines.append("No other device of the account answered. \(later)")
        }
        if let lack = outcome.lack(mendedBy: "run `baton account leave` here and join again") { lines.append(lack) }
        if outcome.isIncomplete {
            lines.append(outcome.incompleteness + (outcome.met.isEmpty ? "" : " " + later))
        }
        return lines
    }

    /// Before anyone types 39 characters for nothing.
    private static func refuseExisting(_ store: AccountStore) throws {
        do {
            _ = try store.load()
        } catch .noAccount {
            return
        } catch {
            throw CommandError(error)
        }
        throw CommandError(AccountError.accountExists(isSame: false))
    }
}

extension AccountLookup.Outcome {
    /// What is said where ``isIncomplete``.
    var incompleteness: String {
        "More devices are announced on this network than could be looked at: somebody may be making them up."
    }

    /// What is said where ``untaken`` names a device; nil where it names none.
    ///
    /// - Parameter step: what to do in the end.
    func lack(mendedBy step: String) -> String? {
        guard let untaken else { return nil }
        return """
            What \(SafeText.escaped(untaken.device.name)) told of revoked devices could not be taken over \
            (\(untaken.reason)), so this device may serve one that was revoked: install the newest Baton on both, then \
            \(step).
            """
    }
}
