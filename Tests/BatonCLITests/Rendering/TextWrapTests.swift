// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import BatonCLI

@Suite("Wrapped messages")
struct TextWrapTests {
    @Test("A line is broken at a space, and no line is wider than the terminal")
    func breaks() {
        #expect(TextWrap.lines("one two three four", width: 9) == ["one two", "three", "four"])
        #expect(TextWrap.lines("one two", width: 7) == ["one two"])
        #expect(TextWrap.lines("one two three", width: .max) == ["one two three"])
        #expect(TextWrap.lines("", width: 80) == [""])
        #expect(TextWrap.lines("日本語 日本語", width: 7) == ["日本語", "日本語"])
    }

    @Test("Own line breaks and indentation stay, also in continued lines")
    func indentation() {
        #expect(
            TextWrap.lines("devices match:\n  phone (3kd7) and more\n", width: 16)
                == ["devices match:", "  phone (3kd7)", "  and more", ""])
        #expect(TextWrap.lines("a  table  row", width: 13) == ["a  table  row"])
    }

    @Test(
        "A quotation is not broken",
        arguments: [
            ("start it with `baton node` now", ["start it with", "`baton node` now"]),
            ("the title is “my own title”, so", ["the title is", "“my own title”, so"]),
            ("no device \"my own phone\" is known", ["no device", "\"my own phone\" is", "known"]),
            ("give (`baton join x`), then go", ["give", "(`baton join x`),", "then go"]),
        ])
    func quotations(_ text: String, _ lines: [String]) {
        #expect(TextWrap.lines(text, width: 19) == lines)
    }

    @Test("A quotation that does not end, or is wider than the terminal, is broken like other text")
    func longQuotations() {
        #expect(TextWrap.lines("it is 5\" wide and high", width: 12) == ["it is 5\"", "wide and", "high"])
        #expect(TextWrap.lines("`baton account join`", width: 14) == ["`baton account", "join`"])
        #expect(TextWrap.lines("/a/path/without/any/space", width: 10) == ["/a/path/without/any/space"])
    }

    @Test("A message at a terminal of 80 columns has no broken command")
    func terminal() throws {
        // No node runs here, and there is no account: the sentence has two commands and more than 80 columns.
        let shown = try TerminalDialogue.run(["status"], home: "/nonexistent/baton", answers: []).shown
        let lines = shown.split(whereSeparator: \.isNewline)
        #expect(lines.count > 1 && lines.allSatisfy { $0.count <= 80 }, "\(shown)")
        #expect(lines.allSatisfy { $0.count { $0 == "`" } % 2 == 0 }, "\(shown)")
    }
}
