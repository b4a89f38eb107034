// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol
import Crypto

/// The signed revocation lists that an account's devices hold.
///
/// States merge: the same lists give the same state, in whatever order and by whatever way they arrive.
///
/// - The list with the highest number wins. It alone says which generation of keys is current. Neither number nor
///   generation ever goes back.
/// - Several lists can have one number, if they were signed on devices that had not met. All are kept. Each has keys of
///   its own, all of them revoke, and the next list gets a number above them.
/// - A list with a lower number stays if it revokes a device that no higher list names. It was signed on a device that
///   did not know the higher list. It revokes and does nothing else, so that no order of meetings takes a revocation
///   back. The next list names every revoked device, and then the lower list goes.
package struct AccountState: Sendable, Equatable {
    /// The most lists that are held. More than one are signed apart, each by a person with the account key.
    package static let maximumLists = 16

    /// The most bytes that the lists have together.
    package static let maximumSize = 56 << 10
    package static let initial = AccountState(lists: [])

    /// The lists: the highest number first, and those of one number by rising digest.
    package let lists: [RevocationList]

    private init(lists: [RevocationList]) {
        self.lists = lists
    }

    /// The highest number among the lists; 0 without a list.
    package var number: UInt32 { lists.first?.number ?? 0 }

    /// The lists of the highest number. The keys of each are needed.
    package var current: ArraySlice<RevocationList> { lists.prefix { $0.number == number } }

    /// Whether lists were signed apart, and not brought together by another since. Until then a device that only one
    /// of them revoked may hold keys of another.
    package var isApart: Bool { lists.count > 1 }

    package var revoked: Set<DeviceID> { lists.reduce(into: []) { $0.formUnion($1.revoked) } }

    /// A number by which two devices compare their states. The upper half is ``number``, the lower half 32 bits of a
    /// hash over all lists. 0 without a list.
    package var revision: UInt64 {
        guard !lists.isEmpty else { return 0 }
        var bytes: [UInt8] = []
        for list in lists { bytes.append(bigEndian: list.digest.rawValue) }
        let hash = SHA256.hash(data: bytes).prefix(4).reduce(0) { $0 << 8 | UInt64($1) }
        return UInt64(number) << 32 | hash
    }

    /// This state merged with a list; equal to this state if the list has nothing new.
    ///
    /// - Throws: ``RevocationError/tooLarge`` if the result would pass a bound.
    package func merging(_ list: RevocationList) throws(RevocationError) -> AccountState {
        guard !lists.contains(list) else { return self }
        let all = (lists + [list]).sorted { $0.generation.precedes($1.generation) }
        var kept: [RevocationList] = []
        var named: Set<DeviceID> = []
        var rest = all[...]
        while let number = rest.first?.number {
            let peers = rest.prefix { $0.number == number }
            kept += peers.filter { number == all[0].number || !$0.revoked.isSubset(of: named) }
            for list in peers { named.formUnion(list.revoked) }
            rest = rest.dropFirst(peers.count)
        }
        guard kept.count <= Self.maximumLists, kept.reduce(0, { $0 + $1.encoded.count }) <= Self.maximumSize else {
            throw .tooLarge
        }
        return AccountState(lists: kept)
    }

    /// The next list: its number is above all lists here, and it revokes every device that they revoke.
    package func next(
        revoking devices: Set<DeviceID>, signedWith secrets: AccountSecrets
    ) throws(RevocationError) -> RevocationList {
        try RevocationList(number: number + 1, revoked: revoked.union(devices), signedWith: secrets)
    }
}

extension AccountState {
    private static let header = Array("baton account state/1".utf8)

    /// The form on disk: a header, then each list behind four bytes with its length.
    func encoded() -> [UInt8] {
        lists.reduce(into: Self.header) { bytes, list in
            bytes.append(bigEndian: UInt32(list.encoded.count))
            bytes += list.encoded
        }
    }

    /// Reads the form on disk, and verifies every list.
    init(decoding bytes: [UInt8], authority: AuthorityKey) throws(RevocationError) {
        guard bytes.starts(with: Self.header) else { throw .malformed }
        var rest = bytes.dropFirst(Self.header.count)
        var state = AccountState.initial
        while !rest.isEmpty {
            guard rest.count > 4 else { throw .malformed }
            let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(4)
            guard count <= rest.count else { throw .malformed }
            state = try state.merging(RevocationList(decoding: Array(rest.prefix(count)), authority: authority))
            rest = rest.dropFirst(count)
        }
        self = state
    }
}

/// A list and the keys of the generation that it begins.
package struct GivenList: Sendable {
    package let list: RevocationList

    /// Its keys; nil if the list has not the highest number.
    package let keys: GenerationKeys?

    /// A list from another device or the user. Nothing is verified before ``Account/take(_:)``.
    package init(_ list: RevocationList, keys: GenerationKeys?) {
        self.list = list
        self.keys = keys
    }
}

extension Account {
    /// Merges all lists of another device, or of the user, into this account.
    ///
    /// - Returns: whether they had anything new.
    /// - Throws: ``RevocationError``, such as `wrongKeys` if the keys of a list with the highest number are missing or
    ///   differ from its commitments. The account is unchanged then.
    package mutating func take(_ given: [GivenList]) throws(RevocationError) -> Bool {
        var merged = state
        for item in given { merged = try merged.merging(item.list) }
        guard merged != state else { return false }
        var all = keys
        for list in merged.current where !state.current.contains(list) {
            guard let new = given.first(where: { $0.list == list })?.keys, list.commits(to: new) else {
                throw .wrongKeys
            }
            all.append(new)
        }
        keys = Self.used(all.sorted { $0.id.precedes($1.id) })
        state = merged
        return true
    }

    /// Signs the next list, which revokes further devices, and merges it.
    ///
    /// - Returns: the list and its keys, for the other devices.
    package mutating func revoke(
        _ devices: Set<DeviceID>, with secrets: AccountSecrets
    ) throws(RevocationError) -> GivenList {
        let list = try state.next(revoking: devices, signedWith: secrets)
        let given = GivenList(list, keys: secrets.keys(generation: list.number, list: list.digest))
        _ = try take([given])
        return given
    }

    /// Everything that this device knows of the account's revocations, to be given to another.
    package var givenLists: [GivenList] {
        state.lists.map { list in GivenList(list, keys: keys.first { $0.id == list.generation && isCurrent(list) }) }
    }

    private func isCurrent(_ list: RevocationList) -> Bool { list.number == state.number }

    package func isRevoked(_ device: DeviceID) -> Bool { state.lists.contains { $0.revoked.contains(device) } }
}
