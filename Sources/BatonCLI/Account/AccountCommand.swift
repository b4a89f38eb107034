// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonAccount
import BatonProtocol
import SystemPackage

/// `baton account`: the set of a person's devices.
struct AccountCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "account",
        abstract: "Make, extend, join, show, leave or replace the account that your devices share.",
        subcommands: [
            AccountCreateCommand.self, AccountInviteCommand.self, AccountJoinCommand.self, AccountShowCommand.self,
            AccountLeaveCommand.self, AccountRotateCommand.self,
        ])
}

struct AccountCreateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Make an account with this device as its first.",
        discussion: """
            Prints the account key, alone on standard output. Write it down, or put it into a password manager: it \
            adds a device when this one is lost.

            At a terminal it asks for a passphrase, and keeps the account key on this device, encrypted under it. \
            Without a passphrase, and if standard input or standard error is no terminal, no device keeps the key. \
            Then each command that adds or locks out a device asks for it.

            EXAMPLES:
              baton account create
              baton account create --name laptop
              (umask 077; baton account create > key) # for `baton account join --key-file key`
            """)

    @Option(name: .long, help: "What the other devices call this one. (default: the host's name)")
    var name: CommandArgument?

    static let next = "`baton account invite` adds another device"

    func run() async throws {
        try await create()
        FirstRun.sayNext(Self.next)
    }

    func create() async throws {
        try Output.requireReader(of: "the account key")
        let store = CommandEnvironment.accountStore(try CommandEnvironment.home())
        try store.refuseExisting()
        let deviceName = try name?.deviceName
        let passphrase = NumberedChoice.isPossible ? try await PassphraseInput.choose() : nil
        let account = try store.create(deviceName: deviceName, passphrase: passphrase) {
            key throws(AccountError) in
            try Self.show(key, under: Self.introduction("This is the account key", isKept: passphrase != nil))
        }
        if passphrase != nil {
            Output.say("Write it down. `baton account show --key` prints it again.")
        } else {
            Output.say("Write it down: adding or locking out a device asks for it.")
        }
        Output.say("This device is \(SafeText.escaped(account.deviceName)).")
    }

    /// The line above a new account key.
    static func introduction(_ subject: String, isKept: Bool) -> String {
        subject + (isKept ? ", for the day when you lose this device:" : ". It is shown this once and kept nowhere:")
    }

    /// Prints the key from protected memory, without a `String`.
    ///
    /// - Throws: the reason that it cannot be written. A user who cannot read the key has no use for the account.
    static func show(_ key: AccountKey, under introduction: String) throws(AccountError) {
        Output.say(introduction)
        Output.say("")
        let text = key.formatted()
        let line = SecretBytes(count: text.count + 1) { target in
            text.withUnsafeBytes { target.copyMemory(from: $0) }
            target[text.count] = UInt8(ascii: "\n")
        }
        try Output.secret(line)
        Output.say("")
    }
}

extension CommandError {
    init(_ error: AccountError) {
        let status: ExitStatus =
            switch error {
            case .invalidDeviceName: .usage
            case .nodeRunning: .alreadyRunning
            case .noAccount, .accountExists, .busy, .exposed, .foreign, .damaged, .unknownFormat, .system,
                .cryptography:
                .account
            }
        self.init(status, "\(error)")
    }
}

