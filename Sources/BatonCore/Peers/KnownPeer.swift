// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// An advertisement that the driver has opened and verified, with the parts that the core looks at.
package protocol PeerRecord: Sendable {
    associatedtype Device: Hashable & Sendable & CustomStringConvertible
    associatedtype Activity: Sendable & Identifiable
    associatedtype Address: PeerAddress
    /// The bounded list of names that a device had before.
    associatedtype Names: NameHistory

    var device: Device { get }
    var name: String { get }
    /// The number of the account's keys that sealed it.
    var generation: UInt32 { get }
    /// The activity that it offers first of all.
    var current: Activity? { get }
    /// For how many seconds that has been current.
    var age: UInt64 { get }
    /// How many others it offers.
    var others: Int { get }
    /// For how many seconds it may be believed.
    var timeToLive: UInt16 { get }

    /// Where to dial, the advertised order kept; a link-local address once for each interface.
    func addresses(over interfaces: Set<UInt32>) -> [Address]
}

/// Where a device can be dialled.
package protocol PeerAddress: Hashable, Sendable {
    associatedtype Host: Hashable & Sendable
    /// The address without the port.
    var host: Host? { get }
}

/// The names that a device had before.
package protocol NameHistory: Sendable {
    init()
    mutating func add(_ name: String)
}

/// A device of the account as its verified advertisements show it.
package struct KnownPeer<Record: PeerRecord>: Sendable {
    package let device: Record.Device
    package internal(set) var name: String
    /// The last advertisement that counted; nil if none came in this run.
    package internal(set) var record: Record?
    package internal(set) var addresses: [Record.Address] = []
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
    package internal(set) var formerNames: Record.Names

    /// Instances that show its advertisement now; none when it has gone.
    package internal(set) var instances: Set<String> = []
    package internal(set) var interfaces: Set<UInt32> = []
    /// Its keys are of an older generation: it counts as an idle device, whatever it offers.
    var isOutdated = false
    /// When its advertisement stops to count.
    var end = Instant(nanoseconds: 0)

    /// A device that is not announced now.
    package init(
        device: Record.Device, name: String, seen: UInt64, revision: UInt64 = 0, isProved: Bool = false,
        formerNames: Record.Names = Record.Names()
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
    package var peerName: PeerName { PeerName(id: device.description, name: name) }
    private var counting: Record? { isPresent && !isOutdated ? record : nil }
    /// The activity that it offers first of all.
    package var current: Record.Activity? { counting?.current }
    /// How many others it offers.
    package var others: Int { counting?.others ?? 0 }

    /// It is seen at a place.
    mutating func see(_ instance: String, over interface: UInt32) {
        instances.insert(instance)
        interfaces.insert(interface)
        addresses = record?.addresses(over: interfaces) ?? []
    }

    /// Believes nothing any more that it said, except where it can be dialled.
    mutating func clear() { (instances, interfaces) = ([], []) }
}
