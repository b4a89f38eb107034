// SPDX-License-Identifier: Apache-2.0

import BatonMessages

/// What the user was told that other devices offer, so that who asks for what has gone since hears what became of it.
///
/// A value. The oldest make room; each is an activity's summary of at most 1.5 KiB
/// (``WireActivitySummary/bounded``).
struct ToldActivities {
    /// Activities that are remembered: 96 KiB at the most.
    static let bound = 64

    /// Oldest first.
    private var listings: [WireActivityListing] = []

    /// The user is told of these.
    mutating func note(_ told: [WireActivityListing]) {
        listings.removeAll { listing in told.contains { Self.isSame($0, listing) } }
        listings += told.suffix(Self.bound)
        listings.removeFirst(max(0, listings.count - Self.bound))
    }

    /// What he was told of and is not there now, the oldest first.
    func gone(besides present: [WireActivityListing]) -> [WireActivityListing] {
        listings.filter { listing in !present.contains { Self.isSame($0, listing) } }.map { listing in
            var gone = listing
            gone.change = .removed
            return gone
        }
    }

    private static func isSame(_ left: WireActivityListing, _ right: WireActivityListing) -> Bool {
        left.deviceID == right.deviceID && left.activity.id == right.activity.id
    }
}
