// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol
import Crypto
import FoundationEssentials

/// Opens the advertisements of the account's other devices.
///
/// An immutable value: opening changes nothing, so that a stranger's record leaves no trace. Pass each opened
/// advertisement through a ``ReplayGuard``.
package struct AdvertisementOpener: Sendable {
    private let keys: [GenerationKeys]
    private let ownDevice: DeviceID

    /// An opener.
    ///
    /// - Parameters:
    ///   - keys: The generations to try, the likeliest first; each costs a key derivation and a decryption (tens of
    ///     microseconds in all).
    ///   - ownDevice: Whose advertisements are rejected as ``AdvertisementError/own``.
    package init(keys: [GenerationKeys], ownDevice: DeviceID) {
        self.keys = keys
        self.ownDevice = ownDevice
    }

    package func trying(_ keys: [GenerationKeys]) -> AdvertisementOpener {
        AdvertisementOpener(keys: keys, ownDevice: ownDevice)
    }

    /// Opens a raw TXT record: strings, each behind a byte with its length.
    ///
    /// - Returns: The verified advertisement, and the keys that opened it. Mint a ``GateToken`` with these keys.
    /// - Throws: ``AdvertisementError``.
    package func open(
        _ record: [UInt8]
    ) throws(AdvertisementError) -> (advertisement: Advertisement, keys: GenerationKeys) {
        let blob = try AdvertisementTXT.blob(in: record)
        for generation in keys {
            guard let opened = AdvertisementSeal.open(blob, key: generation.advertisement) else { continue }
            let advertisement = try opened.verified(
                salt: blob.prefix(AdvertisementSeal.saltCount), notOf: ownDevice)
            return (advertisement, generation)
        }
        throw .unopenable
    }
}

/// Makes this device's advertisements: counts their sequence, and holds salt and gate nonce of the period.
///
/// A value; the node keeps one for as long as it runs, under the epoch of this run.
package struct AdvertisementSealer: Sendable {
    private let identity: DeviceIdentity
    package private(set) var keys: GenerationKeys
    private let epoch: UInt64
    private var sequence: UInt64 = 0
    private var salt: [UInt8]

    /// The gate nonce of this period, which every advertisement of the period carries.
    package private(set) var gateNonce: [UInt8]

    /// A sealer for one run.
    ///
    /// - Parameters:
    ///   - identity: Whose advertisements.
    ///   - keys: The keys of the current generation.
    ///   - epoch: From ``AccountStore/nextEpoch(unixTime:)``, once per run.
    package init(identity: DeviceIdentity, keys: GenerationKeys, epoch: UInt64) {
        self.identity = identity
        self.keys = keys
        self.epoch = epoch
        self.salt = JoiningSalt.make(for: keys)
        self.gateNonce = randomBytes(GateToken.nonceCount)
    }

    /// Begins the next period, together with a new instance name. Nobody outside the account can link advertisements of
    /// two periods.
    ///
    /// - Parameter keys: those of another generation; nil, the default, keeps them.
    package mutating func beginPeriod(with keys: GenerationKeys? = nil) {
        self.keys = keys ?? self.keys
        salt = JoiningSalt.make(for: self.keys)
        gateNonce = randomBytes(GateToken.nonceCount)
    }

    /// Seals an advertisement, under the next sequence number.
    ///
    /// To renew an advertisement at half its time to live, seal it again.
    ///
    /// - Returns: The strings of the TXT record, 3, 250 and 250 bytes long, without length bytes.
    package mutating func seal(_ content: AdvertisementContent) throws(AdvertisementError) -> [[UInt8]] {
        let advertisement = Advertisement(
            device: identity.id, publicKey: identity.publicKey, epoch: epoch, sequence: sequence + 1,
            gateNonce: gateNonce, content: content)
        let plain = try AdvertisementCodec.encode(advertisement)
        let blob: [UInt8]
        do {
            let signature = try identity.sign(AdvertisementSeal.signedMessage(salt: salt, plain: plain))
            blob = try AdvertisementSeal.seal(
                plain: plain, signature: signature, salt: salt, key: keys.advertisement)
        } catch {
            throw .cryptography("\(error)")
        }
        sequence += 1
        return AdvertisementTXT.strings(of: blob)
    }
}

/// The salt of an advertisement, from which a joining device learns under which list it was sealed.
///
/// The keys of generation `g >= 1` depend on the digest of the list that began the generation. A device that has the
/// account key and has met no other device does not know that digest. From generation 1 on, the salt hides it under
/// `K_join[g]`: see the article *Advertisement* of `BatonProtocol`.
///
/// Without `K_join[g]` all salts look random, and those of two periods have nothing in common. A revoked device holds
/// no `K_join` of a later generation. It can get one only through a list that was signed on a device that had not heard
/// of the revocation, and then it learns a digest and no key.
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

    /// - Parameter ownDevice: Whose advertisements are rejected as ``AdvertisementError/own``.
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
    ) throws(AdvertisementError) -> (advertisement: Advertisement, keys: GenerationKeys) {
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
