// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonTestSupport
import Foundation

/// The vectors in `Certificates/test-vectors.json`, which an independent implementation computed.
struct TestVectors: Decodable {
    struct AccountKeyVector: Decodable {
        let secret: Hex
        let text: String
        let versionOneText: String
    }

    struct Derivations: Decodable {
        let prk: Hex
        let caSeed: Hex
        let caPublicKey: Hex
        let accountID: Hex
        let advertisementKeys: [Hex]
        let gateKeys: [Hex]
        let joiningKey: Hex
    }

    struct Device: Decodable {
        let seed: Hex
        let publicKey: Hex
        let subjectPublicKeyInfo: Hex
        let id: String
        let idBytes: Hex
        let certificateName: String
    }

    struct Gate: Decodable {
        let clientNonce: Hex
        let gateNonce: Hex
        let serverName: String
    }

    struct Sealed: Decodable {
        struct Activity: Decodable {
            let id: Hex
            let type: String
            let teamTag: Hex
            let version: UInt32
            let flags: UInt8
            let documentSize: UInt64
            let age: UInt32
            let title: String
        }

        let salt: Hex
        let nonce: Hex
        let gateNonce: Hex
        let epoch: UInt64
        let sequence: UInt64
        let timeToLive: UInt16
        let port: UInt16
        let addresses: [String]
        let deviceName: String
        let otherActivities: UInt8
        let activity: Activity
        let plain: Hex
        let signature: Hex
        let txt: Hex
    }

    struct Idle: Decodable {
        let sequence: UInt64
        let otherActivities: UInt8
        let plain: Hex
        let signature: Hex
        let txt: Hex
    }

    /// The first list of the account: generation 1 of the derivations.
    struct Revocation: Decodable {
        let number: UInt32
        let revoked: [String]
        let list: Hex
        let digest: String
        let revision: String
        let joiningRandom: Hex
        let joiningSalt: Hex
        let wrappingKey: Hex
        let wrappedKeys: Hex
    }

    struct SealedKey: Decodable {
        let passphrase: String
        let salt: Hex
        let wrapped: Hex
    }

    /// The device key is that of ``Device``.
    struct Pairing: Decodable {
        let joinerPrivateKey: Hex
        let joinerPublicKey: Hex
        let joinerNonce: Hex
        let inviterPrivateKey: Hex
        let inviterPublicKey: Hex
        let inviterNonce: Hex
        let commitment: Hex
        let transcript: Hex
        let digits: String
        let openKey: Hex
        let wrapKey: Hex
        let sealedDeviceKey: Hex
    }

    let accountKey: AccountKeyVector
    let derivations: Derivations
    let caCertificate: Hex
    let device: Device
    let gate: Gate
    let advertisement: Sealed
    let idleAdvertisement: Idle
    let revocation: Revocation
    let sealedAccountKey: SealedKey
    let pairing: Pairing

    /// Reads the file beside the sources.
    static func load() throws -> TestVectors {
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let file = root.appendingPathComponent("Certificates/test-vectors.json")
        return try JSONDecoder().decode(TestVectors.self, from: Data(contentsOf: file))
    }
}

/// Bytes, written in the file as hexadecimal digits.
struct Hex: Decodable {
    let bytes: [UInt8]

    init(from decoder: any Decoder) throws {
        let text = Array(try decoder.singleValueContainer().decode(String.self).utf8)
        self.bytes = try stride(from: 0, to: text.count, by: 2).map { start in
            guard let byte = UInt8(String(decoding: text[start..<(start + 2)], as: UTF8.self), radix: 16) else {
                throw DecodingError.dataCorrupted(
                    .init(codingPath: decoder.codingPath, debugDescription: "not hexadecimal"))
            }
            return byte
        }
    }

    var secret: SecretBytes { SecretBytes(of: bytes) }
}

extension SecretBytes {
    /// A secret of known bytes, for tests alone.
    convenience init(of bytes: some Collection<UInt8>) {
        self.init(count: bytes.count) { $0.copyBytes(from: bytes) }
    }

    /// The bytes in the open, for tests alone.
    var revealed: [UInt8] { withUnsafeBytes { Array($0) } }

    /// The text in the open, for tests alone.
    var text: String { String(decoding: revealed, as: UTF8.self) }
}

/// Runs a command and waits for it.
func run(_ command: String..., input: [UInt8] = []) throws -> (status: Int32, output: String) {
    let (ending, output) = try ChildProcess.run(command, input: Data(input), error: .pipe)
    return (ending.status, output)
}
