// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import SystemPackage

/// The account's state on disk: the signed lists and the keys of each generation.
extension AccountStore {
    /// Merges lists into the stored account if no node runs on it.
    ///
    /// The account is read again first, since a node may have changed it after the caller read it.
    ///
    /// - Throws: ``AccountError``, `nodeRunning` if a node runs; ``RevocationError``.
    package func take(_ given: [GivenList]) throws {
        _ = try withoutNode { () throws(AccountError) in
            var account = try load()
            let taken = Result { () throws(RevocationError) in try account.take(given) }
            if case .success(true) = taken { try save(stateOf: account) }
            return taken
        }.get()
    }

    /// Gives this device another name.
    ///
    /// - Throws: ``AccountError/nodeRunning`` if a node runs: the node changes the name then.
    package func setDeviceName(_ name: String) throws(AccountError) {
        try withoutNode { () throws(AccountError) in
            var account = try load()
            account.deviceName = name
            try save(stateOf: account)
        }
    }

    /// Stores the state and keys of an account after a merge. The caller has the account's ``hold()``.
    ///
    /// Keys are written first, then the lists that need them. After a crash between the two the account is unchanged.
    package func save(stateOf account: Account) throws(AccountError) {
        try write(stateOf: account, into: try openExisting())
    }

    func write(stateOf account: Account, into files: borrowing AccountFolder) throws(AccountError) {
        for keys in account.keys {
            let name = AccountFile.keys(of: keys.id)
            if try files.read(name) != keys.concatenated { try files.write(name, keys.concatenated) }
        }
        if account.state != .initial { try files.write(AccountFile.state, account.state.encoded()) }
        try files.write(AccountFile.record, json: AccountRecord(account))
    }

    /// - Parameter generation: the generation that the record names. If its lists are missing, reading fails: a revoked
    ///   device would be welcome otherwise.
    func readState(
        of identity: DeviceIdentity, atLeast generation: UInt32, in files: borrowing AccountFolder
    ) throws(AccountError) -> AccountState {
        let path = files.path.appending(AccountFile.state)
        var state = AccountState.initial
        if let bytes = try files.read(AccountFile.state) {
            do {
                state = try AccountState(
                    decoding: bytes.withUnsafeBytes { Array($0) }, authority: identity.authorityKey)
            } catch {
                throw .damaged(path: path, reason: "\(error)")
            }
        }
        guard state.number >= generation else { throw .damaged(path: path, reason: "it is missing or too old") }
        return state
    }

    /// The keys of the lists with the highest number, and the older keys that are there; a device that joined late
    /// lacks some. Keys without a list are skipped: the write of that list was cut short.
    func readKeys(
        of state: AccountState, in files: borrowing AccountFolder
    ) throws(AccountError) -> [GenerationKeys] {
        let current =
            state.lists.isEmpty ? [GenerationID(number: 0, list: nil)] : state.current.map(\.generation)
        let older = try files.names().compactMap(AccountFile.generation(ofKeys:))
            .filter { $0.number < state.number }.sorted { $0.precedes($1) }
        var found: [GenerationKeys] = []
        for id in Account.used(current + older) {
            let bytes = try files.required(AccountFile.keys(of: id))
            guard let keys = GenerationKeys(id: id, concatenated: bytes) else {
                throw .damaged(
                    path: files.path.appending(AccountFile.keys(of: id)), reason: "it has \(bytes.count) bytes")
            }
            found.append(keys)
        }
        return found
    }
}

/// A device that is about to join. It lacks only the lists that the account's other devices know.
package struct Enrolment: Sendable {
    /// This device's part; ``Account/take(_:keys:)`` adds the account's state.
    package var account: Account

    /// The secrets derived from the account key. They go with this value.
    package let secrets: AccountSecrets
}
