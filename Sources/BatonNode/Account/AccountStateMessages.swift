// SPDX-License-Identifier: Apache-2.0

package import BatonAccount
import BatonCore
package import BatonMessages
import BatonProtocol
import BatonTLS
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// The answer of a device about its revocation lists.
struct ToldState: Sendable {
    let revision: UInt64
    /// At most ``AccountState/maximumLists``.
    let lists: [WireSignedList]
    /// Wraps the keys in the lists.
    let key: SecretBytes
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

extension Connection {
    /// The key that wraps keys of a revocation list between the two devices of this connection (RFC 8446, section 7.5).
    ///
    /// TLS keeps others from them anyway. The wrapping is for the buffers of messages, streams, TLS and the kernel that
    /// they go through: none is wiped, so none may hold them in the clear.
    ///
    /// - Throws: ``HandoffError``: what became of the connection.
    var keyEncryptionKey: SecretBytes {
        get throws(HandoffError) {
            do {
                return try SecretBytes(count: KeyWrap.keySize) { target throws(TransportError) in
                    try exportKeyingMaterial("EXPORTER-baton-generation-keys", into: target)
                }
            } catch {
                throw HandoffError(error)
            }
        }
    }
}

extension WireSignedList {
    /// A list as it travels, its keys wrapped.
    package init(_ given: GivenList, wrappedBy key: SecretBytes) throws(AccountError) {
        self.init()
        list = Data(given.list.encoded)
        if let keys = given.keys { wrappedKeys = Data(try keys.concatenated.wrapped(with: key)) }
    }
}

extension GivenList {
    /// Reads a list and verifies its signature; keys that were not wrapped with this key count as none.
    init(_ message: WireSignedList, wrappedBy key: SecretBytes, authority: AuthorityKey) throws(RevocationError) {
        let list = try RevocationList(decoding: Array(message.list), authority: authority)
        let keys = SecretBytes(unwrapping: Array(message.wrappedKeys), with: key)
        self.init(list, keys: keys.flatMap { GenerationKeys(id: list.generation, concatenated: $0) })
    }
}

extension [WireSignedList] {
    /// Reads lists and verifies their signatures.
    func read(
        wrappedBy key: SecretBytes, by authority: AuthorityKey
    ) throws(RevocationError) -> [GivenList] {
        try map { (list) throws(RevocationError) in try GivenList(list, wrappedBy: key, authority: authority) }
    }
}

extension Account {
    /// The lists of this account, with keys, as they travel.
    package func travellingLists(wrappedBy key: SecretBytes) throws(HandoffError) -> [WireSignedList] {
        do {
            return try givenLists.map { (given) throws(AccountError) in try WireSignedList(given, wrappedBy: key) }
        } catch {
            throw HandoffError(.internal, "\(error)")
        }
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