struct AccountShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show which account and which device this is, or the account key.",
        discussion: """
            Devices of one account show the same account id.

            With --key it asks for the passphrase of `baton account create`, and prints the account key, alone on \
            standard output. If standard input is no terminal, the passphrase is its first line. --qr draws the key \
            as a QR code below it.

            EXAMPLES:
              baton account show
              baton account show --json
              baton account show --key
              baton account show --key --qr
            """)

    @Flag(name: .long, help: "Print the account key, if this device keeps it.")
    var key = false

    @Flag(name: .long, help: "With --key: draw it as a QR code too.")
    var qr = false

    @OptionGroup var output: JSONOption

    func run() async throws {
        let store = CommandEnvironment.accountStore(try CommandEnvironment.home())
        let account = try store.load()
        let sealedKey = try store.sealedKey()
        if key { try await show(sealedKey, of: account) } else { try show(account, isKeyKept: sealedKey != nil) }
    }

    func validate() throws {
        if qr, !key { throw ValidationError("--qr goes with --key") }
        if key, output.json { throw ValidationError("--key prints the key alone: leave out --json") }
    }

    private func show(_ sealedKey: SealedAccountKey?, of account: Account) async throws {
        guard let sealedKey else {
            throw CommandError(
                .account, "the account key is not kept on this device: run this on the device that made the account")
        }
        let unlocked = try await PassphraseInput.require(for: sealedKey, of: account.id)
        // Before the key is printed, so that a missing library is said first.
        let drawing = qr ? try KeyCode.drawing(of: unlocked.key) : nil
        try AccountCreateCommand.show(unlocked.key, under: "This is the account key:")
        if let drawing { try Output.secret(drawing) }
    }

    private func show(_ account: Account, isKeyKept: Bool) throws {
        if output.json {
            try Output.line(
                [
                    .text("accountID", account.id.description), .text("device", account.deviceName),
                    .text("deviceID", account.identity.id.description), .flag("keyKept", isKeyKept),
                ].line)
        } else {
            try Output.line("account    \(account.id)")
            try Output.line("device     \(SafeText.escaped(account.deviceName))")
            try Output.line("device id  \(account.identity.id)")
            try Output.line("key        " + (isKeyKept ? "kept here, under your passphrase" : "not kept here"))
        }
    }
}

struct AccountLeaveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "leave",
        abstract: "Take this device out of its account.",
        discussion: """
            Removes this device's key and everything of the account from this device. The other devices stay in the \
            account. This one can join again like a new device.

            If this device keeps the account key, that goes too: `baton account show --key` prints it first.

            EXAMPLES:
              baton account leave
              baton account leave --yes     # without a question, for scripts
            """)

    @Flag(name: .shortAndLong, help: "Do not ask.")
    var yes = false

    func run() async throws {
        let store = CommandEnvironment.accountStore(try CommandEnvironment.home())
        try store.refuseNode()
        // A damaged account can be left as well.
        let keepsKey = (try? store.sealedKey()) != nil
        let key = "The account key on this device is removed too: `baton account show --key` prints it.\n"
        try await Confirmation.require(
            isGiven: yes, consequence: "this device can only join again like a new one",
            question: (keepsKey ? key : "") + "Leave the account?")
        try store.leave()
        Output.say("This device is in no account any more.")
    }
}

struct AccountRotateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate",
        abstract: "Replace this device's account, because its key leaked.",
        discussion: """
            Anyone who has the account key can add devices to the account, and no revocation keeps them out. This \
            command makes a new account with a new key and moves this device into it. It removes the old account from \
            this device. The new key is printed alone on standard output.

            A device that keeps the account key under a passphrase asks for it, and keeps the new key under the same \
            one. If standard input is no terminal, the passphrase is its first line.

            Each other device stays in the old account until you run `baton account leave` there, and `baton account \
            join` again. Until then it and this device do not see each other.

            To lock out a lost device, `baton devices revoke` is enough if nobody has the key.

            EXAMPLES:
              baton account rotate
              (umask 077; baton account rotate --yes > key)
            """)

    @Flag(name: .shortAndLong, help: "Do not ask.")
    var yes = false

    func run() async throws {
        try Output.requireReader(of: "the new account key")
        let store = CommandEnvironment.accountStore(try CommandEnvironment.home())
        let old = try store.load()
        let sealedKey = try store.sealedKey()
        try store.refuseNode()
        try await Confirmation.require(
            isGiven: yes,
            consequence: "the old account is removed from this device, and the others have to join the new one",
            question: """
                This removes the account \(old.id) from this device and makes a new one. Each other device has to \
                leave and join the new one before it sees this one again. Go on?
                """)
        var passphrase: SecretBytes?
        if let sealedKey { passphrase = try await PassphraseInput.require(for: sealedKey, of: old.id).passphrase }
        let new = try store.rotate(passphrase: passphrase) { key throws(AccountError) in
            try AccountCreateCommand.show(
                key,
                under: AccountCreateCommand.introduction(
                    "This is the new account key", isKept: passphrase != nil))
        }
        Output.say("Write it down. This device, \(SafeText.escaped(new.deviceName)), is in account \(new.id) now.")
        Output.say(
            """
            On each other device: stop the node (a service: `baton node uninstall`), run
            `baton account leave`, and then `baton` while `baton account invite` runs here.
            Start the node again here and there.
            """)
    }
}
