// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import SystemPackage

/// Asks for the passphrase that the account key is encrypted under on this device.
enum PassphraseInput {
    private static let wrong = "this is not the passphrase"

    /// Lets the user choose a passphrase at the terminal; nil for none.
    static func choose() async throws -> SecretBytes? {
        Output.say(
            """
            Choose a passphrase. The account key stays on this device, encrypted under it.
            It is asked for when you add a device or lock one out. Four random words are
            good. Enter alone keeps the key nowhere.
            """)
        while true {
            let first = try await ask("Passphrase: ")
            if first.count == 0 { return nil }
            guard first.count >= SealedAccountKey.passphraseSizes.lowerBound else {
                let least = SealedAccountKey.passphraseSizes.lowerBound
                Output.complain("a passphrase has at least \(least) characters: choose a longer one")
                continue
            }
            if try await ask("Once more: ") == first { return first }
            Output.complain("the two are not the same: type both again")
        }
    }

    /// Asks until the passphrase opens the key. If standard input is no terminal, its first line is the passphrase.
    ///
    /// - Returns: the key, and the passphrase that opened it; nil for an empty line.
    static func unlock(
        _ sealed: SealedAccountKey, of account: AccountID, asking question: String
    ) async throws -> (key: AccountKey, passphrase: SecretBytes)? {
        while true {
            let passphrase = try await ask(question)
            if passphrase.count == 0 { return nil }
            if let key = try sealed.open(with: passphrase, of: account) { return (key, passphrase) }
            guard Terminal.isTerminal(.standardInput) else { throw CommandError.passphrase(wrong) }
            Output.complain(wrong)
        }
    }

    /// Asks until the passphrase opens the key.
    static func require(
        for sealed: SealedAccountKey, of account: AccountID
    ) async throws -> (key: AccountKey, passphrase: SecretBytes) {
        guard let unlocked = try await unlock(sealed, of: account, asking: "Passphrase: ") else {
            throw CommandError.passphrase(wrong)
        }
        return unlocked
    }

    private static func ask(_ question: String) async throws -> SecretBytes {
        let limit = SealedAccountKey.passphraseSizes.upperBound
        do {
            if Terminal.isTerminal(.standardInput) { return try await HiddenInput.ask(question, limit: limit) }
            return try await BlockingReader().readSecret(from: .standardInput, limit: limit)
        } catch let error as SecretReadingError {
            throw CommandError.passphrase("the passphrase cannot be read: \(error)")
        }
    }
}

extension CommandError {
    fileprivate static func passphrase(_ message: String) -> CommandError {
        CommandError(.usage, code: "passphrase", message)
    }
}
