// SPDX-License-Identifier: Apache-2.0

/// Text as a terminal shows it.
package enum ScreenText {
    /// The columns of a character. 0 if it must not reach a terminal, such as a control character.
    static func columns(of character: Character) -> Int {
        character.unicodeScalars.reduce(0) { max($0, columns(of: $1)) }
    }

    private static func columns(of scalar: Unicode.Scalar) -> Int {
        switch scalar.properties.generalCategory {
        case .control, .format, .surrogate, .unassigned, .lineSeparator, .paragraphSeparator, .nonspacingMark,
            .enclosingMark:
            return 0
        default: break
        }
        // Wide and full-width characters of Unicode's East Asian Width, coarsely.
        switch scalar.value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
            0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x2_0000...0x3_FFFD:
            return 2
        default: return scalar.properties.isEmojiPresentation ? 2 : 1
        }
    }

    /// The columns of a text.
    package static func columns(of text: some StringProtocol) -> Int {
        text.reduce(0) { $0 + columns(of: $1) }
    }

    /// The beginning of a text that fits, with `…` if something is left out.
    ///
    /// Text from another device may hold anything. Control characters, and characters without a width, are left out.
    package static func fitting(_ text: String, columns limit: Int) -> String {
        let safe = text.filter { columns(of: $0) > 0 }
        guard columns(of: safe) > limit else { return safe }
        var fitting = ""
        var used = 0
        for character in safe {
            used += columns(of: character)
            if used > limit - 1 { break }
            fitting.append(character)
        }
        return limit > 0 ? fitting + "…" : ""
    }

    /// Words on as many lines as they need, each with a column before it. A word that is too long is cut.
    ///
    /// - Parameters:
    ///   - gap: the text between two words.
    ///   - lines: the most lines. The last one ends with `…` if words are left out.
    package static func wrapped(_ words: [String], gap: String = " ", columns limit: Int, lines bound: Int) -> [String]
    {
        var lines: [String] = []
        for word in words {
            if let last = lines.last, lines.count == bound || columns(of: last + gap + word) <= limit {
                lines[lines.count - 1] = last + gap + word
            } else {
                lines.append(" " + word)
            }
        }
        return lines.map { fitting($0, columns: limit) }
    }

    /// A line of this many columns with one text at its left end and one at its right end.
    package static func spread(_ left: String, _ right: String, columns limit: Int) -> String {
        let right = fitting(right, columns: limit)
        let left = fitting(left, columns: max(0, limit - columns(of: right) - 1))
        return left + String(repeating: " ", count: max(0, limit - columns(of: left) - columns(of: right))) + right
    }
}
