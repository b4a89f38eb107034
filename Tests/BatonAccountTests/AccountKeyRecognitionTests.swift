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
        // About one in 500 half keys is not recognised, so the seed is fixed.
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
                key.replacing("baton1-q", with: "baton1-p"),
            ] + Self.forms(of: mistyped[7...].filter { $0 != "-" }) { #expect(AccountKey.isBegun(in: text), "\(text)") }
        }
        for text in [
            "", "baton1", "baton1-", "baton1-notes.pdf", "baton1/qqqq/qqqq/qqqq/qqqq/qqqq",
            "baton1-quarterly-statement-2024", "baton1-2024-annual-report-final", "baton1-qqqq-qqqq-qqqq-qqqq",
            "revoke baton1 yes", "botan1-qqqq-qqqq-qqqq-qqqq-qqqq", "baton1-blob-bios-boob-bobo-boil",
            "baton1 was that the last name here", "baton1 what does the text say that they have sent last year",
            "baton1: quit, then read the rest", "baton1 quit and then read the next two pages",
            "baton1 them and the mp3 file that was there last", "baton1 2024 2025 2026 data and text from last year",
            "baton1-last-year-data-that-were-left-here.txt", "baton1-quarterlystatementandreports",
            "baton1-quarterly2024-statement-rev2a", "baton list of 2024q3 and 2025q4 statements in full",
            "https://docs.example/d/q8xiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgVE2upms",
            "quiz that they have sent last year with 2024 data", "q3fy-2024-data-rev2-last-year",
            "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "baton is at qpzr.y9x8.example",
        ] { #expect(!AccountKey.isBegun(in: text), "\(text)") }
    }

    /// How characters of a key may be typed that no `baton1-` in front and no dashes at their places tell.
    private static func forms(of data: [Character]) -> [String] {
        func grouped(_ size: Int, _ separator: String) -> String {
            stride(from: 0, to: data.count, by: size).map { String(data[$0..<min($0 + size, data.count)]) }
                .joined(separator: separator)
        }
        let groups = grouped(4, "-")
        return [
            "batonl-" + groups, "batoni" + groups, "baton 1 " + groups, "baton-1-" + groups, groups,
            "baton1-" + grouped(6, "-"), "baton1 " + grouped(8, " "), "baton1–" + grouped(4, "–"),
            "baton1\u{2011}" + grouped(4, "\u{2011}"), "baton1." + grouped(4, "."), "baton1_" + grouped(4, "_"),
            "baton1-" + grouped(4, "-").replacing(String(data[4..<8]), with: "\(String(data[4..<8]))'"),
            "baton1-" + String(data[..<8]) + "-" + String(grouped(4, "-").dropFirst(10)),
        ]
    }
}
