// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BatonAccount

/// `baton account create`
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

    /// The next step of a user who has made an account.
    static let next = "`baton account invite` adds another device"

    func run() async throws {
        try await create()
        FirstRun.sayNext(Self.next)
    }

    /// Makes the account.
    func create() async throws {
        try Output.requireReader(of: "the account key")
        let store = CommandEnvironment.accountStore(try CommandEnvironment.home())
        do {
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
        } catch let error as AccountError {
            throw CommandError(error)
        }
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
    /// The failure of an operation on the account.
    init(_ error: AccountError) {
        let (status, code): (ExitStatus, String) =
            switch error {
            case .invalidDeviceName: (.usage, "account")
            case .nodeRunning: (.alreadyRunning, "alreadyRunning")
            case .noAccount, .accountExists, .busy, .exposed, .foreign, .damaged, .unknownFormat, .system,
                .cryptography:
                (.account, "account")
            }
        self.init(status, code: code, "\(error)")
    }
}
