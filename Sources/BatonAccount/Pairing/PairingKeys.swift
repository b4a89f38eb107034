// SPDX-License-Identifier: Apache-2.0

import Crypto
import FoundationEssentials

/// The values that both sides of an attempt derive from their exchange: see the article *Pairing* of `BatonProtocol`.
package struct PairingKeys: Sendable {
    /// The purpose of a key. Each key seals one message.
    package enum Use: String, Sendable {
        case open, welcome, wrap, done
    }

    package static let overhead = 16

    /// The six digits that the joiner shows and the inviter asks for: a short authentication string.
    package let digits: String

    private let pseudoRandomKey: SecretBytes

    init(secret: SecretBytes, transcript: [UInt8]) {
        pseudoRandomKey = SecretDerivation.extract(secret, salt: transcript)
        // 64 bits, so that no digits are likelier than others by more than 10^6 in 2^64.
        let number = SecretDerivation.expand(pseudoRandomKey, "pairing digits/1").withUnsafeBytes {
            UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)) % 1_000_000
        }
        digits = String(String(1_000_000 + number).dropFirst())
    }

    /// Wraps the keys of generations within the hand-over, so that no buffer holds them in the clear (RFC 3394).
    package var wrapping: SecretBytes { key(.wrap) }

    /// The key of a use. It is visible for the test vectors.
    func key(_ use: Use) -> SecretBytes { SecretDerivation.expand(pseudoRandomKey, "pairing \(use.rawValue)/1") }

    /// Seals the one message of a use: AES-256-GCM, ciphertext and tag.
    package func seal(_ plain: [UInt8], _ use: Use) throws -> [UInt8] {
        let box = try AES.GCM.seal(plain, using: symmetricKey(use), nonce: Self.nonce())
        return Array(box.ciphertext + box.tag)
    }

    /// Opens the message of a use; nil if another key sealed it, or if it was changed.
    package func open(_ sealed: [UInt8], _ use: Use) -> [UInt8]? {
        guard
            let nonce = try? Self.nonce(),
            let box = try? AES.GCM.SealedBox(
                nonce: nonce, ciphertext: sealed.dropLast(Self.overhead), tag: sealed.suffix(Self.overhead)),
            let plain = try? AES.GCM.open(box, using: symmetricKey(use))
        else { return nil }
        return Array(plain)
    }

    /// Zeros, since each key seals one message.
    private static func nonce() throws -> AES.GCM.Nonce { try AES.GCM.Nonce(data: [UInt8](repeating: 0, count: 12)) }

    private func symmetricKey(_ use: Use) -> SymmetricKey { key(use).withUnsafeBytes { SymmetricKey(data: $0) } }
}

/// One side's ephemeral key and nonce.
struct PairingContribution: Sendable {
    /// How many bytes a nonce, a public key and a commitment have.
    static let count = 32
    let publicKey: [UInt8]
    let nonce: [UInt8]
    private let privateKey: SecretBytes

    init(privateKey: SecretBytes = .random(count: count), nonce: [UInt8] = randomBytes(count)) {
        self.privateKey = privateKey
        self.nonce = nonce
        do {
            publicKey = try Array(Self.agreementKey(privateKey).publicKey.rawRepresentation)
        } catch {
            preconditionFailure("X25519 takes every private key of 32 bytes: \(error)")
        }
    }

    /// The value that a joiner shows before it knows the inviter's key.
    static func commitment(publicKey: [UInt8], nonce: [UInt8]) -> [UInt8] {
        Array(SHA256.hash(data: Array("baton pairing commitment/1".utf8) + publicKey + nonce))
    }

    static func transcript(
        commitment: [UInt8], inviter: (publicKey: [UInt8], nonce: [UInt8]), joiner: (publicKey: [UInt8], nonce: [UInt8])
    ) -> [UInt8] {
        Array(
            SHA256.hash(
                data: Array("baton pairing transcript/1".utf8) + commitment + inviter.publicKey + inviter.nonce
                    + joiner.publicKey + joiner.nonce))
    }

