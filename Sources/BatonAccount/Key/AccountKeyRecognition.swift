// SPDX-License-Identifier: Apache-2.0

/// Recognises a key in a text that should not have one, so that the text is not printed.
extension AccountKey {
    /// The fewest characters behind `baton1` that are taken for those of a mistyped or shortened key.
    private static let leastRecognizedCount = 20

    /// Whether a text contains a whole key. The key may lack its `baton1`, be in capitals, and have characters between
    /// its own that are neither letters nor digits. One random text in 2^30 looks like a key.
    package static func isWhole(in text: some Sequence<UInt8>) -> Bool {
        var run: [UInt8] = []
        for character in text.lazy.compactMap(lowercased) {
            guard let value = Bech32m.value(of: character) else {
                run = []
                continue
            }
            if run.count == dataCount { run.removeFirst() }
            run.append(value)
            if run.count == dataCount, Bech32m.isValid(prefix: prefix, values: run) { return true }
        }
        return false
    }

    /// Whether a text contains something that looks like a key, although it may be mistyped or incomplete.
    ///
    /// That is `baton1` with 20 letters or digits behind it, whatever stands between them. One at least is a digit, and
    /// at most two are characters that no key contains. One key in 700 has no digit there.
    package static func isBegun(in text: some StringProtocol) -> Bool {
        let text = text.lowercased()
        return text.ranges(of: "baton1").contains { mark in
            let begin = Array(text[mark.upperBound...].utf8.lazy.compactMap(lowercased).prefix(leastRecognizedCount))
            return begin.count == leastRecognizedCount && begin.contains { $0 < UInt8(ascii: "a") }
                && begin.count { Bech32m.value(of: $0) == nil } <= 2
        }
    }

    /// A letter or digit of ASCII, in lower case; nil for anything else.
    private static func lowercased(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"): byte
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte | 0x20
        case _: nil
        }
    }
}
