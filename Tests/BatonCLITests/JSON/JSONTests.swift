// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonTestSupport
import Testing

@Suite("JSON")
struct JSONTests {
    @Test("1, 1.0 and true are three values")
    func numbersStayApart() throws {
        #expect(try JSONParser.parse("1") == .integer(1))
        #expect(try JSONParser.parse("1.0") == .real(1))
        #expect(try JSONParser.parse("1e0") == .real(1))
        #expect(try JSONParser.parse("true") == .boolean(true))
        #expect(try JSONParser.parse("-9223372036854775808") == .integer(.min))
        #expect(try JSONParser.parse("9223372036854775808") == .unsignedInteger(1 << 63))
        #expect(try JSONParser.parse("18446744073709551615") == .unsignedInteger(.max))
        #expect(UserInfoValue.real(1).jsonText == "1.0")
        #expect(UserInfoValue.integer(1).jsonText == "1")
    }

    @Test(
        "what is not JSON is refused, with its place",
        arguments: [
            ("", 1, 1), ("{", 1, 2), ("[1,]", 1, 4), ("{\"a\":1,}", 1, 8), ("01", 1, 1), ("1.", 1, 3), ("+1", 1, 1),
            ("'a'", 1, 1), ("\"a", 1, 3), ("\"\\x\"", 1, 1), ("\"\u{1}\"", 1, 2), ("nul", 1, 1), ("1 2", 1, 3),
            ("{\"a\":1,\n \"a\":2}", 2, 2), ("18446744073709551616", 1, 1), ("1e999", 1, 1), ("[NaN]", 1, 2),
            ("{a:1}", 1, 2), ("// x\n1", 1, 1), ("\"\\ud800\"", 1, 1), ("\"\\udc00\"", 1, 1), ("\"\\", 1, 3),
            ("-", 1, 2),
        ])
    func refusals(_ text: String, _ line: Int, _ column: Int) {
        let error = #expect(throws: JSONError.self) { try JSONParser.parse(text) }
        #expect(error?.line == line)
        #expect(error?.column == column)
    }

    @Test("bytes that are no UTF-8 are refused")
    func utf8() {
        #expect(throws: JSONError.self) { try JSONParser.parse([0x22, 0xFF, 0x22]) }
        // These are an encoded surrogate and an overlong form.
        #expect(throws: JSONError.self) { try JSONParser.parse([0x22, 0xED, 0xA0, 0x80, 0x22]) }
        #expect(throws: JSONError.self) { try JSONParser.parse([0x22, 0xC0, 0xAF, 0x22]) }
    }

    @Test("escapes")
    func escapes() throws {
        #expect(try JSONParser.parse(#""\u00e9\n\"\\\/\ud83d\ude00""#) == .string("é\n\"\\/😀"))
        #expect(UserInfoValue.string("a\u{1B}[2J\u{202E}é\"").jsonText == #""a\u001b[2J\u202eé\"""#)
        #expect(UserInfoValue.string("\u{E0041}").jsonText == #""\udb40\udc41""#)
    }

    @Test("nesting is bounded")
    func depth() throws {
        let bound = JSONParser.maximumDepth
        let deepest = String(repeating: "[", count: bound) + String(repeating: "]", count: bound)
        #expect(throws: Never.self) { try JSONParser.parse(deepest) }
        #expect(throws: JSONError.self) { try JSONParser.parse("[" + deepest + "]") }
        // This depth is far beyond the size of the stack.
        #expect(throws: JSONError.self) { try JSONParser.parse(String(repeating: "[", count: 1_000_000)) }
    }

    @Test("random bytes never crash the reader", arguments: 0..<200 as Range<UInt64>)
    func noise(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let alphabet = Array("{}[]\",:\\u0123456789eE+-.truefalsn \n".utf8)
        let text = (0..<Int.random(in: 0...60, using: &generator)).map { _ in
            alphabet.randomElement(using: &generator) ?? 0
        }
        _ = try? JSONParser.parse(text)
    }
}

/// Text with all characters that are hard to quote.
enum RandomText {
    static func make(_ generator: inout SeededGenerator) -> String {
        let pieces = ["a", "é", "\"", "\\", "\n", "\u{0}", "\u{1B}", "\u{202E}", "😀", "$", "/", "\u{E0041}", "漢"]
        return (0..<Int.random(in: 0...8, using: &generator)).map { _ in pieces.randomElement(using: &generator) ?? "" }
            .joined()
    }
}