    /// The keys that this side shares with the holder of another public key.
    ///
    /// - Throws: `malformed` for a key of low order, whose shared secret is zero whatever this side's key is (RFC 7748,
    ///   section 6.1).
    func keys(with publicKey: [UInt8], transcript: [UInt8]) throws(PairingError) -> PairingKeys {
        let secret: SecretBytes
        do {
            secret = try withWipedStack { () throws in
                let other = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: publicKey)
                return try Self.agreementKey(privateKey).sharedSecretFromKeyAgreement(with: other).withUnsafeBytes {
                    SecretBytes(copying: $0)
                }
            }
        } catch {
            throw .malformed
        }
        guard secret != SecretBytes(count: Self.count, filledBy: { _ in }) else { throw .malformed }
        return PairingKeys(secret: secret, transcript: transcript)
    }

    private static func agreementKey(_ privateKey: SecretBytes) throws -> Curve25519.KeyAgreement.PrivateKey {
        try privateKey.withUnsafeBytes { try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: $0) }
    }
}

struct PairingInviter: Sendable {
    private let own: PairingContribution
    private let commitment: [UInt8]

    /// Begins an exchange. The key and the nonce are drawn now, after the joiner has committed to its own.
    init(commit: PairingMessage, _ own: PairingContribution = PairingContribution()) throws(PairingError) {
        let version = PairingMessage.version
        guard commit.kind == .commit, commit.body.starts(with: version.dropLast()) else { throw .malformed }
        guard commit.body.starts(with: version) else { throw .version }
        commitment = Array(commit.body.dropFirst(version.count))
        self.own = own
    }

    var key: PairingMessage { PairingMessage(.key, own.publicKey + own.nonce) }

    /// Takes the opening of the commitment.
    ///
    /// - Returns: the Ed25519 public key of the new device, 32 bytes, and the keys.
    func receiveOpen(_ message: PairingMessage) throws(PairingError) -> (deviceKey: [UInt8], keys: PairingKeys) {
        guard message.kind == .open else { throw .malformed }
        let (publicKey, nonce) = message.contribution
        guard PairingContribution.commitment(publicKey: publicKey, nonce: nonce) == commitment else { throw .malformed }
        let keys = try own.keys(
            with: publicKey,
            transcript: PairingContribution.transcript(
                commitment: commitment, inviter: (own.publicKey, own.nonce), joiner: (publicKey, nonce)))
        guard let deviceKey = keys.open(Array(message.body.dropFirst(64)), .open), deviceKey.count == 32 else {
            throw .malformed
        }
        return (deviceKey, keys)
    }
}

package struct PairingJoiner: Sendable {
    private let own: PairingContribution
    private let deviceKey: [UInt8]

    /// - Parameter deviceKey: the Ed25519 public key of the new device, 32 bytes.
    package init(deviceKey: [UInt8]) {
        self.init(deviceKey: deviceKey, PairingContribution())
    }

    init(deviceKey: [UInt8], _ own: PairingContribution) {
        self.deviceKey = deviceKey
        self.own = own
    }

    package var commit: PairingMessage { PairingMessage(.commit, PairingMessage.version + commitment) }

    private var commitment: [UInt8] { PairingContribution.commitment(publicKey: own.publicKey, nonce: own.nonce) }

    /// Takes the inviter's answer.
    ///
    /// - Returns: the opening of the commitment, and the keys. It is the first moment at which anybody can know the
    ///   digits.
    package func receiveKey(_ message: PairingMessage) throws(PairingError) -> (open: PairingMessage, keys: PairingKeys)
    {
        guard message.kind == .key else { throw .malformed }
        let (publicKey, nonce) = message.contribution
        let keys = try own.keys(
            with: publicKey,
            transcript: PairingContribution.transcript(
                commitment: commitment, inviter: (publicKey, nonce), joiner: (own.publicKey, own.nonce)))
        guard let sealed = try? keys.seal(deviceKey, .open) else { throw .malformed }
        return (PairingMessage(.open, own.publicKey + own.nonce + sealed), keys)
    }
}

extension PairingMessage {
    /// The public key and the nonce that a ``Kind/key`` or an ``Kind/open`` begins with.
    fileprivate var contribution: (publicKey: [UInt8], nonce: [UInt8]) {
        let count = PairingContribution.count
        return (Array(body[..<count]), Array(body[count..<2 * count]))
    }
}
