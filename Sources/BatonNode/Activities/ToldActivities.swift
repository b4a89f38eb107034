// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonMessages
import FoundationEssentials

/// The activities of other devices that the user was told of, so that a listing can say which of them have gone.
struct ToldActivities {
    /// Activities that are remembered, of at most 1.5 KiB each (``WireActivitySummary/bounded``). The oldest make room.
    static let bound = 64

    private struct Key: Hashable {
        let device: String
        let activity: Data

        init(_ listing: WireActivityListing) {
            (device, activity) = (listing.deviceID, listing.activity.id)
        }
    }

    private var listings = BoundedMap<Key, WireActivityListing>(bound: Self.bound)

    /// The user is told of these.
    mutating func note(_ told: [WireActivityListing]) {
        for listing in told { listings.insert(listing, for: Key(listing)) }
    }

    /// The activities that the user was told of and that are not there now, the oldest first.
    func gone(besides present: [WireActivityListing]) -> [WireActivityListing] {
        let there = Set(present.map { Key($0) })
        return listings.keys.filter { !there.contains($0) }.compactMap { listings[$0] }.map { listing in
            var gone = listing
            gone.change = .removed
            return gone
        }
    }
}
