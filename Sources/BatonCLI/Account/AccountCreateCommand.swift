import ArgumentParser
import BatonAccount
import SystemPackage

/// `baton account create`
struct AccountCreateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Make an account with this device as its first.",
        discussion: """
            Prints the account key once, alone on standard output. It is not kept on this device: write it down, or \
            put it into a password manager, and type it on each further device.

            EXAMPLES:
              baton account create
              baton account create --name laptop
              (umask 077; baton account create > key) # for `baton account join --key-file key`
            """)

    @Option(name: .long, help: "What the other devices call this one. (default: the host's name)")
    var name: String?

    func run() throws {
        try Output.requireReader(of: "the account key")
        let store = CommandEnvironment.accountStore(try CommandEnvironment.home())
        let account: Account
        let key: AccountKey
        do {
            (account, key) = try store.create(deviceName: name.map(RawArguments.repaired))
        } catch {
            throw CommandError(error)
        }
        Output.say("This is the account key. It is shown this once and kept nowhere:")
        Output.say("")
        do {
            try Self.print(key)
        } catch {
            // Nobody has seen the key: an account that no device can join is of no use.
            try? store.leave()
            throw CommandError.failed("the key could not be printed (\(error)), so no account was made")
        }
        Output.say("")
        Output.say("Write it down. On each other device run `baton account join` and type it there.")
        Output.say("This device is \(SafeText.escaped(account.deviceName)). Start it with `baton node`.")
    }

    /// Prints the key from protected memory, without a `String`.
    static func print(_ key: AccountKey) throws {
        let text = key.formatted()
        let line = SecretBytes(count: text.count + 1) { target in
            text.withUnsafeBytes { target.copyMemory(from: $0) }
            target[text.count] = UInt8(ascii: "\n")
        }
        try line.withUnsafeBytes { bytes in
            _ = try FileDescriptor.standardOutput.writeAll(bytes)
        }
    }
}

extension CommandError {
    /// What is wrong with the account, or with what was said about it.
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
