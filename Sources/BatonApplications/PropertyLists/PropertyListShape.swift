// SPDX-License-Identifier: Apache-2.0

/// A look at a property list before Foundation decodes it, which ends the process at lists that no program writes.
enum PropertyListShape {
    /// The most arrays and dictionaries of a list: Xcode's files have some dozens. The decoder recurses for each level
    /// of them, and has stack for some 9,000.
    static let containerBound = 2048

    /// - Parameter subject: names the list in errors.
    static func check(_ bytes: [UInt8], _ subject: String) throws(ApplicationManifestError) {
        guard !bytes.starts(with: "bplist".utf8) else {
            throw .init("\(subject) is a binary property list: convert it to XML, for example with `plistutil`")
        }
        // XML in UTF-8, which has no bytes of zero: lists of the old style and other encodings do not begin so.
        let text = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes[3...] : bytes[...]
        let isXML = text.first { !" \t\r\n".utf8.contains($0) } == UInt8(ascii: "<") && !text.contains(0)
        guard isXML else { throw .init("\(subject) is no property list") }
        let containers = bytes.split(separator: UInt8(ascii: "<")).count { tag in
            ["array", "dict", "plist"].contains { tag.starts(with: $0.utf8) }
        }
        guard containers <= containerBound else {
            throw .init("\(subject) has too many arrays and dictionaries to be an application's property list")
        }
    }
}
