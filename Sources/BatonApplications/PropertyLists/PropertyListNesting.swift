// SPDX-License-Identifier: Apache-2.0

/// How deep a property list goes, found without recursion before Foundation decodes it with some.
///
/// XML in UTF-8 and binary are known; lists of the old style and other encodings are none.
enum PropertyListNesting {
    /// The most elements, or objects, in one another; those of Xcode's files have fewer than 10.
    static let depthBound = 64
    /// The most objects of a binary list. An object within several others counts each time.
    static let objectBound = 256 << 10

    enum Outcome: Sendable, Hashable {
        case fitting, tooDeep, noPropertyList
    }

    static func check(_ bytes: [UInt8]) -> Outcome {
        if bytes.starts(with: "bplist".utf8) { return BinaryList(bytes)?.check() ?? .noPropertyList }
        let text = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes[3...] : bytes[...]
        guard text.first(where: { !" \t\r\n".utf8.contains($0) }) == UInt8(ascii: "<"), !text.contains(0) else {
            return .noPropertyList
        }
        return checkXML(text)
    }

    /// An end of an element inside a comment or a CDATA section does not count.
    private static func checkXML(_ bytes: ArraySlice<UInt8>) -> Outcome {
        var rest = bytes
        var depth = 0
        while let open = rest.firstIndex(of: UInt8(ascii: "<")) {
            rest = rest[open...]
            if rest.starts(with: "<!--".utf8) {
                rest = after("-->", in: rest.dropFirst(4))
            } else if rest.starts(with: "<![CDATA[".utf8) {
                rest = after("]]>", in: rest.dropFirst(9))
            } else if rest.starts(with: "<?".utf8) {
                rest = after("?>", in: rest.dropFirst(2))
            } else if rest.starts(with: "<!".utf8) {
                rest = rest.dropFirst(2)
            } else if rest.starts(with: "</".utf8) {
                depth = max(0, depth - 1)
                rest = rest.dropFirst(2)
            } else {
                let tag = rest.prefix { $0 != UInt8(ascii: ">") }
                // A slash in an attribute closes nothing. A tag with attributes counts as open.
                let isEmpty = tag.last == UInt8(ascii: "/") && !tag.contains { "\"'".utf8.contains($0) }
                if !isEmpty { depth += 1 }
                guard depth <= depthBound else { return .tooDeep }
                rest = rest.dropFirst(tag.count)
            }
        }
        return .fitting
    }

    /// The bytes behind the first occurrence; nil if there is none.
    private static func after(_ end: StaticString, in bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let end = end.withUTF8Buffer { Array($0) }
        var rest = bytes
        while let start = rest.firstIndex(of: end[0]) {
            rest = rest[start...]
            if rest.starts(with: end) { return rest.dropFirst(end.count) }
            rest = rest.dropFirst()
        }
        return []
    }
}

/// The objects of a binary property list, and their contents.
///
/// Source: `CFBinaryPList.c` of Apple's Core Foundation, which describes the format.
private struct BinaryList {
    private let bytes: [UInt8]
    private let offsetSize: Int
    private let referenceSize: Int
    private let count: Int
    private let top: Int
    private let table: Int

    init?(_ bytes: [UInt8]) {
        guard bytes.count >= 8 + 32 else { return nil }
        self.bytes = bytes
        let trailer = bytes.count - 32
        offsetSize = Int(bytes[trailer + 6])
        referenceSize = Int(bytes[trailer + 7])
        guard (1...8).contains(offsetSize), (1...8).contains(referenceSize),
            let count = Self.number(bytes, trailer + 8, 8), let top = Self.number(bytes, trailer + 16, 8),
            let table = Self.number(bytes, trailer + 24, 8), count <= bytes.count, top < count, table <= trailer,
            count * offsetSize <= trailer - table
        else { return nil }
        (self.count, self.top, self.table) = (count, top, table)
    }

    /// A walk from the top, with the objects on the way on a stack of its own.
    func check() -> PropertyListNesting.Outcome {
        var totals = [Int?](repeating: nil, count: count)
        var heights = [Int](repeating: 0, count: count)
        var way: [(object: Int, contents: [Int], next: Int)] = []
        // Objects of a real list share no bytes.
        var references = 0
        func enter(_ object: Int) -> Bool {
            guard let contents = contents(of: object, atMost: bytes.count - references) else { return false }
            references += contents.count
            way.append((object, contents, 0))
            return true
        }
        guard enter(top) else { return .noPropertyList }
        while let step = way.last {
            guard way.count <= PropertyListNesting.depthBound else { return .tooDeep }
            if step.next < step.contents.count {
                way[way.count - 1].next += 1
                let child = step.contents[step.next]
                if totals[child] == nil, !enter(child) { return .noPropertyList }
                continue
            }
            var total = 1
            for child in step.contents {
                total += totals[child] ?? 0
                guard total <= PropertyListNesting.objectBound else { return .tooDeep }
                heights[step.object] = max(heights[step.object], heights[child] + 1)
            }
            // An object that was walked before on a shorter way may be too deep on this one.
            guard way.count + heights[step.object] <= PropertyListNesting.depthBound else { return .tooDeep }
            totals[step.object] = total
            way.removeLast()
        }
        return .fitting
    }

    /// The objects that one contains; `nil` where it is damaged, or has more than `bound`.
    private func contents(of object: Int, atMost bound: Int) -> [Int]? {
        guard let start = Self.number(bytes, table + object * offsetSize, offsetSize), start < table else { return nil }
        let kind = bytes[start] >> 4
        // Arrays, ordered and unordered sets, and dictionaries.
        guard [0xA, 0xB, 0xC, 0xD].contains(kind) else { return [] }
        var length = Int(bytes[start] & 0xF)
        var position = start + 1
        if length == 0xF {
            guard position < table, bytes[position] >> 4 == 1, bytes[position] & 0xF <= 3 else { return nil }
            let size = 1 << Int(bytes[position] & 0xF)
            guard let number = Self.number(bytes, position + 1, size) else { return nil }
            length = number
            position += 1 + size
        }
        guard length <= bound else { return nil }
        if kind == 0xD { length *= 2 }
        guard length <= bound, position + length * referenceSize <= table else { return nil }
        var contents: [Int] = []
        contents.reserveCapacity(length)
        for index in 0..<length {
            guard let child = Self.number(bytes, position + index * referenceSize, referenceSize), child < count else {
                return nil
            }
            contents.append(child)
        }
        return contents
    }

    /// A number, the highest byte first; `nil` where it does not fit, or the bytes are not there.
    private static func number(_ bytes: [UInt8], _ start: Int, _ size: Int) -> Int? {
        guard start >= 0, start + size <= bytes.count else { return nil }
        var value = 0
        for byte in bytes[start..<start + size] {
            guard value <= Int.max >> 8 else { return nil }
            value = value << 8 | Int(byte)
        }
        return value
    }
}
