// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages
import BatonProtocol

/// The transfers of one offer that are under way, each with a name of its own.
///
/// A value. Several devices may have one name, and one device may take an offer over more than once: only the number of
/// the claim tells them apart.
struct OfferTransfers {
    /// Transfers that are known: 128, as many as a node has claims. Nodes that ran before this command was updated may
    /// never tell the end of one that failed and went on; where there are more, that of which nothing was heard for
    /// longest is forgotten.
    static let bound = 128

    private struct Key: Equatable {
        let claim: UInt64
        /// Empty where there is a claim: a device may change its name meanwhile.
        let device: String

        init(_ claim: UInt64, _ device: String) {
            self.claim = claim
            self.device = claim > 0 ? "" : device
        }
    }

    /// The one that was heard of last is the last.
    private var transfers: [(key: Key, name: String, told: ProgressMembers)] = []

    /// What a transfer is called until it ends, safe to show: as its device, or as “ubuntu (2)” where another one is
    /// called so.
    ///
    /// - Parameter claim: its number; 0 from a node that tells none.
    /// - Returns: its name, and that of the one that is forgotten for it.
    mutating func name(of claim: UInt64, by device: String) -> (name: String, forgotten: String?) {
        let key = Key(claim, device)
        if let index = transfers.firstIndex(where: { $0.key == key }) {
            let transfer = transfers.remove(at: index)
            transfers.append(transfer)
            return (transfer.name, nil)
        }
        let forgotten = transfers.count < Self.bound ? nil : transfers.removeFirst().name
        let name = unusedName(for: SafeText.escaped(device))
        transfers.append((key, name, ProgressMembers()))
        return (name, forgotten)
    }

    /// What `--json` tells of one that has a name.
    mutating func members(_ event: WireProgressReport, claim: UInt64, now: Instant) -> [JSONValue.Member] {
        let key = Key(claim, event.device)
        guard let index = transfers.firstIndex(where: { $0.key == key }) else { return [] }
        return transfers[index].told.members(event, now: now)
    }

    /// It is over, and its name free for another.
    mutating func end(of claim: UInt64, by device: String) {
        transfers.removeAll { $0.key == Key(claim, device) }
    }

    private func unusedName(for device: String) -> String {
        var (name, number) = (device, 1)
        while transfers.contains(where: { $0.name == name }) {
            number += 1
            name = "\(device) (\(number))"
        }
        return name
    }
}
