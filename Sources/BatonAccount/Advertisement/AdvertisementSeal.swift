// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Crypto
import FoundationEssentials

/// The sealed form of an advertisement: see the article *Advertisement* of `BatonProtocol`. It always has 496 bytes.
enum AdvertisementSeal {
    static let saltCount = 16
    private static let nonceCount = 12
    private static let tagCount = 16
    static let signatureCount = 64
    static let size = saltCount + nonceCount + AdvertisementCodec.size + signatureCount + tagCount

    /// The message that the device signs. The label keeps the signature from meaning anything elsewhere, and the salt
    /// binds it to the period.
    static func signedMessage(salt: some Sequence<UInt8>, plain: [UInt8]) -> [UInt8] {
        Array("baton advertisement/1".utf8) + salt + plain
    }

    static func seal(
        plain: [UInt8], signature: [UInt8], salt: [UInt8], key: SecretBytes, nonce: [UInt8] = randomBytes(nonceCount)
    ) throws -> [UInt8] {
        let box = try AES.GCM.seal(
            plain + signature, using: derive(key, salt: salt), nonce: AES.GCM.Nonce(data: nonce))
        return salt + nonce + box.ciphertext + box.tag
    }

    /// The contents of a sealed form, whose signature is not verified yet.
    struct Opened {
        let plain: [UInt8]
        let signature: [UInt8]

        /// The advertisement, if the device that it names signed it.
        ///
        /// - Throws: `badSignature`, `own`, and what decoding it throws.
        func verified(
            salt: some Sequence<UInt8>, notOf ownDevice: DeviceID
        ) throws(AdvertisementError) -> Advertisement {
            let advertisement = try AdvertisementCodec.decode(plain)
            let isSigned = AdvertisementSeal.isValid(
                signature: signature, salt: salt, plain: plain, publicKey: advertisement.publicKey)
            guard isSigned else { throw .badSignature }
            guard advertisement.device != ownDevice else { throw .own(epoch: advertisement.epoch) }
            return advertisement
        }
    }

    /// Opens a sealed form. Returns nil if the key does not fit.
    static func open(_ blob: [UInt8], key: SecretBytes) -> Opened? {
        let body = saltCount + nonceCount
        guard
            blob.count == size, let nonce = try? AES.GCM.Nonce(data: blob[saltCount..<body]),
            let box = try? AES.GCM.SealedBox(
                nonce: nonce, ciphertext: blob[body..<(size - tagCount)], tag: blob[(size - tagCount)...]),
            let opened = try? AES.GCM.open(box, using: derive(key, salt: Array(blob[..<saltCount])))
        else { return nil }
        return Opened(
            plain: Array(opened.prefix(AdvertisementCodec.size)),
            signature: Array(opened.dropFirst(AdvertisementCodec.size)))
    }

    static func isValid(signature: [UInt8], salt: some Sequence<UInt8>, plain: [UInt8], publicKey: [UInt8]) -> Bool {
        guard let key = try? Curve25519.Signing.PublicKey(rawRepresentation: publicKey) else { return false }
        return key.isValidSignature(signature, for: signedMessage(salt: salt, plain: plain))
    }

    private static func derive(_ key: SecretBytes, salt: [UInt8]) -> SymmetricKey {
        key.withUnsafeBytes {
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: SymmetricKey(data: $0), salt: salt, info: Array("advertisement-seal/1".utf8),
                outputByteCount: 32)
        }
    }
}

/// The TXT record around a sealed advertisement (RFC 6763, section 6): `v=1`, then `a=` and `b=` with the two halves.
///
/// The record always has 506 bytes, length bytes included.
enum AdvertisementTXT {
    /// The size of every record that this code makes, length bytes included.
    static let size = 1 + 3 + 2 * (1 + maximumString)

    /// The longest string, in bytes, its length byte not counted.
    static let maximumString = 250

    private static let version: [UInt8] = Array("v=1".utf8)

    /// How many bytes of the sealed form one string carries, behind key and `=`.
    private static let part = maximumString - 2

    /// The strings of the record, without their length bytes.
    static func strings(of blob: [UInt8]) -> [[UInt8]] {
        assert(blob.count <= 2 * part, "the sealed form fits two strings, and fills them")
        return [version, Array("a=".utf8) + blob.prefix(part), Array("b=".utf8) + blob.dropFirst(part)]
    }

    /// The sealed form in a raw record.
    ///
    /// As RFC 6763 asks: keys in any case, the first of equal keys counts, unknown and empty strings are passed over.
    static func blob(in record: [UInt8]) throws(AdvertisementError) -> [UInt8] {
        guard let strings = TextRecord.decode(record) else { throw .malformedRecord }
        var values: [UInt8: ArraySlice<UInt8>] = [:]
        for string in strings where string.count >= 2 && string[1] == UInt8(ascii: "=") {
            let key = string[0] | 0x20
            if values[key] == nil { values[key] = string.dropFirst(2) }
        }
        guard let version = values[UInt8(ascii: "v")] else { throw .malformedRecord }
        guard version.elementsEqual(Self.version.dropFirst(2)) else { throw .unsupportedVersion }
        guard let first = values[UInt8(ascii: "a")], let second = values[UInt8(ascii: "b")] else {
            throw .malformedRecord
        }
        let blob = Array(first + second)
        guard blob.count == AdvertisementSeal.size else { throw .malformedRecord }
        return blob
    }
}
