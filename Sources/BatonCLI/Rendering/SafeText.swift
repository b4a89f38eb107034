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

/// Breaks sentences into lines for a terminal.
///
/// A line is broken at a space outside of quotations: commands in backquotes, and names or sentences in “ ” or " ".
/// A quotation that is wider than the terminal is broken like other text.
enum TextWrap {
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
        // The spaces in a quotation are no-break spaces until the line is broken.
        let text = line.dropFirst(indentation.count).replacing(/`[^`]*`|“[^”]*”|"[^"]*"/) { quotation in
            DisplayWidth.of(quotation.output) <= room
                ? quotation.output.replacing(" ", with: "\u{A0}") : quotation.output
        }
        var lines: [String] = []
        for word in text.split(separator: " ") {
            if let last = lines.last, DisplayWidth.of(last) + 1 + DisplayWidth.of(word) <= room {
                lines[lines.count - 1] += " " + word
            } else {
                lines.append(String(word))
            }
        }
        return lines.map { indentation + $0.replacing("\u{A0}", with: " ") }
    }
}

/// Rows in aligned columns that fit a width. The widest column that may shrink does so first.
struct Table {
    struct Column {
        let title: String
        /// The smallest width; `nil` if the column never shrinks.
        let minimum: Int?
        let alignsRight: Bool

        init(_ title: String, minimum: Int? = nil, alignsRight: Bool = false) {
            self.title = title
            self.minimum = minimum
            self.alignsRight = alignsRight
        }
    }

    private static let gap = 2

    let columns: [Column]
    var rows: [[String]] = []

    init(_ columns: [Column]) {
        self.columns = columns
    }

    /// The lines of the table, with the titles first. No line is wider than `width`: a line that wraps makes a table
    /// unreadable. Columns shrink to their minimum, and then the line is cut.
    func lines(width: Int) -> [String] {
        let widths = columnWidths(fitting: width)
        return ([columns.map(\.title)] + rows).map { row in
            var line = ""
            for (index, column) in columns.enumerated() {
                let cell = DisplayWidth.clip(row[index], to: widths[index])
                let padding = String(repeating: " ", count: widths[index] - DisplayWidth.of(cell))
                line += column.alignsRight ? padding + cell : cell + padding
                if index < columns.count - 1 { line += String(repeating: " ", count: Self.gap) }
            }
            while line.last == " " { line.removeLast() }
            return DisplayWidth.clip(line, to: width)
        }
    }

    private func columnWidths(fitting width: Int) -> [Int] {
        var widths = columns.indices.map { index in
            ([columns[index].title] + rows.map { $0[index] }).map { DisplayWidth.of($0) }.max() ?? 0
        }
        var excess = widths.reduce(Self.gap * (columns.count - 1), +) - width
        while excess > 0 {
            let shrinkable = columns.indices.filter { widths[$0] > max(columns[$0].minimum ?? .max, 1) }
            guard let widest = shrinkable.max(by: { widths[$0] < widths[$1] }) else { break }
            widths[widest] -= 1
            excess -= 1
        }
        return widths
    }
}
