// SPDX-License-Identifier: Apache-2.0

import BatonAccount

/// Which activities were held against the rules of the policy: a pure value.
struct SeenActivities {
    /// Activities that are remembered, several times as many as devices can have current ones; the oldest make room.
    static let bound = 1024

    private struct Entry: Hashable {
        let device: DeviceID
        let activity: [UInt8]
    }

    private var entries: Set<Entry> = []
    private var order: [Entry] = []

    /// - Returns: whether it is looked at for the first time.
    mutating func insert(_ activity: [UInt8], of device: DeviceID) -> Bool {
        let entry = Entry(device: device, activity: activity)
        guard entries.insert(entry).inserted else { return false }
        order.append(entry)
        if order.count > Self.bound { entries.remove(order.removeFirst()) }
        return true
    }
}
