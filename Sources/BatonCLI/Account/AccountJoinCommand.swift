// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BatonAccount
import BatonDocuments
import BatonNode
import SystemPackage

struct AccountJoinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "join",
        abstract: "Make this device one of an account's.",
        discussion: """
            Run `baton account invite` on a device of the account first. This command finds that invitation on the \
            network and shows six digits: type them on the inviting device. With --address it goes to the address that \
            the inviting device shows.

            With --key it asks for the account key, and does not show what you type. If standard input is no terminal, \
            the key is its first line. Case, spaces and dashes do not matter. A checksum detects a mistyped key.

            With the key it looks for other devices of the account, to learn which devices were revoked. That takes \
            3 to 10 s, and up to 30 s if the network is full of announcements. With --no-wait this device learns it \
            later, from the first device that knows.

            The key is never an argument and never in the environment: other programs can read both.

            EXAMPLES:
              baton account join
              baton account join --address 192.168.1.7
              baton account join --key
              baton account join --key-file key     # a file that only you can read: chmod 600 key
              pass show baton | baton account join
            """)

    @Option(
        name: .long,
        help: ArgumentHelp("Join by digits, with the device that invites there.", valueName: "host[:port]"))
    var address: CommandArgument?

    @Flag(name: .long, help: "Join by the account key instead of digits.")
    var key = false

    @Option(
        name: .long, help: ArgumentHelp("Read the account key from a file of mode 0600.", valueName: "file"),
        completion: .file())
    var keyFile: CommandArgument?

    @Option(name: .long, help: "What the other devices call this one. (default: the host's name)")
    var name: CommandArgument?

    @Flag(
        name: .shortAndLong,
        help: "With --address: ask nothing, and trust the device there. Only for a network without strangers.")
    var yes = false

    @Flag(name: .long, help: "Join by the account key, and do not look for another device first.")
    var noWait = false

    /// How long to look for another device: 10 s.
    private static let patience = Duration.seconds(10)

    static let next = "`baton devices` shows the others"

    func run() async throws {
        try await join()
        FirstRun.sayNext(Self.next)
    }

    func join() async throws {
        let store = CommandEnvironment.accountStore(try CommandEnvironment.home())
        try store.refuseExisting()
        let deviceName = try name?.deviceName
        guard joinsByKey else {
            let join = DigitsJoin(store: store, deviceName: deviceName, isConfirmed: yes)
            return try await join.run(at: address?.text)
        }
        if !saysKey {
            Output.say("Reading the account key from standard input. Over ssh, `ssh -t` joins by digits.")
        }
        // The key is in no variable, so that it is wiped after its use.
        var enrolment = try store.begin(try await AccountKeyInput.read(from: keyFile?.path), deviceName: deviceName)
        let found = noWait ? nil : await Self.lookAround(enrolment)
        if let found { enrolment.account = found.account }
        let account = try store.finish(enrolment.account)
        if let found { try store.save(KnownDevices(found.met)) }
        Output.say("This device, \(SafeText.escaped(account.deviceName)), is in account \(account.id) now.")
        Output.say("Compare the account id with `baton account show` on another device.")
    }

    func validate() throws {
        if yes, address == nil, !saysKey {
            throw ValidationError("--yes trusts the device that answers: say which one with --address")
        }
        if saysDigits, saysKey { throw ValidationError("--address and --yes join by digits, without a key") }
    }

    private var saysDigits: Bool { address != nil || yes }
    private var saysKey: Bool { key || keyFile != nil || noWait }

    /// In a pipe, the key is the first line, for scripts.
    private var joinsByKey: Bool { saysKey || !saysDigits && !Terminal.isTerminal(.standardInput) }

    /// Looks for other devices: returns them, and the account with the revocations that they know of.
    private static func lookAround(_ enrolment: Enrolment) async -> AccountLookup.Outcome {
        Output.say("Looking for another device of the account, up to \(patience.components.seconds) s,")
        Output.say("or three times as long where the network is full of announcements...")
        let outcome = await AccountLookup(for: enrolment.account, with: enrolment.secrets, within: patience).run()
        for line in lines(of: outcome) { Output.say(line) }
        return outcome
    }

    static func lines(of outcome: AccountLookup.Outcome) -> [String] {
        let later = "If a device was ever revoked, this one learns of it when it first meets another."
        var lines: [String] = []
        if !outcome.met.isEmpty {
            let names = Set(outcome.met.map { SafeText.escaped($0.name) }).sorted().joined(separator: ", ")
            switch outcome.account.state.revoked.count {
            case 0: lines.append("Asked \(names)" + (outcome.untaken == nil ? ": no device was revoked." : "."))
            case let count:
                let devices = "\(HumanUnits.count(count, "device")) \(count == 1 ? "was" : "were") revoked"
                lines.append("Asked \(names). They know that \(devices).")
            }
        } else if let trouble = outcome.trouble {
            lines.append("No other device can be looked for (\(SafeText.escaped(trouble))). \(later)")
        } else {
            lines.append("No other device of the account answered. \(later)")
        }
        let step = "run `baton account leave` here and join again"
        if let unused = outcome.unusedRevocations(fixedBy: step) { lines.append(unused) }
        if outcome.isIncomplete {
            lines.append(outcome.incompleteness + (outcome.met.isEmpty ? "" : " " + later))
        }
        return lines
    }
}

extension AccountLookup.Outcome {
    /// The sentence for a search that is ``isIncomplete``.
    var incompleteness: String {
        "More devices are announced on this network than could be checked: somebody may be inventing them."
    }

    /// The sentence about revocations that this device could not use; nil if there are none.
    ///
    /// - Parameter step: the last step of the advice.
    func unusedRevocations(fixedBy step: String) -> String? {
        guard let untaken else { return nil }
        return """
            The revocations that \(SafeText.escaped(untaken.device.name)) sent could not be used (\(untaken.reason)), \
            so this device may still serve a revoked one: install the newest Baton on both, then \(step).
            """
    }
}
