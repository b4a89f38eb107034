// SPDX-License-Identifier: Apache-2.0

/// What a device tells the other devices of its account, and nobody else, over DNS-SD.
///
/// One that came out of ``AdvertisementOpener`` was sealed by a member of the account and signed by `device`'s key.
package struct Advertisement: Sendable, Hashable {
    /// Epochs are below this, so that they fit a signed 64-bit number everywhere.
    package static let maximumEpoch: UInt64 = 1 << 63

    /// The longest time to live, in seconds; renewed at half.
    package static let maximumTimeToLive: UInt16 = 120

    /// The lowest port that is advertised or dialled: nobody is sent to a system service.
    package static let minimumPort: UInt16 = 1024

    /// Which device; the id of `publicKey`.
    package let device: DeviceID

    /// The 32 bytes of the device's Ed25519 public key.
    package let publicKey: [UInt8]

    /// The run of the device's node; rises with each start.
    package let epoch: UInt64

    /// Rises with each advertisement of one epoch, renewals included.
    package let sequence: UInt64

    /// Sixteen bytes for the tokens of those who dial this device; see ``GateToken``.
    package let gateNonce: [UInt8]

    /// What the device says.
    package let content: AdvertisementContent
}

/// The part of an advertisement that the node fills in.
package struct AdvertisementContent: Sendable, Hashable {
    /// The most addresses in one advertisement.
    package static let maximumAddressCount = 8

    /// The most bytes of addresses: each costs 5 (IPv4) or 17 (IPv6). Bounds what is taken from the title.
    package static let maximumAddressBytes = 72

    /// How long this may be believed after it was received, in seconds: 1 to 120.
    package var timeToLive: UInt16

    /// The TCP port the device listens on: 1024 or above.
    package var port: UInt16

    /// Where the device can be reached, the preferred address first. Sealing leaves out what does not fit; see
    /// ``fitting(_:)``.
    package var addresses: [NetworkAddress]

    /// The device's name, 1 to 63 bytes of UTF-8 without control characters.
    package var deviceName: String

    /// The current activity, or nil for an idle device.
    package var current: AdvertisedActivity?

    /// The number of other activities of a device that changes more often than it may announce, or offers that many:
    /// what it offers now is known by asking it.
    package static let uncountedActivities: UInt8 = 255

    /// How many activities there are beside the current one, or ``uncountedActivities``.
    package var otherActivities: UInt8

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

    /// The addresses that one advertisement holds: in order, without repetitions, ``NetworkAddress/Scope/invalid`` ones
    /// and ``NetworkAddress/Scope/loopback`` ones (who dials such an address dials himself), each taken while the
    /// bounds on count and bytes allow it.
    package static func fitting(_ addresses: [NetworkAddress]) -> [NetworkAddress] {
        fitting(addresses, without: unusable)
    }

    /// The scopes whose addresses nobody else can dial.
    static let unusable: Set<NetworkAddress.Scope> = [.invalid, .loopback]

    /// - Parameter scopes: what is left out; tests of attacks see what that is good for.
    static func fitting(
        _ addresses: [NetworkAddress], without scopes: Set<NetworkAddress.Scope>
    ) -> [NetworkAddress] {
        var taken: [NetworkAddress] = []
        var bytes = 0
        for address in addresses where !scopes.contains(address.scope) && !taken.contains(address) {
            let size = 1 + address.family.byteCount
            guard taken.count < maximumAddressCount, bytes + size <= maximumAddressBytes else { continue }
            taken.append(address)
            bytes += size
        }
        return taken
    }
}

/// The current activity of a device, as far as others may know before a user accepts it.
package struct AdvertisedActivity: Sendable, Hashable {
    /// How many bytes an activity's id has.
    package static let idCount = 16

    /// How many bytes a team tag has.
    package static let teamTagCount = 8

    /// The longest type, in bytes of UTF-8.
    package static let maximumTypeCount = 96

    /// The longest title, in bytes of UTF-8; less is left where type, name and addresses are long, never below 41.
    package static let maximumTitleCount = 255

    /// What is true of the activity.
    package struct Flags: OptionSet, Sendable, Hashable {
        /// The byte on the wire; bits this version does not name are kept.
        package let rawValue: UInt8

        /// Flags from the byte on the wire.
        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// There is a web page to open where no application takes the activity.
        package static let webPage = Flags(rawValue: 1)
        /// The activity supports continuation streams.
        package static let streams = Flags(rawValue: 2)
        /// A document comes with it, of the size in ``AdvertisedActivity/documentSize``.
        package static let document = Flags(rawValue: 4)
        /// Only one device may hold a claim.
        package static let exclusive = Flags(rawValue: 8)
        /// The title is longer than what stands here; set by sealing.
        package static let titleCut = Flags(rawValue: 16)
    }

    /// The activity's id, 16 bytes, as it is asked for.
    package var id: [UInt8]

    /// The type in reverse DNS form, 1 to 96 bytes of UTF-8 without control characters.
    package var type: String

    /// Eight bytes that tell whose applications may take it.
    package var teamTag: [UInt8]

    /// Of the activity's content, as its application counts, so that one that cannot read it declines before its user
    /// waits; 0 where none is stated.
    package var version: UInt32

    /// What is true of the activity.
    package var flags: Flags

    /// The document's size in bytes; 0 without a document.
    package var documentSize: UInt64

    /// For how many seconds it had been current when this was sealed. An age and no time, since clocks differ.
    package var age: UInt32

    /// What the user reads. Sealing replaces control characters by spaces and cuts it between two characters.
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
