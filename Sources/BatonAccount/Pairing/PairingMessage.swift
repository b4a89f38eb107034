// SPDX-License-Identifier: Apache-2.0

/// A message between a device that invites and one that joins.
///
/// On the wire it is `u16 n | u8 type | n - 1 bytes`, big endian. The type is the raw value of ``Kind``.
package struct PairingMessage: Sendable, Equatable {
    package enum Kind: UInt8, Sendable {
        /// From the joiner: ``PairingMessage/version``, and a commitment to the key and the nonce that it will show, 32
        /// bytes.
        case commit = 1
        /// From the inviter: its X25519 public key and its nonce, 32 bytes each.
        case key = 2
        /// From the joiner: what it committed to, 32 bytes each, and its sealed device key, 48 bytes.
        case open = 3
        /// From the inviter: the sealed hand-over.
        case welcome = 4
        /// From the joiner, when it has stored the account: its sealed device name.
        case done = 5
        /// From either: the raw value of a ``PairingEnd``.
        case end = 6

        fileprivate var bodySizes: ClosedRange<Int> {
            switch self {
            case .commit: 47...47
            case .key: 64...64
            case .open: 112...112
            case .welcome: 17...PairingMessage.maximumWelcome
            // A device name and the tag of its seal.
            case .done: 17...79
            case .end: 1...1
            }
        }
    }

    /// The most bytes of a sealed hand-over.
    package static let maximumWelcome = Int(UInt16.max) - 1
    static let version = Array("baton pairing/1".utf8)

    package let kind: Kind
    package let body: [UInt8]

    /// A message. Its body has to have a size that the kind allows.
    package init(_ kind: Kind, _ body: [UInt8]) {
        precondition(kind.bodySizes.contains(body.count), "\(kind) has a body of \(body.count) bytes")
        (self.kind, self.body) = (kind, body)
    }

    package var encoded: [UInt8] {
        var message: [UInt8] = []
        message.append(bigEndian: UInt16(body.count + 1))
        return message + [kind.rawValue] + body
    }
}

/// Why an attempt or an invitation ended. An open set: a reason without a name here keeps its number.
package struct PairingEnd: RawRepresentable, Sendable, Hashable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    package static let version = PairingEnd(rawValue: 1)
    /// The inviter is busy with another joiner.
    package static let busy = PairingEnd(rawValue: 2)
    package static let digits = PairingEnd(rawValue: 3)
    /// The time of the invitation, or of one step, is over.
    package static let time = PairingEnd(rawValue: 4)
    package static let turnedAway = PairingEnd(rawValue: 5)
    package static let malformed = PairingEnd(rawValue: 6)
}

/// A reason why pairing cannot go on.
package enum PairingError: Error, Equatable {
    /// The other side broke the rules, or somebody changed what it sent.
    case malformed
    case version
    case ended(PairingEnd)
    /// The connection broke, or this side closed it.
    case disconnected
    case timedOut
}

/// Reads one message from a stream of bytes.
///
/// Give it ``missing`` bytes at most, so that nothing behind the message is read. It never keeps more than the message,
/// and refuses a wrong type or length as soon as it has the three bytes in front.
package struct PairingReader: Sendable {
    private static let headerSize = 3

    private let expected: Set<PairingMessage.Kind>
    private var bytes: [UInt8] = []
    private var size = headerSize

    /// A reader of one message.
    ///
    /// - Parameter expected: the types that may come now, besides `end`.
    package init(expecting expected: Set<PairingMessage.Kind>) {
        self.expected = expected.union([.end])
    }

    /// How many bytes are to be read next, 1 at least.
    package var missing: Int { size - bytes.count }

    package mutating func receive(_ new: UnsafeRawBufferPointer) throws(PairingError) -> PairingMessage? {
        precondition(new.count <= missing, "the bytes behind a message belong to another")
        bytes += new
        guard missing == 0 else { return nil }
        guard let kind = PairingMessage.Kind(rawValue: bytes[2]), expected.contains(kind) else { throw .malformed }
        if bytes.count == Self.headerSize {
            size = 2 + (Int(bytes[0]) << 8 | Int(bytes[1]))
            guard kind.bodySizes.contains(size - Self.headerSize) else { throw .malformed }
            return nil
        }
        return PairingMessage(kind, Array(bytes.dropFirst(Self.headerSize)))
    }
}
