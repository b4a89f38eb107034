// SPDX-License-Identifier: Apache-2.0

/// The group `Desktop Entry` of a desktop entry file.
///
/// Source: Desktop Entry Specification 1.5, "Basic format of the file", "Possible value types". Translations of values
/// are not read, because Baton speaks English.
struct DesktopEntry: Sendable {
    private let values: [String: String]

    /// Reads the file's text.
    init(_ bytes: [UInt8]) throws(ApplicationManifestError) {
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .init("it is not UTF-8") }
        var values: [String: String] = [:]
        var isInside = false
        // Not every character that ends a line elsewhere: a name may hold such.
        for line in text.split(whereSeparator: { $0 == "\n" || $0 == "\r\n" }) {
            if line.hasPrefix("[") {
                // The group comes first; others are actions and extensions.
                if isInside { break }
                isInside = Self.trimmed(line) == "[Desktop Entry]"
            } else if isInside, !line.hasPrefix("#"), let equals = line.firstIndex(of: "=") {
                values[Self.trimmed(line[..<equals])] = Self.trimmed(line[line.index(after: equals)...])
            }
        }
        guard !values.isEmpty else { throw .init("it has no group [Desktop Entry]") }
        self.values = values
    }

    /// A value of type `string`, escapes resolved.
    func string(_ key: String) -> String? {
        values[key].map { Self.elements($0, separator: nil).joined() }
    }

    /// A list of values, each followed by `;`. `\;` is a semicolon within a value. Empty values are left out.
    func list(_ key: String) -> [String] {
        values[key].map { Self.elements($0, separator: ";").map(Self.trimmed).filter { !$0.isEmpty } } ?? []
    }

    func boolean(_ key: String) -> Bool { values[key] == "true" }

    private static func elements(_ text: String, separator: Unicode.Scalar?) -> [String] {
        var elements: [String] = []
        var current = ""
        var rest = text.unicodeScalars.makeIterator()
        while let scalar = rest.next() {
            switch scalar {
            case "\\":
                guard let next = rest.next() else {
                    current += "\\"
                    break
                }
                switch next {
                case "s": current += " "
                case "n": current += "\n"
                case "t": current += "\t"
                case "r": current += "\r"
                case "\\": current += "\\"
                case _:
                    if next != separator { current += "\\" }
                    current.unicodeScalars.append(next)
                }
            case _ where scalar == separator:
                elements.append(current)
                current = ""
            case _:
                current.unicodeScalars.append(scalar)
            }
        }
        if !current.isEmpty { elements.append(current) }
        return elements
    }

    private static func trimmed(_ text: some StringProtocol) -> String {
        let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        let rest = text.drop(while: isSpace)
        guard let last = rest.lastIndex(where: { !isSpace($0) }) else { return "" }
        return String(rest[...last])
    }
}
