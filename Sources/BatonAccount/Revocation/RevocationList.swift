// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol
import Crypto
import FoundationEssentials

/// A signed list of the devices that no longer belong to the account.
///
/// The account key signs the next list; see ``AccountState``. A value is always genuine: it was signed here, or its
/// signature was verified when it was decoded. The article *Revocation* of `BatonProtocol` has the encoding.
package struct RevocationList: Sendable, Hashable {
    /// The most device ids in one list. A list of so many has 20,651 bytes.
    package static let maximumDevices = 1024

    /// The highest number; the first list has 1.
    ///
    /// The bound lets a joining device try the keys of all generations. A device that slept is met by every device that
    /// has the keys of its generation. A device that was present keeps all of them (``Account/maximumKeys``); a device
    /// that joined later has only the first and those since.
    package static let maximumNumber: UInt32 = 63

    static let format: UInt8 = 1
    private static let headerCount = 11
    private static let commitmentCount = 32
    private static let commitments = 3
    private static let signatureCount = 64
    private static let tailCount = commitments * commitmentCount + signatureCount
    package static let maximumSize = headerCount + maximumDevices * DeviceID.count + tailCount

    /// Rises with each revocation. In this version it is the generation of keys that the list begins as well; a list
    /// where the two differ is not taken.
    package let number: UInt32

    /// The devices that this list or an earlier one revoked.
    package let revoked: Set<DeviceID>

    /// The digest that tells lists of one number apart.
    package let digest: ListDigest

    /// The list as it travels and is stored, signature included.
    package let encoded: [UInt8]

    /// The keys of the generation that this list begins.
    package var generation: GenerationID { GenerationID(number: number, list: digest) }

    /// Signs a list.
    ///
    /// Equal numbers and ids give equal bytes, wherever and whenever they are signed.
    package init(
        number: UInt32, revoked: Set<DeviceID>, signedWith secrets: AccountSecrets
    ) throws(RevocationError) {
        guard (1...Self.maximumNumber).contains(number) else { throw .exhausted }
        guard revoked.count <= Self.maximumDevices else { throw .tooManyDevices }
        var bytes: [UInt8] = [Self.format]
        bytes.append(bigEndian: number)
        bytes.append(bigEndian: number)
        bytes.append(bigEndian: UInt16(revoked.count))
        for device in revoked.map(\.bytes).sorted(by: { $0.lexicographicallyPrecedes($1) }) { bytes += device }
        let digest = ListDigest(of: bytes)
        bytes += Self.commitments(to: secrets.keys(generation: number, list: digest))
        do {
            bytes += try secrets.sign(Self.signedMessage(bytes))
        } catch {
            throw .cryptography("\(error)")
        }
        self.number = number
        self.revoked = revoked
        self.digest = digest
        self.encoded = bytes
    }

    package init(decoding bytes: [UInt8], authority: AuthorityKey) throws(RevocationError) {
        guard bytes.count >= Self.headerCount + Self.tailCount, bytes.count <= Self.maximumSize else {
            throw .malformed
        }
        guard bytes[0] == Self.format else { throw .unknownFormat(bytes[0]) }
        let number = bytes[1..<5].reduce(0) { $0 << 8 | UInt32($1) }
        let generation = bytes[5..<9].reduce(0) { $0 << 8 | UInt32($1) }
        let count = Int(bytes[9]) << 8 | Int(bytes[10])
        let body = Self.headerCount + count * DeviceID.count
        guard number == generation, (1...Self.maximumNumber).contains(number), count <= Self.maximumDevices,
            bytes.count == body + Self.tailCount
        else { throw .malformed }
        let signature = bytes.suffix(Self.signatureCount)
        let message = Self.signedMessage(bytes.dropLast(Self.signatureCount))
        guard authority.isValid(signature: signature, of: message) else { throw .badSignature }
        var devices: Set<DeviceID> = []
        var last: ArraySlice<UInt8> = []
        for start in stride(from: Self.headerCount, to: body, by: DeviceID.count) {
            let id = bytes[start..<(start + DeviceID.count)]
            guard last.lexicographicallyPrecedes(id), let device = DeviceID(bytes: id) else { throw .malformed }
            devices.insert(device)
            last = id
        }
        self.number = number
        self.revoked = devices
        self.digest = ListDigest(of: bytes[..<body])
        self.encoded = bytes
    }

    /// Whether keys are the ones of the generation that this list begins.
    package func commits(to keys: GenerationKeys) -> Bool {
        let stored = encoded.dropLast(Self.signatureCount).suffix(Self.commitments * Self.commitmentCount)
        return keys.id == generation && stored.elementsEqual(Self.commitments(to: keys))
    }

    private static func commitments(to keys: GenerationKeys) -> [UInt8] {
        [keys.advertisement, keys.gate, keys.joining].flatMap { key in
            key.map { $0.withUnsafeBytes { bytes in withWipedStack { Array(SHA256.hash(data: bytes)) } } } ?? []
        }
    }

    static func signedMessage(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        Array("baton revocation list/1".utf8) + bytes
    }
}

extension ListDigest {
    /// The digest of a list's encoding up to its commitments.
    init(of bytes: some Sequence<UInt8>) {
        self.init(
            rawValue: SHA256.hash(data: Array("baton revocation digest/1".utf8) + bytes)
                .prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
    }
}

/// The public key of an account's authority. Verifies signatures of the account key.
package struct AuthorityKey: Sendable {
    private let bytes: [UInt8]

    init(publicKey bytes: [UInt8]) {
        self.bytes = bytes
    }

    func isValid(signature: some DataProtocol, of message: [UInt8]) -> Bool {
        guard let key = try? Curve25519.Signing.PublicKey(rawRepresentation: bytes) else { return false }
        return key.isValidSignature(signature, for: message)
    }
}

package enum RevocationError: Error, Equatable, CustomStringConvertible {
    case malformed
    case unknownFormat(UInt8)
    case badSignature
    /// The keys that came with the list are missing, or differ from its commitments.
    case wrongKeys
    case tooManyDevices
    case exhausted
    case tooLarge
    case cryptography(String)

    package var description: String {
        switch self {
        case .malformed: "this is not a revocation list"
        case .unknownFormat(let format):
            "the revocation list was written by a later Baton (format \(format)); install a newer Baton here"
        case .badSignature: "the revocation list was not signed with this account's key"
        case .wrongKeys: "the keys that came with the revocation list are not its own"
        case .tooManyDevices:
            "a list holds \(RevocationList.maximumDevices) devices; make a new account with `baton account rotate`"
        case .exhausted:
            "an account has \(RevocationList.maximumNumber) revocations; make a new one with `baton account rotate`"
        case .tooLarge:
            "too many revocation lists were signed apart; revoke a device once more where they are all known"
        case .cryptography(let detail):
            "the cryptography library refused what it must be able to do; reinstall Baton (\(detail))"
        }
    }
}
