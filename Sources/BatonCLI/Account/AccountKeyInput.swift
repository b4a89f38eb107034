// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import Glibc
import SystemPackage

/// Reads the account key: without echo at a terminal, else from the first line of standard input, or from a file.
enum AccountKeyInput {
    /// Asks, reads and checks. At a terminal it asks again until the key is right: ^C ends that.
    static func read(from file: FilePath?) async throws -> AccountKey {
        while true {
            let text = try await SecretInput.read(
                "account key", from: file, asking: "Account key: ", limit: AccountKey.maximumTextCount)
            do {
                return try AccountKey(parsing: text)
            } catch {
                guard file == nil, Terminal.isTerminal(.standardInput), text.count > 0 else {
                    throw CommandError.usage("\(error)")
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
            throw CommandError.usage("this is the key of another account: this device is in account \(account.id)")
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
}

/// A secret: what the user types at the terminal, else the first line of standard input or of a file.
private enum SecretInput {
    /// - Parameters:
    ///   - what: what it is, in a sentence.
    ///   - file: nil for standard input.
    static func read(
        _ what: String, from file: FilePath? = nil, asking question: String, limit: Int
    ) async throws -> SecretBytes {
        do {
            if let file { return try KeyFile.read(file, limit: limit) }
            guard Terminal.isTerminal(.standardInput) else {
                return try await ByteChannel(.standardInput).readSecret(limit: limit)
            }
            return try await HiddenInput.ask(question, limit: limit)
        } catch let error as SecretReadingError {
            throw CommandError.usage("the \(what) cannot be read: \(error)")
        }
    }
}

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
            guard Terminal.isTerminal(.standardInput) else { throw CommandError.usage(wrong) }
            Output.complain(wrong)
        }
    }

    /// Asks until the passphrase opens the key.
    static func require(
        for sealed: SealedAccountKey, of account: AccountID
    ) async throws -> (key: AccountKey, passphrase: SecretBytes) {
        guard let unlocked = try await unlock(sealed, of: account, asking: "Passphrase: ") else {
            throw CommandError.usage(wrong)
        }
        return unlocked
    }

    private static func ask(_ question: String) async throws -> SecretBytes {
        try await SecretInput.read("passphrase", asking: question, limit: SealedAccountKey.passphraseSizes.upperBound)
    }
}

/// A file that contains an account key, and that nobody else can read.
enum KeyFile {
    /// Reads the first line.
    ///
    /// - Throws: ``CommandError`` for a file that is missing, belongs to another user, or that others can read.
    static func read(_ path: FilePath, limit: Int) throws -> SecretBytes {
        let shown = path.shown
        let descriptor: FileDescriptor
        do {
            // Non-blocking, so that a pipe without a writer does not hang. It is refused below.
            descriptor = try FileDescriptor.open(path, .readOnly, options: [.nonBlocking, .closeOnExec])
        } catch {
            throw CommandError.usage("the key file \(shown) cannot be read: \(error)")
        }
        return try descriptor.closeAfter {
            let status = try descriptor.stat()
            guard status.type == .regular else {
                throw CommandError.usage("the key file \(shown) is not a file; pass another source on standard input")
            }
            guard status.userID.rawValue == geteuid() else {
                throw CommandError.usage("the key file \(shown) belongs to another user; use one of your own")
            }
            guard status.permissions.rawValue & 0o077 == 0 else {
                throw CommandError.usage(
                    "others can read the key file \(shown); make it yours alone first, with chmod 600")
            }
            return try SecretBytes(readingFrom: descriptor, limit: limit)
        }
    }
}

/// The check that no argument is an account key: other programs can read arguments.
enum AccountKeyArgument {
    /// Refuses arguments that contain a key, or that look like one. Call it before they are parsed: a parser's error
    /// could repeat the key, and end up in a log.
    static func refuse(in arguments: [String]) throws(CommandError) {
        let isWhole = AccountKey.isWhole(in: arguments.joined(separator: " ").utf8)
        guard isWhole || phrases(arguments).contains(where: { AccountKey.isBegun(in: $0) }) else { return }
        throw .usage(
            "an account key is never given as an argument, and this one may be in your shell's history and in the list"
                + " of processes now; type it when you are asked, or give it with --key-file or on standard input")
    }

    /// Joins arguments that have no option between them: a key may have been typed in groups. Names of files are left
    /// out, since they may begin like a key.
    private static func phrases(_ arguments: [String]) -> [String] {
        arguments.filter { !isFile($0) }.reduce(into: []) { phrases, argument in
            if argument.hasPrefix("-") || phrases.isEmpty {
                phrases.append(argument)
            } else {
                phrases[phrases.count - 1] += " " + argument
            }
        }
    }

    private static func isFile(_ argument: String) -> Bool {
        CommandArgument(argument: argument)?.path.withPlatformString { access($0, F_OK) == 0 } ?? false
    }
}
