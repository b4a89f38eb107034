// SPDX-License-Identifier: Apache-2.0

/// Breaks sentences into lines for a terminal.
///
/// A line is broken at a space outside of quotations: commands in backquotes, and names or sentences in “ ” or " ".
/// A quotation that is wider than the terminal is broken like other text.
enum TextWrap {
    /// A part of a line that stays together, and the spaces in front of it.
    private struct Word {
        var spaces = ""
        var text = ""
    }

    /// Breaks a text into lines. Its own line breaks stay, and a continued line gets the indentation of its first one.
    ///
    /// - Parameter width: the columns of the terminal; `Int.max` breaks nothing.
    static func lines(_ text: String, width: Int) -> [String] {
        text.split(separator: "\n", omittingEmptySubsequences: false).flatMap { line in
            DisplayWidth.of(line) <= width ? [String(line)] : broken(line, width: width)
        }
    }

    private static func broken(_ line: Substring, width: Int) -> [String] {
        let indentation = String(line.prefix { $0 == " " })
        let room = max(width - indentation.count, 1)
        var lines: [String] = []
        var current = ""
        for word in words(line.dropFirst(indentation.count), within: room) {
            if !current.isEmpty, DisplayWidth.of(current + word.spaces + word.text) > room {
                lines.append(indentation + current)
                current = word.text
            } else {
                current += word.spaces + word.text
            }
        }
        return lines + [indentation + current]
    }

    /// Splits at the spaces outside of quotations.
    private static func words(_ line: Substring, within room: Int) -> [Word] {
        var words: [Word] = []
        var word = Word()
        var rest = line
        while let first = rest.first {
            if first == " " {
                if !word.text.isEmpty {
                    words.append(word)
                    word = Word()
                }
                word.spaces.append(first)
                rest.removeFirst()
            } else {
                let quotation = quotation(rest, within: room) ?? rest.prefix(1)
                word.text += quotation
                rest.removeFirst(quotation.count)
            }
        }
        return words + (word.text.isEmpty ? [] : [word])
    }

    /// The quotation that a text begins with; nil if there is none, it does not end, or it has no room on one line.
    private static func quotation(_ text: Substring, within room: Int) -> Substring? {
        let ends: [Character: Character] = ["`": "`", "\"": "\"", "“": "”"]
        guard let first = text.first, let end = ends[first], let last = text.dropFirst().firstIndex(of: end) else {
            return nil
        }
        let quotation = text[...last]
        return DisplayWidth.of(quotation) <= room ? quotation : nil
    }
}
