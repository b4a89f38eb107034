/// Tells a key where none belongs, so that it is not said again.
extension AccountKey {
    /// The fewest characters behind `baton1` that are taken for those of a mistyped or shortened key.
    static let leastRecognizedCount = 20

    /// Whether a whole key is in a text: with or without its `baton1`, in capitals, with anything between its characters
    /// that is neither letter nor digit, and anything around them. A text at random has one once in 2^30.
    public static func isWhole(in text: some Sequence<UInt8>) -> Bool {
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

    /// Whether a text holds what looks like a key, although it may be mistyped or not whole: `baton1`, and at once, or
    /// behind spaces and dashes, characters of a key in one row or in groups of about four.
    ///
    /// Short words have such characters as well. What they hardly have is two of these signs: the `q` of the version in
    /// front, and a group of letters and digits mixed, each of which counts. One key in 200,000 has not, and one in 500 of
    /// those of which half is missing.
    public static func isBegun(in text: some StringProtocol) -> Bool {
        let mark = String(decoding: prefix, as: UTF8.self) + "1"
        var rest = text.lowercased()[...]
        while let range = rest.firstRange(of: mark) {
            rest = rest[range.upperBound...]
            let row = rest.prefix { isSeparator($0) || ($0.isASCII && ($0.isLetter || $0.isNumber)) }
            let groups = row.split(whereSeparator: isSeparator)
                .prefix { (3...5).contains($0.count) || $0.count >= leastRecognizedCount }
                .flatMap(typed).prefix(dataCount / 4 + 1)
            let begin = groups.joined().prefix(leastRecognizedCount)
            let foreign = begin.filter { $0.asciiValue.flatMap(Bech32m.value) == nil }.count
            let signs = (begin.first == "q" ? 1 : 0) + groups.filter(isMixed).count
            if begin.count == leastRecognizedCount, foreign <= 2, signs >= 2 { return true }
        }
        return false
    }

    /// A group as it was typed; of what was typed in one row, the groups that it would have.
    private static func typed(_ group: Substring) -> [Substring] {
        guard group.count >= leastRecognizedCount else { return [group] }
        return stride(from: 0, to: min(group.count, dataCount), by: 4).map { group.dropFirst($0).prefix(4) }
    }

    private static func isMixed(_ group: Substring) -> Bool {
        group.contains(where: \.isLetter) && group.contains(where: \.isNumber)
    }

    private static func isSeparator(_ character: Character) -> Bool { character == "-" || character.isWhitespace }

    /// A letter or digit of ASCII, in lower case; nil for anything else.
    private static func lowercased(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"): byte
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte | 0x20
        case _: nil
        }
    }
}
