// SPDX-License-Identifier: Apache-2.0

/// Makes this device's advertisements: counts their sequence, and holds salt and gate nonce of the period.
///
/// A value; the node keeps one for as long as it runs, under the epoch of this run.
package struct AdvertisementSealer: Sendable {
    private let identity: DeviceIdentity
    /// The keys that advertisements are sealed with now.
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
    package mutating func beginPeriod() {
        salt = JoiningSalt.make(for: keys)
        gateNonce = randomBytes(GateToken.nonceCount)
    }

    /// Begins the next period under the keys of another generation.
    package mutating func beginPeriod(with keys: GenerationKeys) {
        self.keys = keys
        beginPeriod()
    }

    /// Seals an advertisement, under the next sequence number.
    ///
    /// To renew an advertisement at half its time to live, seal it again.
    ///
    /// - Returns: The strings of the TXT record, 3, 250 and 250 bytes long, without length bytes.
    package mutating func seal(_ content: AdvertisementContent) throws(AdvertisementError) -> [[UInt8]] {
        guard sequence < .max else { throw .exhausted }
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
