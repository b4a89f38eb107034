// SPDX-License-Identifier: Apache-2.0

/// Why an advertisement cannot be sealed: a mistake of the caller's, not of the network's.
package enum AdvertisementError: Error, Equatable, CustomStringConvertible {
    /// A field that is out of its bounds.
    case invalid(AdvertisementField)
    /// The sequence numbers of this epoch are used up.
    case exhausted
    /// The cryptography library refused, which only a broken installation explains.
    case cryptography(String)

    /// One sentence for a log.
    package var description: String {
        switch self {
        case .invalid(let field): "this cannot be advertised: \(field.rawValue) is out of bounds"
        case .exhausted: "this run has no sequence numbers left: restart the node"
        case .cryptography(let detail): "the cryptography library refused what it must be able to do (\(detail))"
        }
    }
}

/// A field of an advertisement, as errors name it.
package enum AdvertisementField: String, Sendable {
    case timeToLive = "the time to live"
    case port = "the port"
    case address = "an address"
    case deviceName = "the device name"
    case activityID = "the activity's id"
    case activityType = "the activity's type"
    case teamTag = "the team tag"
    case documentSize = "the document size"
    case title = "the title"
    case epoch = "the epoch"
    case state = "the state"
    case length = "a length"
}

/// Why a TXT record counts for nothing. None of these changes any state.
package enum AdvertisementRejection: Error, Equatable, CustomStringConvertible {
    /// The record is longer than 1200 bytes.
    case oversized(Int)
    /// The record is no sequence of strings, or lacks a part.
    case malformedRecord
    /// The record's version is not `1`.
    case unsupportedVersion
    /// The sealed part does not have the one size it can have.
    case wrongSize(Int)
    /// No known key opens it: it belongs to another account or a later generation, or it was changed on the way.
    case unopenable
    /// It opened, but says it has a layout that this program does not know.
    case unknownFormat(UInt8)
    /// It opened, but a field is out of its bounds.
    case malformed(AdvertisementField)
    /// It opened, but the device did not sign it.
    case badSignature
    /// It is this device's own, or of a device with a copy of its account folder: of an epoch that this device is not
    /// in.
    case own(epoch: UInt64)

    /// Whether a member of the account made it, which makes it worth a line in the log.
    package var isByMember: Bool {
        switch self {
        case .oversized, .malformedRecord, .unsupportedVersion, .wrongSize, .unopenable, .own: false
        case .unknownFormat, .malformed, .badSignature: true
        }
    }

    /// One sentence for a log.
    package var description: String {
        switch self {
        case .oversized(let count): "a record of \(count) bytes is too long to be an advertisement"
        case .malformedRecord: "the record is not an advertisement"
        case .unsupportedVersion: "the record has a version this program does not know"
        case .wrongSize(let count): "a sealed part of \(count) bytes is not an advertisement"
        case .unopenable: "the advertisement is not this account's"
        case .unknownFormat(let format): "a device of this account advertises in format \(format); update Baton here"
        case .malformed(let field): "a device of this account advertises \(field.rawValue) out of bounds"
        case .badSignature: "a device of this account advertises under a key that is not its own"
        case .own: "the advertisement is this device's own"
        }
    }
}
