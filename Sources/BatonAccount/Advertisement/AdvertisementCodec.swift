// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// The plain text of an advertisement, before it is signed and sealed: see the article *Advertisement* of
/// `BatonProtocol`. It always has 388 bytes.
enum AdvertisementCodec {
    static let format: UInt8 = 1
    static let size = 388

    static func encode(_ advertisement: Advertisement) throws(AdvertisementError) -> [UInt8] {
        guard isWithinBounds(advertisement) else { throw .malformed }
        let content = advertisement.content
        var bytes: [UInt8] = []
        bytes.reserveCapacity(size)
        bytes.append(format)
        bytes += advertisement.publicKey
        bytes.append(bigEndian: advertisement.epoch)
        bytes.append(bigEndian: advertisement.sequence)
        bytes.append(bigEndian: content.timeToLive)
        bytes.append(bigEndian: content.port)
        bytes += advertisement.gateNonce
        bytes.append(content.otherActivities)
        bytes.append(content.current == nil ? 0 : 1)
        bytes.append(counted: content.deviceName)
        bytes.append(AdvertisementContent.fitting(content.addresses))
        if let activity = content.current { append(activity, to: &bytes) }
        assert(bytes.count <= size, "the bounds of the fields leave room for every advertisement")
        bytes += [UInt8](repeating: 0, count: size - bytes.count)
        return bytes
    }

    private static func append(_ activity: AdvertisedActivity, to bytes: inout [UInt8]) {
        let room = size - bytes.count - 43 - activity.type.utf8.count
        let whole = String(String.UnicodeScalarView(activity.title.unicodeScalars.map { shown($0) }))
        let title = DeviceName.prefix(of: whole, bytes: min(room, AdvertisedActivity.maximumTitleCount))
        var flags = activity.flags
        if title.utf8.count < whole.utf8.count { flags.insert(.titleCut) } else { flags.remove(.titleCut) }
        bytes += activity.id
        bytes.append(bigEndian: activity.version)
        bytes.append(flags.rawValue)
        bytes.append(bigEndian: activity.documentSize)
        bytes.append(bigEndian: activity.age)
        bytes += activity.teamTag
        bytes.append(counted: activity.type)
        bytes.append(counted: title)
    }

    private static func shown(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        DeviceName.isControl(scalar) ? " " : scalar
    }

    private static func isWithinBounds(_ advertisement: Advertisement) -> Bool {
        let content = advertisement.content
        // The store rejects a name in any other form when it loads.
        return (1...content.maximumTimeToLive).contains(content.timeToLive)
            && content.port >= Advertisement.minimumPort && advertisement.epoch < Advertisement.maximumEpoch
            && (try? DeviceName.validated(content.deviceName)) == content.deviceName
            && content.current.map(isWithinBounds) ?? true
    }

    /// The title has no bounds here: it is cut when it is written.
    private static func isWithinBounds(_ activity: AdvertisedActivity) -> Bool {
        activity.id.count == AdvertisedActivity.idCount && activity.teamTag.count == AdvertisedActivity.teamTagCount
            && (1...AdvertisedActivity.maximumTypeCount).contains(activity.type.utf8.count)
            && !activity.type.unicodeScalars.contains(where: DeviceName.isControl)
            && (activity.flags.contains(.document) || activity.documentSize == 0)
    }
}

extension [UInt8] {
    mutating func append(bigEndian value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
    }

    /// Appends at most 255 addresses behind one byte with their number, each behind one byte with its family.
    mutating func append(_ addresses: [NetworkAddress]) {
        append(UInt8(addresses.count))
        for address in addresses { self += [address.family.rawValue] + address.bytes }
    }

    /// Appends a text of at most 255 bytes behind one byte with its length.
    fileprivate mutating func append(counted text: String) {
        append(UInt8(text.utf8.count))
        append(contentsOf: text.utf8)
    }
}

