// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TerminalScreen

@Suite("Keys and text of the terminal")
struct TerminalScreenTests {
    private func keys(_ chunks: String...) -> [Key] { chunks.flatMap { Key.keys(in: $0.utf8) } }

    @Test("Keys are found in what a terminal sends")
    func keys() {
        #expect(keys("oat milk\r") == [.text("oat milk"), .enter])
        #expect(keys("\u{1B}[A\u{1B}OB\u{1B}[1;5C\u{1B}[3~\u{1B}[Z") == [.up, .down, .right, .delete, .backTab])
        #expect(keys("\u{1B}") == [.escape])
        #expect(keys("\u{3}\u{1A}\u{7F}\t") == [.control("c"), .control("z"), .backspace, .tab])
        #expect(keys("\u{1B}[I", "\u{1B}[O") == [.focusGained, .focusLost])
        // Unknown keys are dropped whole.
        #expect(keys("\u{1B}[15~\u{1B}[<0;1;2Mx") == [.text("x")])
    }

    @Test("Characters of several bytes are text, and so are bytes that are no character")
    func characters() {
        #expect(keys("aß€🐒\r") == [.text("aß€🐒"), .enter])
        #expect(Key.keys(in: [0xFF]) == [.text("\u{FFFD}")])
    }

    @Test("What is too long for a narrow terminal goes on in the next line")
    func wrapping() {
        let words = ["Space bought", "Enter add", "^C end"]
        #expect(ScreenText.wrapped(words, gap: "  ", columns: 40, lines: 3) == [" Space bought  Enter add  ^C end"])
        #expect(ScreenText.wrapped(words, gap: "  ", columns: 24, lines: 3) == [" Space bought  Enter add", " ^C end"])
        #expect(ScreenText.wrapped(words, gap: "  ", columns: 23, lines: 2) == [" Space bought", " Enter add  ^C end"])
        #expect(ScreenText.wrapped(words, gap: "  ", columns: 9, lines: 2) == [" Space b…", " Enter a…"])
        #expect(ScreenText.wrapped([], columns: 9, lines: 2) == [])
    }

    @Test("A line of text is typed, corrected, and bounded")
    func field() {
        var field = TextField()
        let keys: [Key] = [.text("oat mil"), .left, .left, .text("X"), .backspace, .end, .text("k")]
        for key in keys { _ = field.take(key) }
        #expect(field == TextField("oat milk"))
        #expect(field.cursor == 8)
        // An accent joins the character before it.
        _ = field.take(.text("e\u{301}"))
        #expect(field.cursor == 9)
        _ = field.take(.backspace)
        _ = field.take(.home)
        _ = field.take(.delete)
        #expect(field == TextField("at milk", cursor: 0))
        _ = field.take(.text(String(repeating: "x", count: TextField.bound)))
        #expect(field.text == "at milk")
        #expect(TextField("milk", cursor: 99).cursor == 4)
        #expect(TextField("milk", cursor: -1).cursor == 0)
        #expect(TextField(String(repeating: "ß", count: 99)).text.utf8.count == TextField.bound)
        let isTaken = field.take(.enter)
        #expect(!isTaken)
    }

    @Test("Text fits its columns, wide characters counted, and never controls the terminal")
    func text() {
        #expect(ScreenText.fitting("oat milk", columns: 8) == "oat milk")
        #expect(ScreenText.fitting("oat milk", columns: 5) == "oat …")
        #expect(ScreenText.fitting("日本語", columns: 5) == "日本…")
        #expect(ScreenText.fitting("日本語", columns: 6) == "日本語")
        #expect(ScreenText.fitting("a\u{1B}[2Jb\u{7}\u{9B}", columns: 80) == "a[2Jb")
        #expect(ScreenText.fitting("abc", columns: 0) == "")
        #expect(ScreenText.spread("left", "right", columns: 12) == "left   right")
        #expect(ScreenText.columns(of: ScreenText.spread("a long text", "right", columns: 12)) == 12)
    }
}
