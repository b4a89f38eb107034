// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol
import Crypto
import FoundationEssentials

/// The secrets that the devices of an account share, all derived from the account key.
///
/// The article *AccountAndKeys* of `BatonProtocol` has the derivations.
package struct AccountSecrets: Sendable {
    private let pseudoRandomKey: SecretBytes

    package init(_ key: AccountKey) {
        pseudoRandomKey = SecretDerivation.extract(key.secret, salt: Array("baton/1".utf8))
    }

    /// The seed of the Ed25519 key that signs the certificates of the account's devices.
    var certificateAuthoritySeed: SecretBytes { expand("ca-ed25519") }

    /// Signs with the authority's key (Ed25519, RFC 8032); 64 bytes.
    func sign(_ message: [UInt8]) throws -> [UInt8] {
        try withWipedStack { () throws in
            try Array(CertificateProfile.signingKey(certificateAuthoritySeed).signature(for: message))
        }
    }

    /// The id that tells accounts apart on this device; never sent.
    package var accountID: AccountID {
        expand("account-id").withUnsafeBytes { AccountID(rawValue: $0.loadUnaligned(as: UInt64.self).bigEndian) }
    }

    /// The keys of a generation.
    ///
    /// - Parameter list: the list that began it, which its label includes, so that two lists signed apart under one
    ///   number have different keys; nil for generation 0.
    package func keys(generation: UInt32, list: ListDigest? = nil) -> GenerationKeys {
        GenerationKeys(
            id: GenerationID(number: generation, list: list),
            advertisement: advertisementKey(generation: generation, list: list),
            gate: expand("gate/" + label(generation, list)),
            joining: list == nil ? nil : joiningKey(generation: generation))
    }

    /// That key of a generation which opens its advertisements: see ``keys(generation:list:)``.
    func advertisementKey(generation: UInt32, list: ListDigest?) -> SecretBytes {
        expand("advertisement/" + label(generation, list))
    }

    private func label(_ generation: UInt32, _ list: ListDigest?) -> String {
        list.map { "\(generation)/\($0)" } ?? "\(generation)"
    }

    /// The key with which the holder of the account key finds the digest of a generation's list; it is the same for
    /// all lists of one number.
    func joiningKey(generation: UInt32) -> SecretBytes { expand("joining/\(generation)") }

    private func expand(_ label: String) -> SecretBytes { SecretDerivation.expand(pseudoRandomKey, label) }
}

/// Eight bytes that tell one account from another, on this device only: they never cross the network.
package struct AccountID: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    package let rawValue: UInt64

    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// Reads the 16 hexadecimal digits of ``description``; nil for anything else.
    init?(_ text: String) {
        guard text.utf8.count == 16, let value = UInt64(text, radix: 16), !text.hasPrefix("+") else { return nil }
        self.rawValue = value
    }

    package var description: String {
        let digits = String(rawValue, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }
}

/// The keys that all devices of an account hold until one is revoked; a revocation begins the next generation.
package struct GenerationKeys: Sendable, Equatable {
    static let keyCount = 32
    package let id: GenerationID

    /// `K_adv[g]`: opens and seals advertisements.
    package let advertisement: SecretBytes

    /// `K_gate[g]`: makes and checks the gate's tokens.
    package let gate: SecretBytes

    /// `K_join[g]`: hides the list's digest in the salt of advertisements; nil for generation 0.
    let joining: SecretBytes?
    package var generation: UInt32 { id.number }
}

extension GenerationKeys {
    /// The keys in one piece: K_adv, K_gate and, from generation 1 on, K_join; 64 or 96 bytes.
    package var concatenated: SecretBytes {
        let parts = [advertisement, gate] + (joining.map { [$0] } ?? [])
        return SecretBytes(count: parts.count * Self.keyCount) { target in
            for (index, part) in parts.enumerated() {
                part.withUnsafeBytes { target[(index * Self.keyCount)...].copyBytes(from: $0) }
            }
        }
    }

    /// The keys from ``concatenated``; nil for another count.
    package init?(id: GenerationID, concatenated bytes: SecretBytes) {
        guard bytes.count == (id.list == nil ? 2 : 3) * Self.keyCount else { return nil }
        func part(_ index: Int) -> SecretBytes {
            bytes.withUnsafeBytes {
                let start = index * Self.keyCount
                return SecretBytes(copying: UnsafeRawBufferPointer(rebasing: $0[start..<(start + Self.keyCount)]))
            }
        }
        self.init(id: id, advertisement: part(0), gate: part(1), joining: id.list == nil ? nil : part(2))
    }
}
