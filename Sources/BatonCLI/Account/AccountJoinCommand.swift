import ArgumentParser
import BatonAccount
import SystemPackage

/// `baton account join`
struct AccountJoinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "join",
        abstract: "Make this device one of an account's.",
        discussion: """
            Asks for the account key without showing what you type. Where standard input is not a terminal, the key is \
            its first line. Case, spaces and dashes do not matter, and a mistyped key is found by its checksum.

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

    func run() async throws {
        let store = CommandEnvironment.accountStore(try CommandEnvironment.home())
        try Self.refuseExisting(store)
        let text = try await readKey()
        let key: AccountKey
        do {
            key = try AccountKey(parsing: text)
        } catch {
            throw CommandError(.usage, code: "accountKey", "\(error)")
        }
        do {
            let account = try store.join(key, deviceName: name)
            Output.say("This device, \(SafeText.escaped(account.deviceName)), is in account \(account.id) now.")
            Output.say("Compare the account id with `baton account show` on another device; start with `baton node`.")
        } catch {
            throw CommandError(error)
        }
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

    private func readKey() async throws -> SecretBytes {
        let limit = AccountKey.maximumTextCount
        do {
            if let keyFile { return try KeyFile.read(keyFile, limit: limit) }
            if Terminal.isTerminal(.standardInput) {
                return try await HiddenInput.ask("Account key: ", limit: limit)
            }
            return try await BlockingReader().readSecret(from: .standardInput, limit: limit)
        } catch let error as SecretReadingError {
            throw CommandError(.usage, code: "accountKey", "\(error)")
        }
    }
}
