// SPDX-License-Identifier: Apache-2.0

/// The announcement of a device to the other devices of its account, carried by DNS-SD.
///
/// ``AdvertisementOpener`` returns only advertisements that a member of the account sealed and that `device` signed.
package struct Advertisement: Sendable, Hashable {
    /// Epochs are below this, so that they fit a signed 64-bit number everywhere.
    package static let maximumEpoch: UInt64 = 1 << 63

    /// The longest time to live of an activity's advertisement, in seconds; renewed at half.
    package static let maximumTimeToLive: UInt16 = 120

    /// The longest time to live of an idle device's advertisement, in seconds; renewed at half.
    ///
    /// No activity becomes stale with it, so it is renewed seldom: each renewal wakes every device of the account.
    package static let maximumIdleTimeToLive: UInt16 = 600

    /// The lowest port that is advertised or dialled, so that no connection goes to a system service.
    package static let minimumPort: UInt16 = 1024

    /// Which device; the id of `publicKey`.
    package let device: DeviceID

    /// The 32 bytes of the device's Ed25519 public key.
    package let publicKey: [UInt8]

    /// The run of the device's node; rises with each start.
    package let epoch: UInt64

    /// Rises with each advertisement of one epoch, renewals included.
    package let sequence: UInt64

    /// Sixteen bytes that go into the tokens of devices that dial this one; see ``GateToken``.
    package let gateNonce: [UInt8]

    /// The part that the node fills in.
    package let content: AdvertisementContent

    package init(
        device: DeviceID, publicKey: [UInt8], epoch: UInt64, sequence: UInt64, gateNonce: [UInt8],
        content: AdvertisementContent
    ) {
        (self.device, self.publicKey, self.gateNonce) = (device, publicKey, gateNonce)
        (self.epoch, self.sequence, self.content) = (epoch, sequence, content)
    }
}

/// How an advertisement compares with the earlier ones of its device.
package enum Freshness: Sendable, Equatable {
    /// Newer than all before; its content counts.
    case accepted
    /// The newest one again, from another interface, protocol or cache; nothing to do.
    case duplicate
    /// The newest advertisement of an earlier run, seen again for the first time in this run. Its content counts
    /// until its time to live, in seconds, is over. Returned once for each device and run.
    case standing(secondsLeft: UInt16)
    /// The same one after that time: it lies in some cache, or is replayed. Nothing to do; its device may go on
    /// from there.
    case expired
    /// Older than one that was accepted; nothing to do.
    case replayed
}

/// The part of an advertisement that the node fills in.
package struct AdvertisementContent: Sendable, Hashable {
    /// The most addresses in one advertisement.
    package static let maximumAddressCount = 8

    /// The most bytes of addresses: each costs 5 (IPv4) or 17 (IPv6). The title gets the room that is left.
    package static let maximumAddressBytes = 72

    /// How long this may be believed after it was received, in seconds, from 1 on: see ``maximumTimeToLive``.
    package var timeToLive: UInt16

    /// The TCP port the device listens on: 1024 or above.
    package var port: UInt16

    /// The addresses of the device, the preferred one first. Sealing drops those that do not fit; see ``fitting(_:)``.
    package var addresses: [NetworkAddress]

    /// The device's name, 1 to 63 bytes of UTF-8 without control characters.
    package var deviceName: String

    /// The current activity, or nil for an idle device.
    package var current: AdvertisedActivity?

    /// The count of a device that has this many other activities, or that changes them more often than it may announce.
    /// Ask the device to learn what it offers.
    package static let uncountedActivities: UInt8 = 255

    /// How many activities there are beside the current one, or ``uncountedActivities``.
    package var otherActivities: UInt8

    /// The longest time to live that this content may have, in seconds.
    package var maximumTimeToLive: UInt16 {
        current == nil ? Advertisement.maximumIdleTimeToLive : Advertisement.maximumTimeToLive
    }

    /// An advertisement's content; nothing is checked before it is sealed.
    package init(
        timeToLive: UInt16 = Advertisement.maximumTimeToLive, port: UInt16, addresses: [NetworkAddress],
        deviceName: String, current: AdvertisedActivity? = nil, otherActivities: UInt8 = 0
    ) {
        self.timeToLive = timeToLive
        self.port = port
        self.addresses = addresses
        self.deviceName = deviceName
        self.current = current
        self.otherActivities = otherActivities
    }

    /// The addresses that one advertisement holds, in order and without repetitions.
    ///
    /// ``NetworkAddress/Scope/invalid`` addresses are dropped, and so are ``NetworkAddress/Scope/loopback`` ones, which
    /// would lead the receiver to itself. The rest is cut at the bounds on count and bytes.
    package static func fitting(_ addresses: [NetworkAddress]) -> [NetworkAddress] {
        var taken: [NetworkAddress] = []
        var bytes = 0
        for address in addresses where !unusable.contains(address.scope) && !taken.contains(address) {
            let size = 1 + address.family.byteCount
            guard taken.count < maximumAddressCount, bytes + size <= maximumAddressBytes else { continue }
            taken.append(address)
            bytes += size
        }
        return taken
    }

    /// The scopes whose addresses no other device can dial.
    private static let unusable: Set<NetworkAddress.Scope> = [.invalid, .loopback]
}

