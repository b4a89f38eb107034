// SPDX-License-Identifier: Apache-2.0

/// A look at a property list before Foundation decodes it, which ends the process at lists that no program writes.
enum PropertyListShape {
    /// The most arrays and dictionaries of a list in XML: Xcode's files have some dozens. The decoder recurses for each
    /// level of them, and has stack for some 9,000. Of a binary list it decodes the known keys alone.
    static let containerBound = 2048

    /// - Parameter subject: names the list in errors.
    static func check(_ bytes: [UInt8], _ subject: String) throws(ApplicationManifestError) {
        guard bytes.starts(with: "bplist".utf8) ? isWholeBinary(bytes) : isXML(bytes) else {
            throw .init("\(subject) is no property list")
        }
        let containers = bytes.split(separator: UInt8(ascii: "<")).count { tag in
            ["array", "dict", "plist"].contains { tag.starts(with: $0.utf8) }
        }
        guard containers <= containerBound else {
            throw .init("\(subject) has too many arrays and dictionaries to be an application's property list")
        }
    }

    /// Whether it begins as XML in UTF-8, which has no bytes of zero: lists of the old style and other encodings do
    /// not.
    private static func isXML(_ bytes: [UInt8]) -> Bool {
        let text = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes[3...] : bytes[...]
        return text.first { !" \t\r\n".utf8.contains($0) } == UInt8(ascii: "<") && !text.contains(0)
    }

    /// Whether all objects of a binary list end within it, and no container is too large.
    ///
    /// Source: `CFBinaryPList.c` of Apple's Core Foundation, which describes the format.
    private static func isWholeBinary(_ bytes: [UInt8]) -> Bool {
        let trailer = bytes.count - 32
        guard trailer >= 8 else { return false }
        // The highest byte comes first.
        func number(_ start: Int, _ size: Int) -> Int? {
            guard start + size <= bytes.count else { return nil }
            return Int(exactly: bytes[start..<start + size].reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
        }
        let (offsetSize, referenceSize) = (Int(bytes[trailer + 6]), Int(bytes[trailer + 7]))
        guard (1...8).contains(offsetSize), (1...8).contains(referenceSize), let count = number(trailer + 8, 8),
            let table = number(trailer + 24, 8), table <= trailer, count <= (trailer - table) / offsetSize
        else { return false }
        // Data and texts, then arrays, sets and dictionaries.
        let sizes = [
            4: 1, 5: 1, 6: 2, 7: 1, 0xA: referenceSize, 0xB: referenceSize, 0xC: referenceSize, 0xD: 2 * referenceSize,
        ]
        return (0..<count).allSatisfy { object in
            guard let start = number(table + object * offsetSize, offsetSize), start < table else { return false }
            guard let size = sizes[Int(bytes[start] >> 4)] else { return true }
            var (length, position) = (Int(bytes[start] & 0xF), start + 1)
            if length == 0xF {
                // An integer of 1, 2, 4 or 8 bytes.
                let bytesOfLength = 1 << Int(bytes[position] & 3)
                guard bytes[position] & 0xFC == 0x10, let long = number(position + 1, bytesOfLength) else {
                    return false
                }
                (length, position) = (long, position + 1 + bytesOfLength)
            }
            // One object may be in many containers, and is decoded for each.
            let isContainer = bytes[start] >> 4 >= 0xA
            return position <= table && length <= (table - position) / size
                && (!isContainer || length <= containerBound)
        }
    }
}
