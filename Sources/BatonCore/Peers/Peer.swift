// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// A device of the account as its verified advertisements show it.
package struct Peer: Sendable {
    package let device: DeviceID
    package internal(set) var name: String
    /// The last advertisement that counted; nil if none came in this run.
    package internal(set) var record: HeardAdvertisement?
    /// Rises with each advertisement of it that counts: what it said before may be true no more.
    package internal(set) var news: UInt64 = 0
    /// Seconds since 1970, by this device's clock: when its last advertisement came.
    package internal(set) var seen: UInt64
    /// When its current activity became current, by this device's clock.
    package internal(set) var currentSince: UInt64
    /// The revision of the account's state that it is known to have.
    package internal(set) var revision: UInt64
    /// A connection has shown that it is a device of the account. An advertisement shows only that its author has the
    /// account's keys.
    package internal(set) var isProved: Bool
    /// Its earlier names, since it is proved.
    package internal(set) var formerNames: FormerNames

    /// Instances that show its advertisement now; none when it has gone.
    package internal(set) var instances: Set<String> = []
    /// The interfaces that it was seen on last.
    package internal(set) var lastInterfaces: Set<UInt32> = []
    /// Its keys are of an older generation: it counts as an idle device, whatever it offers.
    var isOutdated = false
    /// When its advertisement stops to count.
    var end = Instant(nanoseconds: 0)

    /// A device that is not announced now.
    package init(
        device: DeviceID, name: String, seen: UInt64, revision: UInt64 = 0, isProved: Bool = false,
        formerNames: FormerNames = FormerNames()
    ) {
        self.device = device
        self.name = name
        self.seen = seen
        self.revision = revision
        self.isProved = isProved
        self.formerNames = formerNames
        currentSince = seen
    }

    /// Whether it is announced now.
    package var isPresent: Bool { !instances.isEmpty }
    /// The interfaces that it is seen on now.
    package var interfaces: Set<UInt32> { isPresent ? lastInterfaces : [] }
    package var peerName: PeerName { PeerName(id: device.description, name: name) }
    private var counting: AdvertisementContent? { isPresent && !isOutdated ? record?.content : nil }
    /// The activity that it offers first of all.
    package var current: AdvertisedActivity? { counting?.current }
    /// Activities beside the current one, or ``AdvertisementContent/uncountedActivities``.
    package var others: Int { Int(counting?.otherActivities ?? 0) }

    /// It changes more often than it may announce: what it offers is known by asking it, whatever it has announced.
    package var isUncounted: Bool { counting?.otherActivities == AdvertisementContent.uncountedActivities }

    /// It is seen at a place.
    mutating func see(_ instance: String, over interface: UInt32) {
        if !isPresent { lastInterfaces = [] }
        instances.insert(instance)
        lastInterfaces.insert(interface)
    }
}
