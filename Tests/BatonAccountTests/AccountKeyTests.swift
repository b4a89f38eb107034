// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Testing

@testable import BatonAccount

@Suite struct AccountKeyTests {
    private let vectors: TestVectors

    init() throws {
        self.vectors = try TestVectors.load()
    }

    private func parse(_ text: String) throws(AccountKeyError) -> AccountKey {
        try AccountKey(parsing: SecretBytes(of: text.utf8))
    }

    @Test func theVectorReadsAndWrites() throws {
        let key = try #require(AccountKey(secret: vectors.accountKey.secret.secret))
        #expect(key.formatted().text == vectors.accountKey.text)
        #expect(try parse(vectors.accountKey.text) == key)
    }

    @Test func everyKeyComesBack() throws {
        for _ in 0..<50 {
            let key = AccountKey()
            let text = key.formatted().text
            #expect(text.utf8.count == 55)
            #expect(try parse(text) == key)
        }
        for byte in [UInt8.min, .max] {
            let key = try #require(AccountKey(secret: SecretBytes(of: [UInt8](repeating: byte, count: 20))))
            #expect(try parse(key.formatted().text) == key)
        }
    }

    @Test func aSecretHasTwentyBytes() {
        #expect(AccountKey(secret: SecretBytes(of: [UInt8](repeating: 0, count: 19))) == nil)
        #expect(AccountKey(secret: SecretBytes(of: [UInt8](repeating: 0, count: 21))) == nil)
    }

    @Test func caseSpacesAndDashesDoNotMatter() throws {
        let text = vectors.accountKey.text
        let key = try parse(text)
        let plain = text.filter { $0 != "-" }
        for variant in [
            plain, plain.uppercased(), text.uppercased(), " \t" + text + "\r\n", plain.map { "\($0) " }.joined(),
            String(plain.enumerated().map { $0.offset % 2 == 0 ? Character($0.element.uppercased()) : $0.element }),
        ] {
            #expect(try parse(variant) == key)
        }
    }

    @Test func eachMistakeHasItsError() {
        let text = vectors.accountKey.text
        #expect(throws: AccountKeyError.empty) { try parse("") }
        #expect(throws: AccountKeyError.empty) { try parse(" - \n") }
        #expect(throws: AccountKeyError.wrongPrefix) { try parse("hunter2") }
        #expect(throws: AccountKeyError.wrongPrefix) { try parse("baton") }
        #expect(throws: AccountKeyError.wrongPrefix) { try parse("botan1" + text.dropFirst(6)) }
        #expect(throws: AccountKeyError.wrongPrefix) { try parse(String(text.dropFirst(6))) }
        for text in [
            "baton1", String(text.dropLast()), text + "q", "baton1" + String(repeating: "q", count: 194),
        ] { #expect(throws: AccountKeyError.mistyped) { try parse(text) } }
        #expect(throws: AccountKeyError.unknownVersion(1)) { try parse(vectors.accountKey.versionOneText) }
        for character in ["b", "i", "o", "1", "é", "\0", "."] {
            #expect(throws: AccountKeyError.mistyped) {
                try parse("baton1-qqqq-s\(character)qc" + text.dropFirst(16))
            }
        }
    }

    /// Bech32 and Bech32m differ in one constant; a text made with the wrong one is no key.
    @Test func theChecksumIsBech32m() {
        let values = [UInt8](repeating: 0, count: 33)
        let right = Bech32m.checksum(prefix: AccountKey.prefix, values: values)
        // The difference between both checksums is the difference between their constants.
        let difference: UInt32 = 0x2bc8_30a3 ^ 1
        let wrong = right.enumerated().map { $0.element ^ UInt8((difference >> (5 * (5 - UInt32($0.offset)))) & 31) }
        let text = "baton1" + String(decoding: (values + wrong).map { Bech32m.alphabet[Int($0)] }, as: UTF8.self)
        #expect(throws: AccountKeyError.mistyped) { try parse(text) }
    }

    @Test func aSingleWrongCharacterIsFound() {
        let characters = Array(vectors.accountKey.text.utf8)
        for index in 7..<characters.count where characters[index] != UInt8(ascii: "-") {
            // One other character suffices: the code is linear, and each place has its turn.
            for replacement in Bech32m.alphabet.dropFirst(index % 31).prefix(2) where replacement != characters[index] {
                var changed = characters
                changed[index] = replacement
                #expect(throws: AccountKeyError.self) { try AccountKey(parsing: SecretBytes(of: changed)) }
            }
        }
    }

    @Test func severalWrongCharactersAreFound() {
        var random = SeededGenerator()
        let seed = random.description
        let characters = Array(vectors.accountKey.text.utf8.filter { $0 != UInt8(ascii: "-") })
        for _ in 0..<100 {
            var changed = characters
            for _ in 0..<Int.random(in: 2...4, using: &random) {
                changed[Int.random(in: 6..<changed.count, using: &random)] = Bech32m.alphabet.randomElement(
                    using: &random)!
            }
            if changed == characters { continue }
            #expect(throws: AccountKeyError.self, "\(seed)") { try AccountKey(parsing: SecretBytes(of: changed)) }
        }
    }

    @Test func sentencesHelp() {
        let sentences: [(AccountKeyError, String)] = [
            (.empty, "baton account create"), (.wrongPrefix, "begins with baton1"),
            (.mistyped, "has 39 characters behind baton1"), (.unknownVersion(1), "newer Baton"),
        ]
        for (error, part) in sentences { #expect("\(error)".contains(part), "\(error)") }
    }
}
