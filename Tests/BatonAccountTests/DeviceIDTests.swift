// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Testing

@testable import BatonAccount

@Suite struct DeviceIDTests {
    @Test func theVectorAgrees() throws {
        let device = try TestVectors.load().device
        let id = DeviceID(ed25519PublicKey: device.publicKey.bytes)
        #expect(Ed25519DER.subjectPublicKeyInfo(device.publicKey.bytes) == device.subjectPublicKeyInfo.bytes)
        #expect(id == DeviceID(subjectPublicKeyInfo: device.subjectPublicKeyInfo.bytes))
        #expect(id.bytes == device.idBytes.bytes)
        #expect(id.description == device.id)
        #expect(id.certificateName == device.certificateName)
        #expect(id.short == String(device.id.prefix(8)))
    }

    @Test func textFormsReadBack() throws {
        let text = try TestVectors.load().device.id
        let id = try #require(DeviceID(text))
        #expect(DeviceID(text.uppercased()) == id)
        #expect(DeviceID(bytes: id.bytes) == id)
        #expect(DeviceID(String(text.dropLast())) == nil)
        #expect(DeviceID(text + "a") == nil)
        #expect(DeviceID("1" + text.dropFirst()) == nil)
        #expect(DeviceID(bytes: id.bytes.dropLast()) == nil)
    }

    /// RFC 4648, section 10, in lower case and without padding.
    @Test(arguments: [
        ("", ""), ("f", "my"), ("fo", "mzxq"), ("foo", "mzxw6"), ("foob", "mzxw6yq"), ("fooba", "mzxw6ytb"),
        ("foobar", "mzxw6ytboi"),
    ])
    func base32Vectors(_ plain: String, _ text: String) {
        #expect(Base32.encode(plain.utf8) == text)
        #expect(Base32.decode(text) == Array(plain.utf8))
    }

    @Test(arguments: ["m", "mz", "mzx", "my======", "m1", "mzxw6ytboia"])
    func base32RefusesWhatItWouldNotWrite(_ text: String) {
        #expect(Base32.decode(text) == nil)
    }

    @Test func privateKeysReadBack() throws {
        let seed = SecretBytes.random(count: 32)
        let encoded = Ed25519DER.privateKey(seed: seed)
        #expect(encoded.count == 48)
        #expect(Ed25519DER.seed(privateKey: encoded) == seed)
        #expect(Ed25519DER.seed(privateKey: SecretBytes(of: encoded.revealed.dropLast())) == nil)
        #expect(Ed25519DER.seed(privateKey: SecretBytes(of: [0x31] + encoded.revealed.dropFirst())) == nil)
    }
}
