// SPDX-License-Identifier: Apache-2.0

/// A mistake in a text that should be an account key.
///
/// Groups are counted from 1, behind `baton1`. No case carries a character of the key.
package enum AccountKeyError: Error, Equatable, CustomStringConvertible {
    /// There is nothing but spaces and dashes.
    case empty
    /// The text does not begin with `baton1`.
    case wrongPrefix
    /// A character that no account key contains.
    case invalidCharacter(group: Int)
    /// Too few or too many characters behind `baton1`.
    case wrongLength(found: Int, expected: Int)
    /// The checksum does not fit. `group` is where the mistake is when a single character is wrong, otherwise nil.
    case mistyped(group: Int?)
    /// The text is whole, but of a version that this program does not know.
    case unknownVersion(UInt8)

    /// One sentence that names the mistake and the next step.
    package var description: String {
        switch self {
        case .empty:
            "no account key was given; it begins with baton1, and `baton account create` printed it on your first"
                + " device"
        case .wrongPrefix:
            "this is not an account key: one begins with baton1, as `baton account create` printed it"
        case .invalidCharacter(let group):
            "mistyped: group \(group) behind baton1 has a character that no account key contains"
                + " (the letters b, i and o and the digit 1 are never used there)"
        case .wrongLength(let found, let expected) where found < expected:
            "mistyped: \(expected - found) of \(expected) characters behind baton1 missing; check the last groups"
        case .wrongLength(let found, let expected):
            "mistyped: \(found) characters behind baton1, where \(expected) belong; check the last groups"
        case .mistyped(.some(let group)):
            "mistyped: the checksum does not fit; the mistake is most likely in group \(group) behind baton1"
        case .mistyped(.none):
            "mistyped: the checksum does not fit, more than one character is wrong; compare it with the original"
        case .unknownVersion(let version):
            "this account key has version \(version), which this program does not know; install a newer Baton here"
        }
    }
}
