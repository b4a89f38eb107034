// SPDX-License-Identifier: Apache-2.0

extension AdvertisementCodec {
    /// Reads a plain text of exactly ``size`` bytes.
    static func decode(_ bytes: [UInt8]) throws(AdvertisementRejection) -> Advertisement {
        var reader = ByteReader(bytes)
        let format = try reader.integer(UInt8.self)
        guard format == self.format, bytes.count == size else { throw .unknownFormat(format) }
        let publicKey = try reader.bytes(32)
        let epoch = try reader.integer(UInt64.self)
        guard epoch < Advertisement.maximumEpoch else { throw .malformed(.epoch) }
        let sequence = try reader.integer(UInt64.self)
        let timeToLive = try reader.integer(UInt16.self)
        let port = try reader.integer(UInt16.self)
        guard port >= Advertisement.minimumPort else { throw .malformed(.port) }
        let gateNonce = try reader.bytes(GateToken.nonceCount)
        let others = try reader.integer(UInt8.self)
        let state = try reader.integer(UInt8.self)
        guard state <= 1 else { throw .malformed(.state) }
        let name = try reader.text(.deviceName, 1...DeviceName.maximumCount)
        // A name must be in the form in which each device writes its own: the store rejects any other form when it
        // loads.
        guard (try? DeviceName.validated(name)) == name else { throw .malformed(.deviceName) }
        let addresses = try decodeAddresses(&reader)
        let activity = state == 1 ? try decodeActivity(&reader) : nil
        let content = AdvertisementContent(
            timeToLive: timeToLive, port: port, addresses: addresses, deviceName: name, current: activity,
            otherActivities: others)
        guard (1...content.maximumTimeToLive).contains(timeToLive) else { throw .malformed(.timeToLive) }
        return Advertisement(
            device: DeviceID(ed25519PublicKey: publicKey), publicKey: publicKey, epoch: epoch, sequence: sequence,
            gateNonce: gateNonce, content: content)
    }

    private static func decodeAddresses(
        _ reader: inout ByteReader
    ) throws(AdvertisementRejection) -> [NetworkAddress] {
        let count = try reader.integer(UInt8.self)
        var addresses: [NetworkAddress] = []
        for _ in 0..<count {
            guard let family = NetworkAddress.Family(rawValue: try reader.integer(UInt8.self)) else {
                throw .malformed(.address)
            }
            guard let address = NetworkAddress(bytes: try reader.bytes(family.byteCount)) else {
                throw .malformed(.address)
            }
            addresses.append(address)
        }
        // The addresses must be exactly as a sender may write them: within the bounds, each once, and none that names
        // several hosts or the receiver itself.
        guard AdvertisementContent.fitting(addresses) == addresses else {
            throw .malformed(.address)
        }
        return addresses
    }

    private static func decodeActivity(
        _ reader: inout ByteReader
    ) throws(AdvertisementRejection) -> AdvertisedActivity {
        let id = try reader.bytes(AdvertisedActivity.idCount)
        let version = try reader.integer(UInt32.self)
        let flags = AdvertisedActivity.Flags(rawValue: try reader.integer(UInt8.self))
        let documentSize = try reader.integer(UInt64.self)
        guard flags.contains(.document) || documentSize == 0 else { throw .malformed(.documentSize) }
        let age = try reader.integer(UInt32.self)
        let teamTag = try reader.bytes(AdvertisedActivity.teamTagCount)
        let type = try reader.text(.activityType, 1...AdvertisedActivity.maximumTypeCount)
        let title = try reader.text(.title, 0...AdvertisedActivity.maximumTitleCount)
        return AdvertisedActivity(
            id: id, type: type, teamTag: teamTag, version: version, flags: flags, documentSize: documentSize, age: age,
            title: title)
    }
}

/// Reads fields one after the other; running out of bytes is a malformed length.
private struct ByteReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) {
        self.rest = bytes[...]
    }

    mutating func bytes(_ count: Int) throws(AdvertisementRejection) -> [UInt8] {
        guard rest.count >= count else { throw .malformed(.length) }
        defer { rest.removeFirst(count) }
        return Array(rest.prefix(count))
    }

    mutating func integer<Integer: FixedWidthInteger>(
        _: Integer.Type
    ) throws(AdvertisementRejection) -> Integer {
        try bytes(Integer.bitWidth / 8).reduce(0) { $0 << 8 | Integer(truncatingIfNeeded: $1) }
    }

    /// A text behind its length: well-formed UTF-8 without control characters.
    mutating func text(
        _ field: AdvertisementField, _ bounds: ClosedRange<Int>
    ) throws(AdvertisementRejection) -> String {
        let count = Int(try integer(UInt8.self))
        guard bounds.contains(count) else { throw .malformed(field) }
        guard
            let text = String(validating: try bytes(count), as: UTF8.self),
            !text.unicodeScalars.contains(where: DeviceName.isControl)
        else { throw .malformed(field) }
        return text
    }
}
