// SPDX-License-Identifier: Apache-2.0

/// A look at a JSON text before it is parsed: a parser spends stack on depth, and comparing long strings of combining
/// characters takes seconds.
enum JSONShape {
    /// A problem with the shape of a text, as the end of a sentence about it; nil if the text may be parsed.
    ///
    /// This is not a parser. It counts brackets and quotes; the parser checks whether they match.
    static func problem(of text: [UInt8], depth maximumDepth: Int, string maximumLength: Int) -> String? {
        var depth = 0
        var stringStart: Int?
        var isEscaped = false
        for (position, byte) in text.enumerated() {
            // Every text in UTF-16 or UTF-32 has bytes of zero, and no JSON in UTF-8 has.
            guard byte != 0 else { return "is not in UTF-8" }
            if let start = stringStart {
                guard position - start <= maximumLength else { return "has a string of over \(maximumLength) bytes" }
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    stringStart = nil
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): stringStart = position + 1
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                guard depth <= maximumDepth else { return "nests deeper than \(maximumDepth) levels" }
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            case _: break
            }
        }
        return nil
    }
}
