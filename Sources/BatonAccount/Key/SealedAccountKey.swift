// SPDX-License-Identifier: Apache-2.0

import BatonTLS
package import SystemPackage

/// The account key, encrypted under a passphrase.
///
/// An attacker with a stolen disk can guess passphrases, at the cost of one scrypt for each. Its form on disk:
///
///     "baton sealed account key/1" | u8 log2 N | u32 r | u32 p | salt (16) | wrapped (32)
///     wrapped = AES-256 key wrap (RFC 3394) by scrypt(passphrase, salt) of: secret (20) | zeros (4)
package struct SealedAccountKey: Sendable, Equatable {
    /// The bounds of a passphrase, in bytes. It is used as it is typed, without normalisation.
    package static let passphraseSizes = 8...256

    /// The cost of new seals: 128 MiB, and about one second. It is fixed, and stands in the file, so that a later
    /// version can raise it.
    private static let cost = Scrypt.Cost(logN: 17, r: 8, p: 3)

    private static let header = Array("baton sealed account key/1".utf8)
    private static let saltCount = 16
    private static let paddedCount = 24
    private static let wrappedCount = paddedCount + KeyWrap.overhead

    private let cost: Scrypt.Cost
    private let salt: [UInt8]
    private let wrapped: [UInt8]

    /// Encrypts a key. Takes about one second.
    package init(_ key: AccountKey, under passphrase: SecretBytes, salt: [UInt8]? = nil) throws(AccountError) {
        cost = Self.cost
        self.salt = salt ?? randomBytes(Self.saltCount)
        let padded = SecretBytes(count: Self.paddedCount) { target in
            key.secret.withUnsafeBytes { target.copyMemory(from: $0) }
        }
        wrapped = try padded.wrapped(with: Self.wrappingKey(passphrase, self.salt, cost))
    }

    /// Decrypts the key. Takes about one second.
    ///
    /// - Returns: nil if the passphrase is wrong, or if the key is another account's.
    package func open(with passphrase: SecretBytes, of account: AccountID) throws(AccountError) -> AccountKey? {
        let padded = SecretBytes(unwrapping: wrapped, with: try Self.wrappingKey(passphrase, salt, cost))
        guard let padded else { return nil }
        let secret = padded.withUnsafeBytes {
            SecretBytes(copying: UnsafeRawBufferPointer(rebasing: $0[..<AccountKey.secretCount]))
        }
        guard let key = AccountKey(secret: secret), AccountSecrets(key).accountID == account else { return nil }
        return key
    }

    private static func wrappingKey(
        _ passphrase: SecretBytes, _ salt: [UInt8], _ cost: Scrypt.Cost
    ) throws(AccountError) -> SecretBytes {
        do {
            return try SecretBytes(count: KeyWrap.keySize) { target in
                try passphrase.withUnsafeBytes { try Scrypt.derive(from: $0, salt: salt, cost: cost, into: target) }
            }
        } catch {
            throw .cryptography("\(error)")
        }
    }
}

extension SealedAccountKey {
    private static let encodedCount = header.count + 9 + saltCount + wrappedCount

    package var encoded: [UInt8] {
        var bytes = Self.header + [cost.logN]
        bytes.append(bigEndian: cost.r)
        bytes.append(bigEndian: cost.p)
        return bytes + salt + wrapped
    }

    /// Reads the form on disk.
    ///
    /// `log2 N` is 14 to 20, `r` is 8, and `p` is 1 to 16. Any other cost is refused, so that a damaged file asks for
    /// 1 GiB of memory at most.
    package init(decoding bytes: [UInt8], path: FilePath) throws(AccountError) {
        guard bytes.count == Self.encodedCount, bytes.starts(with: Self.header) else {
            throw .damaged(path: path, reason: "it is not what Baton wrote")
        }
        func number(at offset: Int) -> UInt32 { bytes[offset..<(offset + 4)].reduce(0) { $0 << 8 | UInt32($1) } }
        let start = Self.header.count
        cost = Scrypt.Cost(logN: bytes[start], r: number(at: start + 1), p: number(at: start + 5))
        guard (14...20).contains(cost.logN), cost.r == 8, (1...16).contains(cost.p) else {
            throw .damaged(path: path, reason: "its cost is out of range")
        }
        salt = Array(bytes[(start + 9)...].prefix(Self.saltCount))
        wrapped = Array(bytes.suffix(Self.wrappedCount))
    }
}
