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
    func begun() {
        for _ in 0..<20 {
            let key = AccountKey().formatted().text
            var mistyped = Array(key)
            mistyped[12] = "o"
            mistyped[18] = mistyped[18] == "q" ? "p" : "q"
            var missing = Array(key)
            missing.remove(at: 13)
            for text in [
                key, key.uppercased(), String(mistyped), String(missing), String(key.dropLast(20)), "key=\(key)",
                key.replacing("-", with: " "), key.filter { $0 != "-" }, "baton1 and \(key)",
            ] { #expect(AccountKey.isBegun(in: text)) }
        }
        for text in [
            "", "baton1", "baton1-", "baton1-notes.pdf", "baton1/qqqq/qqqq/qqqq/qqqq/qqqq",
            "baton1-quarterly-statement-2024", "baton1-2024-annual-report-final", "baton1-qqqq-qqqq-qqqq-qqqq",
            "revoke baton1 yes", "botan1-qqqq-qqqq-qqqq-qqqq-qqqq", "baton1-blob-bios-boob-bobo-boil",
        ] { #expect(!AccountKey.isBegun(in: text), "\(text)") }
    }
}