/// The current activity of a device: the part that others may see before a user accepts.
package struct AdvertisedActivity: Sendable, Hashable {
    /// How many bytes an activity's id has.
    package static let idCount = 16

    /// How many bytes a team tag has.
    package static let teamTagCount = 8

    /// The longest type, in bytes of UTF-8.
    package static let maximumTypeCount = 96

    /// The longest title, in bytes of UTF-8. A long type, name or list of addresses leaves less, but never less than
    /// 41.
    package static let maximumTitleCount = 255

    /// Properties of the activity.
    package struct Flags: OptionSet, Sendable, Hashable {
        /// The byte on the wire; bits this version does not name are kept.
        package let rawValue: UInt8

        /// Flags from the byte on the wire.
        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// A web page can be opened if no application continues the activity.
        package static let webPage = Flags(rawValue: 1)
        /// The activity supports continuation streams.
        package static let streams = Flags(rawValue: 2)
        /// A document comes with it, of the size in ``AdvertisedActivity/documentSize``.
        package static let document = Flags(rawValue: 4)
        /// Only one device may hold a claim.
        package static let exclusive = Flags(rawValue: 8)
        /// The title here is the beginning of a longer one. Set by sealing.
        package static let titleCut = Flags(rawValue: 16)
    }

    /// The activity's id, 16 bytes, as it is asked for.
    package var id: [UInt8]

    /// The type in reverse DNS form, 1 to 96 bytes of UTF-8 without control characters.
    package var type: String

    /// Eight bytes that name the team whose applications may continue the activity.
    package var teamTag: [UInt8]

    /// The version of the activity's content, counted by its application; 0 if none is stated. An application that
    /// cannot read this version declines before its user waits.
    package var version: UInt32

    /// Properties of the activity.
    package var flags: Flags

    /// The document's size in bytes; 0 without a document.
    package var documentSize: UInt64

    /// For how many seconds it had been current when this was sealed. An age and no time, since clocks differ.
    package var age: UInt32

    /// The title that users read. Sealing replaces control characters by spaces and cuts it between two characters.
    package var title: String

    /// An activity to advertise; nothing is checked before it is sealed.
    package init(
        id: [UInt8], type: String, teamTag: [UInt8], version: UInt32, flags: Flags = [], documentSize: UInt64 = 0,
        age: UInt32 = 0, title: String
    ) {
        self.id = id
        self.type = type
        self.teamTag = teamTag
        self.version = version
        self.flags = flags
        self.documentSize = documentSize
        self.age = age
        self.title = title
    }
}
