// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage
import Testing

@testable import BatonAccount

@Suite("The account key under a passphrase")
struct SealedAccountKeyTests {
    private static let path = FilePath("account-key")
    private static let passphrase = SecretBytes(of: Array("correct horse battery staple".utf8))

    /// The key of the test vectors, sealed once for all tests of this suite.
    private static let scene:
        Result<(key: AccountKey, account: AccountID, encoded: [UInt8], seconds: Double), any Error> =
            Result {
                let key = try #require(AccountKey(secret: try TestVectors.load().accountKey.secret.secret))
                let before = processorTime()
                let sealed = try SealedAccountKey(key, under: passphrase, salt: Array(0x10...0x1f))
                return (key, AccountSecrets(key).accountID, sealed.encoded, processorTime() - before)
            }

    /// The time that this thread has used, in seconds.
    private static func processorTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    @Test("It is sealed as the vector says")
    func vector() throws {
        let vector = try TestVectors.load().sealedAccountKey
        let encoded = try Self.scene.get().encoded
        #expect(Array(encoded.suffix(32)) == vector.wrapped.bytes)
        #expect(
            Array("baton sealed account key/1".utf8) + [17, 0, 0, 0, 8, 0, 0, 0, 3] + vector.salt.bytes
                == Array(encoded.dropLast(32)))
        #expect(vector.passphrase == "correct horse battery staple")
    }

    @Test("A guess costs at least half a second and 64 MiB")
    func cost() throws {
        let scene = try Self.scene.get()
        #expect(scene.seconds >= 0.5)
        #expect(128 * 8 << Int(scene.encoded[26]) >= 64 << 20)
    }

    @Test("It opens with its passphrase, and with no other")
    func opening() throws {
        let scene = try Self.scene.get()
        let sealed = try SealedAccountKey(decoding: scene.encoded, path: Self.path)
        #expect(try sealed.open(with: Self.passphrase, of: scene.account) == scene.key)
        #expect(try sealed.open(with: SecretBytes(of: Array("correct horse".utf8)), of: scene.account) == nil)
        #expect(try sealed.open(with: Self.passphrase, of: AccountID(rawValue: 1)) == nil)
    }

    @Test("A file that was changed in any byte is refused, or opens nothing")
    func damage() throws {
        let scene = try Self.scene.get()
        for length in 0..<scene.encoded.count {
            #expect(throws: AccountError.self) {
                try SealedAccountKey(decoding: Array(scene.encoded.prefix(length)), path: Self.path)
            }
        }
        for index in 0..<26 {
            var changed = scene.encoded
            changed[index] ^= 1
            #expect(throws: AccountError.self) { try SealedAccountKey(decoding: changed, path: Self.path) }
        }
        // The salt, and both ends of the wrapped key.
        for index in [35, 51, 82] {
            var changed = scene.encoded
            changed[index] ^= 1
            let sealed = try SealedAccountKey(decoding: changed, path: Self.path)
            #expect(try sealed.open(with: Self.passphrase, of: scene.account) == nil)
        }
    }

    @Test(
        "A file that asks for more memory or time than its bounds is refused",
        arguments: [[13, 8, 3], [21, 8, 3], [17, 7, 3], [17, 9, 3], [17, 8, 0], [17, 8, 17]] as [[UInt8]])
    func bounds(cost: [UInt8]) throws {
        var encoded = try Self.scene.get().encoded
        encoded.replaceSubrange(26..<35, with: [cost[0], 0, 0, 0, cost[1], 0, 0, 0, cost[2]])
        #expect(throws: AccountError.damaged(path: Self.path, reason: "its cost is out of range")) {
            try SealedAccountKey(decoding: encoded, path: Self.path)
        }
    }
}
