// SPDX-License-Identifier: Apache-2.0

/// The values of build variables. A project's property lists have them as `$(NAME)` or `${NAME}`, and Xcode replaces
/// them when it builds.
///
/// Modifiers follow the name: `$(PRODUCT_NAME:rfc1034identifier)`; several apply in turn. A value may contain
/// variables, and so may a name: `$(SUFFIX_$(CONFIGURATION))`.
package struct BuildVariables: Sendable, Hashable {
    /// The deepest nesting of variables. A deeper one refers to itself.
    static let depthBound = 16
    /// The most bytes that a text may become.
    static let sizeBound = 64 << 10
    /// The most work for one text: the bytes of all expansions, nested ones too, and 64 for each. Values that name one
    /// another many times would stay small and take for ever.
    static let workBound = 1 << 20

    private static let brackets: [Character: Character] = ["(": ")", "{": "}"]

    private var values: [String: String]

    package init(_ values: [String: String] = [:]) {
        self.values = values
    }

    /// Reads `NAME=VALUE`.
    ///
    /// - Returns: `nil` for any other form.
    package static func assignment(_ text: String) -> (name: String, value: String)? {
        guard let equals = text.firstIndex(of: "=") else { return nil }
        let name = text[..<equals]
        guard !name.isEmpty, name.allSatisfy(isNameCharacter), !(name.first?.isNumber ?? true) else { return nil }
        return (String(name), String(text[text.index(after: equals)...]))
    }

    subscript(name: String) -> String? {
        get { values[name] }
        set { values[name] = newValue }
    }

    /// The text with its variables replaced.
    ///
    /// - Throws: ``ApplicationManifestError/Code/unresolved`` for a variable without a value.
    func resolve(_ text: String) throws(ApplicationManifestError) -> String {
        var work = 0
        return try resolve(text, depth: 0, &work)
    }

    private func resolve(
        _ text: String, depth: Int, _ work: inout Int
    ) throws(ApplicationManifestError) -> String {
        guard depth < Self.depthBound else {
            throw .malformed("the build variables in \"\(text.prefix(80))\" refer to themselves")
        }
        var resolved = ""
        var rest = Substring(text)
        while let dollar = rest.firstIndex(of: "$") {
            resolved += rest[..<dollar]
            let open = rest.index(after: dollar)
            guard open < rest.endIndex, let close = Self.brackets[rest[open]] else {
                resolved += "$"
                rest = rest[open...]
                continue
            }
            let inside = rest[rest.index(after: open)...]
            guard let end = Self.end(of: inside, open: rest[open], close: close) else {
                throw .malformed("\"\(text.prefix(80))\" has a \(rest[open]) behind $ that is not closed")
            }
            let reference = try resolve(String(inside[..<end]), depth: depth + 1, &work)
            resolved += try value(of: reference, depth: depth, &work)
            rest = inside[inside.index(after: end)...]
            try Self.checkSize(resolved)
        }
        resolved += rest
        try Self.checkSize(resolved)
        work += resolved.utf8.count + 64
        guard work <= Self.workBound else {
            throw .tooLarge("the build variables in \"\(text.prefix(80))\" name one another too often")
        }
        return resolved
    }

    /// The index of the bracket that closes the one before `text`.
    private static func end(of text: Substring, open: Character, close: Character) -> Substring.Index? {
        var depth = 0
        for index in text.indices {
            if text[index] == open { depth += 1 }
            guard text[index] == close else { continue }
            if depth == 0 { return index }
            depth -= 1
        }
        return nil
    }

    /// - Parameter reference: a name and its modifiers.
    private func value(
        of reference: String, depth: Int, _ work: inout Int
    ) throws(ApplicationManifestError) -> String {
        let parts = reference.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        let name = parts[0]
        let modifiers = parts.dropFirst()
        let fallback = modifiers.lazy.compactMap { $0.hasPrefix("default=") ? String($0.dropFirst(8)) : nil }.first
        // As for Xcode, a variable without a value is one with an empty value, where a default is given.
        let value = values[name].flatMap { $0.isEmpty && fallback != nil ? nil : $0 } ?? fallback
        guard var value else {
            throw .unresolved(
                ["AppIdentifierPrefix", "TeamIdentifierPrefix", "DEVELOPMENT_TEAM"].contains(name)
                    ? "$(\(name)) has no value: give the team with --team TEAM"
                    : "$(\(name)) has no value: give it with --set \(name)=VALUE")
        }
        value = try resolve(value, depth: depth + 1, &work)
        for modifier in modifiers where !modifier.hasPrefix("default=") {
            value = try Self.apply(modifier, to: value, of: name)
        }
        return value
    }

    /// Source: Xcode's build settings reference, "Build setting operators".
    private static func apply(
        _ modifier: String, to value: String, of name: String
    ) throws(ApplicationManifestError) -> String {
        switch modifier {
        case "rfc1034identifier":
            return replaced(value, by: "-") { $0.isASCII && ($0.isLetter || $0.isNumber) || $0 == "-" || $0 == "." }
        case "c99extidentifier", "identifier":
            return replaced(value, by: "_") { $0.isLetter || $0.isNumber || $0 == "_" }
        case "lower": return value.lowercased()
        case "upper": return value.uppercased()
        case _:
            throw .unresolved(
                "$(\(name):\(modifier)) changes the value in a way that is not known here: write the value itself "
                    + "into a copy of the file")
        }
    }

    private static func replaced(
        _ text: String, by replacement: Character, except isKept: (Character) -> Bool
    ) -> String {
        String(text.map { isKept($0) ? $0 : replacement })
    }

    private static func isNameCharacter(_ character: Character) -> Bool {
        character.isASCII && (character.isLetter || character.isNumber || character == "_")
    }

    private static func checkSize(_ text: String) throws(ApplicationManifestError) {
        guard text.utf8.count <= sizeBound else {
            throw .tooLarge("a text becomes over \(sizeBound >> 10) KiB when its build variables are replaced")
        }
    }
}
