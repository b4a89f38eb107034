// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages
import BatonProtocol

/// The active transfers of one offer, each with a name of its own.
///
/// Several devices may have the same name, and one device may accept an offer more than once. Only the number of the
/// claim distinguishes them.
struct OfferTransfers {
    /// The most transfers: 128, as many as a node has claims. Older nodes may never report the end of a transfer. If
    /// there are more, the least recently updated one is dropped.
    static let bound = 128

    private struct Key: Equatable {
        let claim: UInt64
        /// The device's name; empty if there is a claim, because the device may change its name.
        let device: String

        init(_ claim: UInt64, _ device: String) {
            self.claim = claim
            self.device = claim > 0 ? "" : device
        }
    }

    /// Sorted by the time of the last update; the most recent one is last.
    private var transfers: [(key: Key, name: String, told: ProgressMembers)] = []

    /// The name of a transfer until it ends, safe to show: the device's name, or “ubuntu (2)” if another transfer has
    /// that name.
    ///
    /// - Parameter claim: the number of the claim; 0 from an older node.
    /// - Returns: the name, and the name of the transfer that was dropped for it.
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

    /// The members of a transfer in `--json`.
    mutating func members(_ event: WireProgressReport, claim: UInt64, now: Instant) -> [JSONValue.Member] {
        let key = Key(claim, event.device)
        guard let index = transfers.firstIndex(where: { $0.key == key }) else { return [] }
        return transfers[index].told.members(event, now: now)
    }

    /// Ends a transfer. Its name is free for another one.
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
