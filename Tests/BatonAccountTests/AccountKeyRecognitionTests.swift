// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Testing

@testable import BatonAccount

@Suite struct AccountKeyRecognitionTests {
    @Test("A whole key is found however it is written, and a text that has none is none")
    func whole() {
        for _ in 0..<20 {
            let key = AccountKey().formatted().text
            let bare = String(key.dropFirst(7))
            for text in [
                key, bare, key.uppercased(), "“\(key)”", "key=\(key)", "x\(bare.filter { $0 != "-" })x", " \(key) ",
                key.replacing("-", with: " "), key.replacing("-", with: "–"), key.map { "\($0)," }.joined(),
            ] { #expect(AccountKey.isWhole(in: text.utf8)) }
            // A character less is another key's, or none.
            #expect(!AccountKey.isWhole(in: key.dropLast().utf8))
            #expect(!AccountKey.isWhole(in: bare.dropFirst().utf8))
        }
        #expect(!AccountKey.isWhole(in: "".utf8))
    }

    @Test("A key is known by its beginning, mistyped or not whole")
    func begun() throws {
        // One beginning of a key in 700 has no digit, so the seed is fixed.
        var random = SeededGenerator(seed: 11)
        for _ in 0..<20 {
            let secret = SecretBytes(of: random.bytes(AccountKey.secretCount))
            let key = try #require(AccountKey(secret: secret)).formatted().text
            var mistyped = Array(key)
            mistyped[12] = "o"
            mistyped[18] = mistyped[18] == "q" ? "p" : "q"
            var missing = Array(key)
            missing.remove(at: 13)
            for text in [
                key, key.uppercased(), String(mistyped), String(missing), String(key.dropLast(20)), "key=\(key)",
                key.replacing("-", with: " "), key.filter { $0 != "-" }, "baton1 and \(key)",
                key.replacing("baton1-q", with: "baton1-p"), key.replacing("-", with: "–"), "“\(String(mistyped))”",
            ] { #expect(AccountKey.isBegun(in: text), "\(text)") }
        }
        for text in [
            "", "baton1", "baton1-", "baton1-notes.pdf", "baton1/qqqq/qqqq/qqqq/qqqq/qqqq",
            "baton1-qqqq-qqqq-qqqq-qqqq", "baton1-2024-information-book-of-notes", "baton 1 with 2 notes and 3 letters",
            "revoke baton1 yes", "botan1-qqqq-qqqq-qqqq-qqqq-qqqq", "baton1-blob-bios-boob-bobo-boil",
            "baton1 was that the last name here", "baton1 what does the text say that they have sent last year",
            "baton1: quit, then read the rest", "baton1 quit and then read the next two pages",
            "baton1-last-year-data-that-were-left-here.txt", "baton1-quarterlystatementandreports",
            "baton list of 2024q3 and 2025q4 statements in full",
            "https://docs.example/d/q8xiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgVE2upms",
            "quiz that they have sent last year with 2024 data", "q3fy-2024-data-rev2-last-year",
            "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "baton is at qpzr.y9x8.example",
        ] { #expect(!AccountKey.isBegun(in: text), "\(text)") }
    }
}
