// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonAccount

@Suite struct AdvertisementVectorTests {
    private let vectors: TestVectors
    private let keys: GenerationKeys

    init() throws {
        self.vectors = try TestVectors.load()
        self.keys = AccountSecrets(try #require(AccountKey(secret: vectors.accountKey.secret.secret)))
            .keys(generation: 0)
    }

    private func advertisement(idle: Bool) throws -> Advertisement {
        let vector = vectors.advertisement
        let activity = AdvertisedActivity(
            id: vector.activity.id.bytes, type: vector.activity.type, teamTag: vector.activity.teamTag.bytes,
            version: vector.activity.version, flags: .init(rawValue: vector.activity.flags),
            documentSize: vector.activity.documentSize, age: vector.activity.age, title: vector.activity.title)
        return Advertisement(
            device: try #require(DeviceID(vectors.device.id)), publicKey: vectors.device.publicKey.bytes,
            epoch: vector.epoch, sequence: idle ? vectors.idleAdvertisement.sequence : vector.sequence,
            gateNonce: vector.gateNonce.bytes,
            content: AdvertisementContent(
                timeToLive: vector.timeToLive, port: vector.port,
                addresses: vector.addresses.compactMap { NetworkAddress($0) }, deviceName: vector.deviceName,
                current: idle ? nil : activity,
                otherActivities: idle ? vectors.idleAdvertisement.otherActivities : vector.otherActivities))
    }

    @Test(arguments: [false, true])
    func sealingMakesTheVector(idle: Bool) throws {
        let vector = vectors.advertisement
        let expected =
            idle
            ? (vectors.idleAdvertisement.plain, vectors.idleAdvertisement.signature, vectors.idleAdvertisement.txt)
            : (vector.plain, vector.signature, vector.txt)
        let identity = try DeviceIdentity(
            issuedBy: AccountSecrets(try #require(AccountKey(secret: vectors.accountKey.secret.secret))),
            seed: vectors.device.seed.secret)
        let plain = try AdvertisementCodec.encode(try advertisement(idle: idle))
        #expect(plain == expected.0.bytes)
        let salt = vector.salt.bytes
        let signature = try identity.sign(AdvertisementSeal.signedMessage(salt: salt, plain: plain))
        #expect(signature == expected.1.bytes)
        let blob = try AdvertisementSeal.seal(
            plain: plain, signature: signature, salt: salt, key: keys.advertisement, nonce: vector.nonce.bytes)
        #expect(record(AdvertisementTXT.strings(of: blob)) == expected.2.bytes)
    }

    @Test func openingReadsTheVector() throws {
        let opener = AdvertisementOpener(keys: [keys], ownDevice: DeviceID(subjectPublicKeyInfo: []))
        #expect(try opener.open(vectors.advertisement.txt.bytes).advertisement == advertisement(idle: false))
        #expect(try opener.open(vectors.idleAdvertisement.txt.bytes).advertisement == advertisement(idle: true))
    }
}
