import Crypto
import FoundationEssentials
import Glibc

/// What an account key is good for: everything that the devices of an account share is derived from it.
///
/// HKDF is RFC 5869 with SHA-256; labels are ASCII, `<g>` is the generation in decimal:
///
///     PRK        = HKDF-Extract(salt "baton/1", secret)
///     CA key     = Ed25519 seed: HKDF-Expand(PRK, "ca-ed25519", 32)
///     account id = HKDF-Expand(PRK, "account-id", 32)[0..<8]
///     K_adv[g]   = HKDF-Expand(PRK, "advertisement/<g>", 32)
///     K_gate[g]  = HKDF-Expand(PRK, "gate/<g>", 32)
public struct AccountSecrets: Sendable {
    private let pseudoRandomKey: SecretBytes

    /// Derives the secrets of a key.
    public init(_ key: AccountKey) {
        // HKDF-Extract is HMAC with the salt as its key (RFC 5869, section 2.2).
        var code = key.secret.withUnsafeBytes {
            HMAC<SHA256>.authenticationCode(for: $0, using: SymmetricKey(data: Array("baton/1".utf8)))
        }
        self.pseudoRandomKey = code.withUnsafeBytes { SecretBytes(copying: $0) }
        withUnsafeMutableBytes(of: &code) { explicit_bzero($0.baseAddress!, $0.count) }
    }

    /// The seed of the Ed25519 key that signs the certificates of the account's devices.
    var certificateAuthoritySeed: SecretBytes { expand("ca-ed25519") }

    /// What tells one account from another on this device; never sent.
    public var accountID: AccountID {
        expand("account-id").withUnsafeBytes { AccountID(rawValue: $0.loadUnaligned(as: UInt64.self).bigEndian) }
    }

    /// The two keys of a generation.
    public func keys(generation: UInt32) -> GenerationKeys {
        GenerationKeys(
            generation: generation, advertisement: expand("advertisement/\(generation)"),
            gate: expand("gate/\(generation)"))
    }

    /// HKDF-Expand to 32 bytes.
    private func expand(_ label: String) -> SecretBytes {
        pseudoRandomKey.withUnsafeBytes { key in
            HKDF<SHA256>.expand(pseudoRandomKey: key, info: Array(label.utf8), outputByteCount: 32)
                .withUnsafeBytes { SecretBytes(copying: $0) }
        }
    }
}

/// The keys that all devices of an account hold until one is revoked; a revocation begins the next generation.
public struct GenerationKeys: Sendable, Equatable {
    /// How many bytes each key has.
    static let keyCount = 32

    /// The generation's number, from 0.
    public let generation: UInt32

    /// `K_adv[g]`: opens and seals advertisements.
    public let advertisement: SecretBytes

    /// `K_gate[g]`: makes and checks the gate's tokens.
    public let gate: SecretBytes
}

/// Eight bytes that tell one account from another, on this device only: they never cross the network.
public struct AccountID: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// The eight bytes, read big endian.
    public let rawValue: UInt64

    /// An id from its eight bytes, read big endian.
    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// Reads the 16 hexadecimal digits of ``description``; nil for anything else.
    init?(_ text: String) {
        guard text.utf8.count == 16, let value = UInt64(text, radix: 16), !text.hasPrefix("+") else { return nil }
        self.rawValue = value
    }

    /// Sixteen lower-case hexadecimal digits.
    public var description: String {
        let digits = String(rawValue, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }
}
