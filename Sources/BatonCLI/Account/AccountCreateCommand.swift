// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BatonAccount
import SystemPackage

/// `baton account create`
struct AccountCreateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Make an account with this device as its first.",
        discussion: """
            Prints the account key once, alone on standard output. This device does not keep it: write it down, or put \
            it into a password manager. Type it on each further device.

            EXAMPLES:
              baton account create
              baton account create --name laptop
              (umask 077; baton account create > key) # for `baton account join --key-file key`
            """)

    @Option(name: .long, help: "What the other devices call this one. (default: the host's name)")
    var name: CommandArgument?

    func run() throws {
        try Output.requireReader(of: "the account key")
        let store = CommandEnvironment.accountStore(try CommandEnvironment.home())
        let account: Account
        do {
            account = try store.create(deviceName: name?.text) { key throws(AccountError) in
                try Self.show(key, as: "This is the account key.")
            }
        } catch {
            throw CommandError(error)
        }
        Output.say("Write it down. On each other device run `baton account join` and type it there.")
        Output.say("This device is \(SafeText.escaped(account.deviceName)). Start it with `baton node`.")
    }

    /// Prints the key from protected memory, without a `String`.
    ///
    /// - Throws: the reason that it cannot be written. A user who cannot read the key has no use for the account.
    static func show(_ key: AccountKey, as introduction: String) throws(AccountError) {
        Output.say("\(introduction) It is shown this once and kept nowhere:")
        Output.say("")
        let text = key.formatted()
        let line = SecretBytes(count: text.count + 1) { target in
            text.withUnsafeBytes { target.copyMemory(from: $0) }
            target[text.count] = UInt8(ascii: "\n")
        }
        do {
            _ = try line.withUnsafeBytes { try FileDescriptor.standardOutput.writeAll($0) }
        } catch {
            throw .system(doing: "print the key to", path: "standard output", error: error as? Errno ?? .ioError)
        }
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
