// SPDX-License-Identifier: Apache-2.0

package import BatonAccount
import BatonCore
package import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// The answer of a device about its revocation lists.
struct ToldState: Sendable {
    let revision: UInt64
    /// At most ``AccountState/maximumLists``.
    let lists: [WireSignedList]
    /// Wraps the keys in the lists.
    let key: KeyEncryptionKey
}

extension Connection {
    /// Asks the other side for its revocation lists.
    ///
    /// - Parameter revision: what this side has, so that the other can ask in turn.
    nonisolated func accountState(
        asking revision: UInt64, within deadline: Duration
    ) async throws(HandoffError) -> ToldState {
        try await withDeadline(deadline, "it did not tell its revocation lists") {
            let (response, stream) = try await self.request(.accountState(.with { $0.revision = revision }))
            guard case .accountState(let answer) = response else {
                throw HandoffError(.internal, "it answered something else than what it was asked")
            }
            // Before the lists: what has come of them can be read also where the other side goes away behind them.
            let key = try await self.keyEncryptionKey
            await stream.finish()
            var lists: [WireSignedList] = []
            for try await list in stream.records(of: WireSignedList.self) {
                lists.append(list)
                guard lists.count < AccountState.maximumLists else { break }
            }
            return ToldState(revision: answer.revision, lists: lists, key: key)
        }
    }
}

extension WireSignedList {
    /// A list as it travels, its keys wrapped.
    package init(_ given: GivenList, wrappedBy key: KeyEncryptionKey) throws(HandoffError) {
        self.init()
        list = Data(given.list.encoded)
        if let keys = given.keys { wrappedKeys = Data(try key.wrap(keys.concatenated)) }
    }
}

extension GivenList {
    /// Reads a list and verifies its signature; keys that were not wrapped with this key count as none.
    init(_ message: WireSignedList, wrappedBy key: KeyEncryptionKey, authority: AuthorityKey) throws(RevocationError) {
        let list = try RevocationList(decoding: Array(message.list), authority: authority)
        let keys = key.unwrap(message.wrappedKeys)
        self.init(list, keys: keys.flatMap { GenerationKeys(id: list.generation, concatenated: $0) })
    }
}

extension [WireSignedList] {
    /// Reads lists and verifies their signatures.
    func read(
        wrappedBy key: KeyEncryptionKey, by authority: AuthorityKey
    ) throws(RevocationError) -> [GivenList] {
        try map { (list) throws(RevocationError) in try GivenList(list, wrappedBy: key, authority: authority) }
    }
}

extension Account {
    /// The lists of this account, with keys, as they travel.
    package func travellingLists(wrappedBy key: KeyEncryptionKey) throws(HandoffError) -> [WireSignedList] {
        try givenLists.map { (given) throws(HandoffError) in try WireSignedList(given, wrappedBy: key) }
    }
}

extension Peer {
    /// Whether the device is known to have the revocation lists of an account: it said so, or its advertisement is
    /// sealed with keys that only they give.
    func knows(_ account: Account) -> Bool {
        if revision == account.state.revision { return true }
        return isPresent && !account.state.isApart && record?.generation == account.currentKeys.id
    }
}
