// SPDX-License-Identifier: Apache-2.0

@testable import BatonAccount

/// The text that a person types or pipes in as the account key.
enum AccountKeyTarget: FuzzTarget {
    static let name = "account-key"
    static let maximumLength = 300

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        do throws(AccountKeyError) {
            let key = try AccountKey(parsing: SecretBytes(copying: bytes))
            let again = try AccountKey(parsing: key.formatted())
            expect(again == key, "the key reads as another one")
        } catch {
            expect(!error.description.isEmpty, "an error without a sentence")
        }
    }

    static func seeds() -> [[UInt8]] {
        let secret = SecretBytes(count: AccountKey.secretCount) { $0.copyBytes(from: UInt8(1)...20) }
        guard let key = AccountKey(secret: secret) else { return [] }
        let text = key.formatted().withUnsafeBytes { Array($0) }
        var mistyped = text
        mistyped[20] = UInt8(ascii: "q")
        var upper = text.map { $0 >= UInt8(ascii: "a") ? $0 ^ 0x20 : $0 }
        upper.insert(contentsOf: Array(" \n--".utf8), at: 9)
        // A later version, with a checksum that fits.
        let values: [UInt8] = [1] + [UInt8](repeating: 3, count: 40)
        let later = values + Bech32m.checksum(prefix: AccountKey.prefix, values: values)
        return [
            text, upper, mistyped, Array(text.dropLast()), text + text, Array("baton1".utf8), Array("b".utf8), [],
            AccountKey.prefix + Array("1".utf8) + later.map { Bech32m.alphabet[Int($0)] },
        ]
    }
}
