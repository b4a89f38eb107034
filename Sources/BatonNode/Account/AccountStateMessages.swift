public import BatonAccount
public import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import Glibc
import SwiftProtobuf

extension Connection {
    /// Asks the other side for its revocation lists.
    ///
    /// - Parameter revision: what this side has, so that the other can ask in turn.
    /// - Returns: what the other side has; at most ``AccountState/maximumLists`` lists, with keys that are wiped by who reads
    ///   them (`read(by:)`).
    nonisolated func accountState(
        asking revision: UInt64, within deadline: Duration
    ) async throws(HandoffError) -> (revision: UInt64, lists: [WireSignedList]) {
        try await withDeadline(deadline, "it did not tell its revocation lists") {
            let (response, stream) = try await self.request(.accountState(.with { $0.revision = revision }))
            guard case .accountState(let answer) = response else {
                throw HandoffError(.internal, "it answered something else than what it was asked")
            }
            await stream.finish()
            var lists: [WireSignedList] = []
            do {
                for try await list in stream.records(of: WireSignedList.self) {
                    lists.append(list)
                    guard lists.count < AccountState.maximumLists else { break }
                }
            } catch {
                for list in lists { list.wipeKeys() }
                throw error
            }
            return (answer.revision, lists)
        }
    }
}

extension WireSignedList {
    /// A list and its keys as they travel, inside TLS and on the local socket alone.
    public init(_ given: GivenList) {
        self.init()
        list = Data(given.list.encoded)
        // SwiftProtobuf has no memory that is wiped by itself: see wipeKeys().
        if let keys = given.keys { self.keys = keys.concatenated.withUnsafeBytes { Data($0) } }
    }

    /// Overwrites the keys, in this message and in each copy of it, when nobody reads them any more.
    ///
    /// In the bytes themselves: a copy on write would be wiped, and leave them where they are. What is left are the buffers
    /// of the stream and of TLS that they went through.
    fileprivate func wipeKeys() {
        keys.withUnsafeBytes { bytes in
            // Up to 14 bytes stand in the value itself; keys are 64 or 96.
            guard bytes.count > 32, let start = bytes.baseAddress else { return }
            explicit_bzero(UnsafeMutableRawPointer(mutating: start), bytes.count)
        }
    }
}

extension [WireSignedList] {
    /// Reads lists and verifies their signatures. The keys in the messages are wiped then, also where it throws.
    func read(by authority: AuthorityKey) throws(RevocationError) -> [GivenList] {
        defer { for list in self { list.wipeKeys() } }
        var given: [GivenList] = []
        for list in self { given.append(try GivenList(list, authority: authority)) }
        return given
    }
}

extension Account {
    /// Gives the lists of this account, with keys, as they travel, and wipes the keys in them when `body` is over.
    public func withTravellingLists<Value>(
        isolation: isolated (any Actor)? = #isolation,
        _ body: ([WireSignedList]) async throws(HandoffError) -> Value
    ) async throws(HandoffError) -> Value {
        let lists = givenLists.map(WireSignedList.init)
        defer { for list in lists { list.wipeKeys() } }
        return try await body(lists)
    }
}

extension GivenList {
    /// Reads a list and verifies its signature.
    init(_ message: WireSignedList, authority: AuthorityKey) throws(RevocationError) {
        let list = try RevocationList(decoding: Array(message.list), authority: authority)
        let keys = message.keys.withUnsafeBytes { SecretBytes(copying: $0) }
        self.init(list, keys: GenerationKeys(id: list.generation, concatenated: keys))
    }
}

extension Peer {
    /// Whether the device is known to have the revocation lists of an account: it said so, or its advertisement is
    /// sealed with keys that only they give.
    func knows(_ account: Account) -> Bool {
        if revision == account.state.revision { return true }
        return isPresent && !account.state.isApart && keys.id == account.currentKeys.id
    }
}
