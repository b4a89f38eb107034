// SPDX-License-Identifier: Apache-2.0

import Glibc
package import SystemPackage

/// The account of this device, on disk: a folder (0700) of small files (0600).
///
/// | File | Content |
/// | --- | --- |
/// | `account.json` | format, account id, device name, current generation |
/// | `device-key.der` | this device's private key, PKCS#8 |
/// | `device-certificate.der`, `authority-certificate.der` | X.509 |
/// | `account-state` | the signed lists of ``AccountState``; none before the first revocation |
/// | `generation-0.keys` | K_adv, then K_gate: 64 bytes |
/// | `generation-<g>-<digest>.keys` | K_adv, K_gate, then K_join of the list with this digest: 96 bytes |
/// | `devices` | the other devices, from ``KnownDevices`` |
/// | `epoch` | the last epoch this device announced under, decimal |
/// | `replay` | the other devices' last advertisements, from ``ReplayGuard`` |
/// | `account-key` | the ``SealedAccountKey``; only where the account was made with a passphrase |
///
/// The account key is in none of them in the clear. The folder appears whole or not at all, and each file is replaced
/// atomically.
///
/// Calls block on the disk, so they are not for an event loop. The store keeps no state between calls. Create, join,
/// leave, rotate and take exclude each other across processes. They refuse while a node has the account's ``hold()``.
package struct AccountStore: Sendable {
    /// Where the account is; the folder itself appears when this device makes or joins an account.
    package let folder: FilePath

    package init(folder: FilePath) {
        self.folder = folder
    }

    /// Makes a new account with this device as its first.
    ///
    /// - Parameters:
    ///   - deviceName: At most 63 bytes of UTF-8; nil takes the host's name.
    ///   - passphrase: What the stored account key is encrypted under. If it is nil, no key is stored.
    ///   - show: Shows the account key to the user; no other code gets it. It runs before the account is stored. If it
    ///     throws, or the process ends meanwhile, no account remains whose key the user has not seen.
    package func create(
        deviceName: String? = nil, passphrase: SecretBytes? = nil,
        showing show: (AccountKey) throws(AccountError) -> Void
    ) throws(AccountError) -> Account {
        let key = AccountKey()
        let account = try begin(key, deviceName: deviceName).account
        // It takes a second, which is no time for a lock.
        let sealedKey = try passphrase.map { passphrase throws(AccountError) in
            try SealedAccountKey(key, under: passphrase)
        }
        return try finish(account, sealedKey) { () throws(AccountError) in try show(key) }
    }

    /// Makes this device's part of an account, in memory alone, so that the account's state can be looked for while
    /// the account key is at hand. ``finish(_:)`` stores it.
    ///
    /// - Parameter deviceName: At most 63 bytes of UTF-8; nil takes the host's name.
    package func begin(_ key: AccountKey, deviceName: String? = nil) throws(AccountError) -> Enrolment {
        let name: String
        if let deviceName { name = try DeviceName.validated(deviceName) } else { name = DeviceName.fromHost() }
        let secrets = AccountSecrets(key)
        return Enrolment(account: try Account(issuedBy: secrets, deviceName: name), secrets: secrets)
    }

    /// Stores an account that this device has joined.
    package func finish(_ account: Account) throws(AccountError) -> Account {
        try finish(account, nil) {}
    }

    private func finish(
        _ account: Account, _ sealedKey: SealedAccountKey?, show: () throws(AccountError) -> Void
    ) throws(AccountError) -> Account {
        try withExclusiveAccess { () throws(AccountError) in
            try refuseExisting()
            try place(account, sealedKey) { fresh throws(AccountError) in
                try show()
                // Onto an empty folder this succeeds, onto any other it fails: nothing is ever overwritten.
                try check(rename(fresh.string, folder.string), "make", folder)
            }
            return account
        }
    }

    /// Puts a new account, with a new key, in the place of this device's, under the same device name.
    ///
    /// - Parameters:
    ///   - passphrase: what the stored new key is encrypted under. If it is nil, no key is stored.
    ///   - show: shows the new key to the user. It runs before the old account goes: when it throws, nothing has
    ///     changed.
    package func rotate(
        passphrase: SecretBytes? = nil, showing show: (AccountKey) throws(AccountError) -> Void
    ) throws(AccountError) -> Account {
        let old = try load()
        let key = AccountKey()
        let account = try Account(issuedBy: AccountSecrets(key), deviceName: old.deviceName)
        let sealedKey = try passphrase.map { passphrase throws(AccountError) in
            try SealedAccountKey(key, under: passphrase)
        }
        try withoutNode { () throws(AccountError) in
            try place(account, sealedKey) { fresh throws(AccountError) in
                try show(key)
                let leaving = sibling("leaving")
                try check(rename(folder.string, leaving.string), "replace", folder)
                guard rename(fresh.string, folder.string) == 0 else {
                    let error = Errno(rawValue: errno)
                    _ = rename(leaving.string, folder.string)
                    throw .system(doing: "replace", path: folder, error: error)
                }
                try removeWiped(leaving)
            }
        }
        return account
    }

    /// Reads the account.
    ///
    /// - Throws: ``AccountError/noAccount``; ``AccountError/exposed(path:isFolder:)`` when others can read any of it;
    ///   ``AccountError/damaged(path:reason:)``.
    package func load() throws(AccountError) -> Account {
        guard let files = try AccountFolder.open(folder), try !files.names().isEmpty else { throw .noAccount }
        let record = try AccountRecord.read(in: files)
        let privateKey = try files.required(AccountFile.privateKey)
        let certificate = try files.required(AccountFile.certificate)
        let authority = try files.required(AccountFile.authority)
        guard
            let identity = DeviceIdentity(
                privateKey: privateKey, certificate: certificate.withUnsafeBytes { Array($0) },
                authorityCertificate: authority.withUnsafeBytes { Array($0) })
        else {
            throw .damaged(
                path: folder.appending(AccountFile.certificate), reason: "it does not belong to this device's key")
        }
        let state = try readState(of: identity, atLeast: record.generation, in: files)
        return Account(
            id: record.id, identity: identity, deviceName: record.deviceName, state: state,
            keys: try readKeys(of: state, in: files))
    }

    /// The account key, as this device keeps it; nil if it keeps none.
    package func sealedKey() throws(AccountError) -> SealedAccountKey? {
        let files = try openExisting()
        guard let bytes = try files.read(AccountFile.sealedKey) else { return nil }
        return try SealedAccountKey(
            decoding: bytes.withUnsafeBytes { Array($0) }, path: files.path.appending(AccountFile.sealedKey))
    }

    /// Removes the account from this device: every file is overwritten, then removed.
    ///
    /// The other devices keep theirs. Works on a damaged or exposed account as well.
    package func leave() throws(AccountError) {
        try withExclusiveAccess { () throws(AccountError) in
            // Looked at before anything moves: a link in the folder's place is not followed, and stays.
            guard let files = try AccountFolder.open(folder, checkingAccess: false) else { throw .noAccount }
            guard try files.lock() else { throw .nodeRunning }
            let leaving = sibling("leaving")
            guard rename(folder.string, leaving.string) == 0 else {
                let error = Errno(rawValue: errno)
                if error == .noSuchFileOrDirectory { throw .noAccount }
                throw .system(doing: "remove", path: folder, error: error)
            }
            try removeWiped(leaving)
        }
    }

    // MARK: - Enrolment

    /// Writes a new account's folder beside its place, and lets `move` put it there.
    private func place(
        _ account: Account, _ sealedKey: SealedAccountKey?, _ move: (FilePath) throws(AccountError) -> Void
    ) throws(AccountError) {
        let fresh = sibling("new")
        do throws(AccountError) {
            try write(account, sealedKey, into: fresh)
            try move(fresh)
        } catch {
            try? removeWiped(fresh)
            throw error
        }
        try AccountFolder.open(parent, checkingAccess: false)?.synchronize()
    }

    /// Refuses a device that has an account, damaged or not.
    package func refuseExisting() throws(AccountError) {
        if let files = try AccountFolder.open(folder, checkingAccess: false), try !files.names().isEmpty {
            throw .accountExists
        }
    }

    private func write(
        _ account: Account, _ sealedKey: SealedAccountKey?, into path: FilePath
    ) throws(AccountError) {
        try makeFolder(path)
        guard let files = try AccountFolder.open(path) else {
            throw .system(doing: "make", path: path, error: .noSuchFileOrDirectory)
        }
        let identity = account.identity
        try files.write(AccountFile.privateKey, identity.privateKey)
        try files.write(AccountFile.certificate, identity.certificate)
        try files.write(AccountFile.authority, identity.authorityCertificate)
        if let sealedKey { try files.write(AccountFile.sealedKey, sealedKey.encoded) }
        try write(stateOf: account, into: files)
    }
}
