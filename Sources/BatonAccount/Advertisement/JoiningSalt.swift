// SPDX-License-Identifier: Apache-2.0

import Crypto
import FoundationEssentials

/// The salt of an advertisement, from which a joining device learns under which list it was sealed.
///
/// The keys of generation `g >= 1` depend on the digest of the list that began the generation. A device that has the
/// account key and has met no other device does not know that digest. From generation 1 on, the 16 bytes of salt are
/// therefore, with 8 random bytes r,
///
///     r | digest XOR HMAC-SHA256(K_join[g], "joining-salt/1" || r)[0..<8]
///
/// and 16 random bytes in generation 0. Without `K_join[g]` both look random, and the salts of two periods have nothing
/// in common. A revoked device holds no `K_join` of a later generation. It can get one only through a list that was
/// signed on a device that had not heard of the revocation, and then it learns a digest and no key.
enum JoiningSalt {
    private static let randomCount = 8
    private static let label = Array("joining-salt/1".utf8)

    /// A fresh salt for a period of a generation.
    static func make(for keys: GenerationKeys) -> [UInt8] {
        guard let joining = keys.joining, let list = keys.id.list else {
            return randomBytes(AdvertisementSeal.saltCount)
        }
        let random = randomBytes(randomCount)
        var digest: [UInt8] = []
        digest.append(bigEndian: list.rawValue ^ mask(joining, random))
        return random + digest
    }

    /// The digest in a salt, if it was made with this key: any salt gives one, and only opening the advertisement tells
    /// whether it is right.
    static func digest(in salt: some Collection<UInt8>, joining: SecretBytes) -> ListDigest {
        let hidden = salt.dropFirst(randomCount).reduce(0) { $0 << 8 | UInt64($1) }
        return ListDigest(rawValue: hidden ^ mask(joining, Array(salt.prefix(randomCount))))
    }

    private static func mask(_ key: SecretBytes, _ random: [UInt8]) -> UInt64 {
        key.withUnsafeBytes {
            HMAC<SHA256>.authenticationCode(for: label + random, using: SymmetricKey(data: $0))
                .prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        }
    }
}

/// Opens advertisements with the account key itself, for a device that joins.
package struct JoiningOpener: Sendable {
    /// The generations that are tried: all that an account can have.
    package static let generations: ClosedRange<UInt32> = 0...RevocationList.maximumNumber

    private let secrets: AccountSecrets
    private let joining: [SecretBytes]
    private let ownDevice: DeviceID

    /// - Parameter ownDevice: Whose advertisements are rejected as ``AdvertisementRejection/own``.
    package init(secrets: AccountSecrets, ownDevice: DeviceID) {
        self.secrets = secrets
        self.ownDevice = ownDevice
        joining = Self.generations.map(secrets.joiningKey(generation:))
    }

    /// Opens a raw TXT record that was sealed under any list.
    ///
    /// Costs at most 64 key derivations and decryptions, about 2 ms, for a record that no key opens.
    package func open(
        _ record: [UInt8]
    ) throws(AdvertisementRejection) -> (advertisement: Advertisement, keys: GenerationKeys) {
        let blob = try AdvertisementTXT.blob(in: record)
        let salt = blob.prefix(AdvertisementSeal.saltCount)
        for generation in Self.generations {
            let list =
                generation == 0 ? nil : JoiningSalt.digest(in: salt, joining: joining[Int(generation)])
            let key = secrets.advertisementKey(generation: generation, list: list)
            guard let opened = AdvertisementSeal.open(blob, key: key) else { continue }
            return (
                try opened.verified(salt: salt, notOf: ownDevice), secrets.keys(generation: generation, list: list)
            )
        }
        throw .unopenable
    }
}
