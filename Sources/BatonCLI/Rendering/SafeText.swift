// SPDX-License-Identifier: Apache-2.0

import BatonDocuments

/// Names and titles that came from elsewhere, made safe to show: what a terminal would act on, or would hide, is
/// escaped.
enum SafeText {
    /// How a text is shown. Every program escapes: only the tests of attacks show one as it came, to see what that
    /// does.
    enum Form {
        case escaped, asItCame
    }

    /// The whole text on one line.
    static func escaped(_ text: some StringProtocol, as form: Form = .escaped) -> String {
        escaped(path: Array(text.utf8), as: form)
    }

    /// The most characters (Unicode scalars) of a sentence that came from elsewhere; what follows is an ellipsis.
    static let sentenceBound = 300

    /// A sentence that another device or application may have written: on one line, and no longer than a few of them.
    static func sentence(_ text: some StringProtocol) -> String {
        let scalars = NameDisplay.escaped(Array(text.utf8), isSentence: true).unicodeScalars
        guard scalars.count > sentenceBound else { return String(scalars) }
        return String(String.UnicodeScalarView(scalars.prefix(sentenceBound))) + "…"
    }

    /// A file name or path.
    static func escaped(path: some Collection<UInt8>, as form: Form = .escaped) -> String {
        switch form {
        case .escaped: NameDisplay.escaped(path)
        case .asItCame: String(decoding: path, as: UTF8.self)
        }
    }
}

/// How many columns of a terminal a text takes.
enum DisplayWidth {
    static func of(_ text: some StringProtocol) -> Int {
        text.reduce(0) { $0 + of($1) }
    }

    /// Columns of one character: none for what combines, two for what East Asia writes wide and for emoji.
    static func of(_ character: Character) -> Int {
        guard let scalar = character.unicodeScalars.first else { return 0 }
        if character.unicodeScalars.contains("\u{FE0F}") || scalar.properties.isEmojiPresentation { return 2 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        case _: return isWide(scalar.value) ? 2 : 1
        }
    }

    /// The beginning of the text in at most so many columns, with an ellipsis where something is missing.
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

    /// The blocks that Unicode's East Asian Width has as wide.
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
