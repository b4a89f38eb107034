// SPDX-License-Identifier: Apache-2.0

import BatonDocuments

/// Makes text from other devices and programs safe to show: characters that a terminal would act on or hide are
/// escaped.
enum SafeText {
    /// Escapes a text, so that it is on one line.
    ///
    /// A backslash stays as it is: a title or a message may contain a file's name that was escaped where it came from.
    static func escaped(_ text: some StringProtocol) -> String {
        NameDisplay.escaped(Array(text.utf8), isSentence: true)
    }

    /// The longest sentence from elsewhere, in Unicode scalars: 300. A longer one is cut, and ends with an ellipsis.
    static let sentenceBound = 300

    /// Escapes a sentence that another device or application may have written, and cuts it if it is too long.
    static func sentence(_ text: some StringProtocol) -> String {
        let scalars = escaped(text).unicodeScalars
        guard scalars.count > sentenceBound else { return String(scalars) }
        return String(String.UnicodeScalarView(scalars.prefix(sentenceBound))) + "…"
    }

    /// Escapes a file name or a path, a backslash as well, so that the result is unambiguous.
    static func escaped(path: some Collection<UInt8>) -> String {
        NameDisplay.escaped(path)
    }
}

/// The width of text in columns of a terminal.
enum DisplayWidth {
    static func of(_ text: some StringProtocol) -> Int {
        text.reduce(0) { $0 + of($1) }
    }

    /// The width of one character: 0 for combining characters, 2 for wide East Asian characters and emoji.
    static func of(_ character: Character) -> Int {
        guard let scalar = character.unicodeScalars.first else { return 0 }
        if character.unicodeScalars.contains("\u{FE0F}") || scalar.properties.isEmojiPresentation { return 2 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        case _: return isWide(scalar.value) ? 2 : 1
        }
    }

    /// Cuts a text to a width. A text that was cut ends with an ellipsis.
    static func clip(_ text: String, to width: Int) -> String {
        guard of(text) > width else { return text }
        guard width > 0 else { return "" }
        var clipped = ""
        var used = 1
        for character in text {
            used += of(character)
            guard used <= width else { break }
            clipped.append(character)
        }
        return clipped + "…"
    }

    /// The main blocks of wide characters in Unicode's East Asian Width.
    private static func isWide(_ value: UInt32) -> Bool {
        switch value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF, 0xA000...0xA4CF,
            0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6,
            0x1B000...0x1B2FF, 0x1F200...0x1F2FF, 0x20000...0x3FFFD:
            true
        case _: false
        }
    }
}
