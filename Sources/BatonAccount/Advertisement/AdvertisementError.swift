// SPDX-License-Identifier: Apache-2.0

/// Why an advertisement cannot be sealed, or a TXT record counts for nothing. None of these changes any state.
package enum AdvertisementError: Error, Equatable, CustomStringConvertible {
    /// The record is longer than 1200 bytes, is no sequence of strings, or its sealed part does not have the one size
    /// that it can have.
    case malformedRecord
    case unsupportedVersion
    /// No known key opens it: it belongs to another account or a later generation, or it was changed on the way.
    case unopenable
    case unknownFormat(UInt8)
    /// A field is out of its bounds, in what was opened or is to be sealed.
    case malformed
    case badSignature
    /// It is this device's own, or of a device with a copy of its account folder: of an epoch that this device is not
    /// in.
    case own(epoch: UInt64)
    /// The device could not sign or seal it, which only a broken installation explains.
    case cryptography(String)

    /// Whether a member of the account made it, which makes it worth a line in the log.
    package var isByMember: Bool {
        switch self {
        case .malformedRecord, .unsupportedVersion, .unopenable, .own, .cryptography: false
        case .unknownFormat, .malformed, .badSignature: true
        }
    }

    package var description: String {
        switch self {
        case .malformedRecord: "the record is not an advertisement"
        case .unsupportedVersion: "the record has a version this program does not know"
        case .unopenable: "the advertisement is not this account's"
        case .unknownFormat(let format): "a device of this account advertises in format \(format); update Baton here"
        case .malformed: "a device of this account advertises something out of bounds; update Baton there or here"
        case .badSignature: "a device of this account advertises under a key that is not its own"
        case .own: "the advertisement is this device's own"
        case .cryptography(let detail): "the cryptography library refused what it must be able to do (\(detail))"
        }
    }
}
