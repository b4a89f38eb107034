// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import SystemPackage

/// The account key as a user gives it: at the terminal without echo, as the first line of standard input, or in a file
/// that nobody else can read. Never as an argument and never in the environment.
enum AccountKeyInput {
    /// Asks, reads and checks.
    static func read(from file: String?) async throws -> AccountKey {
        let text = try await text(from: file)
        do {
            return try AccountKey(parsing: text)
        } catch {
            throw CommandError(.usage, code: "accountKey", "\(error)")
        }
    }

    /// The same of a key that has to be the account's of this device, and what this device has of the account then:
    /// while somebody was asked, and typed, its node may have taken lists over.
    static func read(
        from file: String?, of store: AccountStore
    ) async throws -> (secrets: AccountSecrets, account: Account) {
        let secrets = AccountSecrets(try await read(from: file))
        let account = try store.load()
        guard secrets.accountID == account.id else {
            throw CommandError(
                .usage, code: "accountKey",
                "this is the key of another account: this device is in account \(account.id)")
        }
        return (secrets, account)
    }

    private static func text(from file: String?) async throws -> SecretBytes {
        let limit = AccountKey.maximumTextCount
        do {
            if let file { return try KeyFile.read(file, limit: limit) }
            if Terminal.isTerminal(.standardInput) {
                return try await HiddenInput.ask("Account key: ", limit: limit)
            }
            return try await BlockingReader().readSecret(from: .standardInput, limit: limit)
        } catch let error as SecretReadingError {
            throw CommandError(.usage, code: "accountKey", "\(error)")
        }
    }
}