extension AdvertisementCodec {
    /// Reads a plain text of exactly ``size`` bytes.
    static func decode(_ bytes: [UInt8]) throws(AdvertisementError) -> Advertisement {
        var reader = ByteReader(bytes)
        let format = try reader.integer(UInt8.self)
        guard format == self.format, bytes.count == size else { throw .unknownFormat(format) }
        let publicKey = try reader.bytes(32)
        let epoch = try reader.integer(UInt64.self)
        let sequence = try reader.integer(UInt64.self)
        let timeToLive = try reader.integer(UInt16.self)
        let port = try reader.integer(UInt16.self)
        let gateNonce = try reader.bytes(GateToken.nonceCount)
        let others = try reader.integer(UInt8.self)
        let state = try reader.integer(UInt8.self)
        guard state <= 1 else { throw .malformed }
        let name = try reader.text()
        let addresses = try decodeAddresses(&reader)
        let activity = state == 1 ? try decodeActivity(&reader) : nil
        let advertisement = Advertisement(
            device: DeviceID(ed25519PublicKey: publicKey), publicKey: publicKey, epoch: epoch, sequence: sequence,
            gateNonce: gateNonce,
            content: AdvertisementContent(
                timeToLive: timeToLive, port: port, addresses: addresses, deviceName: name, current: activity,
                otherActivities: others))
        guard isWithinBounds(advertisement) else { throw .malformed }
        return advertisement
    }

    static func decodeAddresses(
        _ reader: inout ByteReader
    ) throws(AdvertisementError) -> [NetworkAddress] {
        let count = try reader.integer(UInt8.self)
        var addresses: [NetworkAddress] = []
        for _ in 0..<count {
            guard let family = NetworkAddress.Family(rawValue: try reader.integer(UInt8.self)),
                let address = NetworkAddress(bytes: try reader.bytes(family.byteCount))
            else { throw .malformed }
            addresses.append(address)
        }
        // The addresses must be exactly as a sender may write them: within the bounds, each once, and none that names
        // several hosts or the receiver itself.
        guard AdvertisementContent.fitting(addresses) == addresses else { throw .malformed }
        return addresses
    }

    private static func decodeActivity(
        _ reader: inout ByteReader
    ) throws(AdvertisementError) -> AdvertisedActivity {
        let id = try reader.bytes(AdvertisedActivity.idCount)
        let version = try reader.integer(UInt32.self)
        let flags = AdvertisedActivity.Flags(rawValue: try reader.integer(UInt8.self))
        let documentSize = try reader.integer(UInt64.self)
        let age = try reader.integer(UInt32.self)
        let teamTag = try reader.bytes(AdvertisedActivity.teamTagCount)
        let type = try reader.text()
        let title = try reader.text()
        return AdvertisedActivity(
            id: id, type: type, teamTag: teamTag, version: version, flags: flags, documentSize: documentSize, age: age,
            title: title)
    }
}

/// Reads fields one after the other; running out of bytes is a malformed length.
struct ByteReader {
    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: some Collection<UInt8>) {
        rest = Array(bytes)[...]
    }

    mutating func bytes(_ count: Int) throws(AdvertisementError) -> [UInt8] {
        guard rest.count >= count else { throw .malformed }
        defer { rest.removeFirst(count) }
        return Array(rest.prefix(count))
    }

    mutating func integer<Integer: FixedWidthInteger>(
        _: Integer.Type
    ) throws(AdvertisementError) -> Integer {
        try bytes(Integer.bitWidth / 8).reduce(0) { $0 << 8 | Integer(truncatingIfNeeded: $1) }
    }

    /// A text behind its length: well-formed UTF-8 without control characters.
    mutating func text() throws(AdvertisementError) -> String {
        guard let text = String(validating: try bytes(Int(integer(UInt8.self))), as: UTF8.self),
            !text.unicodeScalars.contains(where: DeviceName.isControl)
        else { throw .malformed }
        return text
    }
}
