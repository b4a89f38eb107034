// SPDX-License-Identifier: Apache-2.0

/// Recognises a key in a text that should not have one, so that the text is not printed.
extension AccountKey {
    /// The fewest characters behind `baton1` that are taken for those of a mistyped or shortened key.
    static let leastRecognizedCount = 20

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
    /// That is either `baton1` with characters of a key behind it, in one row or in groups, or five groups of four.
    /// Short words have such characters as well, but rarely several of these signs: the `q` of the version in front,
    /// and groups that mix letters and digits, each of which counts. Two signs are enough if the groups are about as
    /// long as those of a key. One whole key in 200,000 has fewer, and one in 500 of the keys that were cut in half.
    package static func isBegun(in text: some StringProtocol) -> Bool {
        let words = text.lowercased().split { !($0.isASCII && ($0.isLetter || $0.isNumber)) }
        return words.indices.contains { first in
            let groups = words[first...].prefix(groupCount).prefix { $0.count == groupSize }
            if groups.first?.first == "q", isLikely(Array(groups), withSigns: 4) { return true }
            guard let marked = behindMark(words[first...]) else { return false }
            let regular = marked.prefix { (3...5).contains($0.count) || $0.count >= leastRecognizedCount }
            return isLikely(regular.flatMap { $0.count < leastRecognizedCount ? [$0] : cut($0) }, withSigns: 2)
                || isLikely(cut(marked.joined()[...]), withSigns: 5)
        }
    }

    /// The words behind the first `baton1` among `words`, as many as a key can have; nil if there is none. `l` or `i`
    /// may stand for the `1`, which may be a word of its own.
    private static func behindMark(_ words: ArraySlice<Substring>) -> [Substring]? {
        guard let first = words.first else { return nil }
        let name = String(decoding: prefix, as: UTF8.self)
        let following = words.dropFirst().prefix(dataCount)
        for separator in ["1", "l", "i"] {
            if let mark = first.ranges(of: name + separator).last {
                return [first[mark.upperBound...]].filter { !$0.isEmpty } + following
            }
            if first.hasSuffix(name), following.first == separator[...] { return Array(following.dropFirst()) }
        }
        return nil
    }

    private static func cut(_ row: Substring) -> [Substring] {
        let row = row.prefix(dataCount)
        return stride(from: 0, to: row.count, by: groupSize).map { row.dropFirst($0).prefix(groupSize) }
    }

    private static func isLikely(_ groups: [Substring], withSigns least: Int) -> Bool {
        let groups = groups.prefix(groupCount)
        let begin = groups.joined().prefix(leastRecognizedCount)
        let foreign = begin.count { $0.asciiValue.flatMap(Bech32m.value) == nil }
        let signs = (begin.first == "q" ? 1 : 0) + groups.count(where: isMixed)
        return begin.count == leastRecognizedCount && foreign <= 2 && signs >= least
    }

    private static func isMixed(_ group: Substring) -> Bool {
        group.contains(where: \.isLetter) && group.contains(where: \.isNumber)
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
