// SPDX-License-Identifier: Apache-2.0

import SystemPackage

/// The account's state on disk: the signed lists and the keys of each generation.
extension AccountStore {
    /// Takes lists where no node runs on the account that would.
    ///
    /// What is on the disk by now takes them: a node may have run since the caller read it.
    ///
    /// - Throws: ``AccountError``, `nodeRunning` where one runs; ``RevocationError``.
    package func take(_ given: [GivenList]) throws {
        _ = try withExclusiveAccess { () throws(AccountError) in
            try refuseNodeExclusively()
            var account = try load()
            let taken = Result { () throws(RevocationError) in try account.take(given) }
            if case .success(true) = taken { try save(stateOf: account) }
            return taken
        }.get()
    }

    /// Stores the state and keys of an account that took a list; for who has its ``hold()``.
    ///
    /// Keys first, then the lists that need them: after a crash between the two the account is what it was before.
    package func save(stateOf account: Account) throws(AccountError) {
        let files = try openExisting()
        try write(stateOf: account, into: files)
    }

    func write(stateOf account: Account, into files: borrowing AccountFolder) throws(AccountError) {
        for keys in account.keys {
            let name = AccountFile.keys(of: keys.id)
            if try files.read(name) != keys.concatenated { try files.write(name, keys.concatenated) }
        }
        if account.state != .initial { try files.write(AccountFile.state, account.state.encoded()) }
        try files.write(AccountFile.record, AccountRecord(account).encoded())
    }

    /// - Parameter generation: the one that the record names. Without the lists of it somebody who was revoked would
    ///   be welcome again.
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

    /// The keys of the lists that count most, and older ones where they are there: a device that joined late lacks
    /// them. Keys of a list that was never taken, because writing it was cut short, are passed over.
    func readKeys(
        of state: AccountState, in files: borrowing AccountFolder
    ) throws(AccountError) -> [GenerationKeys] {
        let current =
            state.lists.isEmpty ? [GenerationID(number: 0, list: nil)] : state.current.map(\.generation)
        let older = try files.names().compactMap(AccountFile.generation(ofKeys:))
            .filter { $0.number < state.number }.sorted { $0.precedes($1) }
        var found: [GenerationKeys] = []
        for id in Account.used(current + older) {
            let bytes = try required(AccountFile.keys(of: id), in: files)
            guard let keys = GenerationKeys(id: id, concatenated: bytes) else {
                throw .damaged(
                    path: files.path.appending(AccountFile.keys(of: id)), reason: "it has \(bytes.count) bytes")
            }
            found.append(keys)
        }
        return found
    }
}

/// A device that is about to join: everything but what the account's other devices know.
package struct Enrolment: Sendable {
    /// This device's part; ``Account/take(_:keys:)`` adds the account's state.
    package var account: Account

    /// What the account key is good for. Gone with this value.
    package let secrets: AccountSecrets
}
