// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import SystemPackage

/// Reads the account key: without echo at a terminal, else from the first line of standard input, or from a file.
enum AccountKeyInput {
    /// Asks, reads and checks. At a terminal it asks again until the key is right: ^C ends that.
    static func read(from file: FilePath?) async throws -> AccountKey {
        while true {
            let text = try await text(from: file)
            do {
                return try AccountKey(parsing: text)
            } catch {
                guard file == nil, Terminal.isTerminal(.standardInput), text.count > 0 else {
                    throw CommandError(.usage, code: "accountKey", "\(error)")
                }
                Output.complain("\(error)")
            }
        }
    }

    /// Reads the key of this device's account, or the passphrase that this device keeps it under. It loads the account
    /// after that: while the user types, the node of this device may have received revocation lists.
    static func read(
        from file: FilePath?, of store: AccountStore
    ) async throws -> (secrets: AccountSecrets, account: Account) {
        let secrets = AccountSecrets(try await key(from: file, of: store))
        let account = try store.load()
        guard secrets.accountID == account.id else {
            throw CommandError(
                .usage, code: "accountKey",
                "this is the key of another account: this device is in account \(account.id)")
        }
        return (secrets, account)
    }

    private static func key(from file: FilePath?, of store: AccountStore) async throws -> AccountKey {
        guard file == nil, Terminal.isTerminal(.standardInput) else { return try await read(from: file) }
        if let sealed = try store.sealedKey() {
            let unlocked = try await PassphraseInput.unlock(
                sealed, of: store.load().id, asking: "Passphrase (Enter alone to type the account key): ")
            if let unlocked { return unlocked.key }
        } else {
            Output.say(
                "This device does not keep the account key: type it, or run this on the device that made the account.")
        }
        return try await read(from: nil)
    }

    private static func text(from file: FilePath?) async throws -> SecretBytes {
        let limit = AccountKey.maximumTextCount
        do {
            if let file { return try KeyFile.read(file, limit: limit) }
            if Terminal.isTerminal(.standardInput) {
                return try await HiddenInput.ask("Account key: ", limit: limit)
            }
            return try await BlockingReader().readSecret(from: .standardInput, limit: limit)
        } catch let error as SecretReadingError {
            throw CommandError(.usage, code: "accountKey", "the account key cannot be read: \(error)")
        }
    }
}
