// SPDX-License-Identifier: Apache-2.0

/// A look at a JSON text before it is parsed: a parser spends stack on depth, and comparing long strings of combining
/// characters takes seconds.
enum JSONShape {
    /// What is wrong with the shape of a text, as the end of a sentence about it; nil when it may be parsed.
    ///
    /// Not a parser: brackets and quotes are counted, and whether they fit is left to one.
    static func problem(of text: [UInt8], depth maximumDepth: Int, string maximumLength: Int) -> String? {
        var depth = 0
        var stringStart: Int?
        var isEscaped = false
        for (position, byte) in text.enumerated() {
            // Bytes of zero are in every text in UTF-16 or UTF-32, and in none that is JSON in UTF-8.
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
