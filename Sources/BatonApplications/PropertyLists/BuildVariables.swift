// SPDX-License-Identifier: Apache-2.0

/// The values of build variables. A project's property lists have them as `$(NAME)` or `${NAME}`, and Xcode replaces
/// them when it builds.
///
/// The modifier `rfc1034identifier` may follow the name: `$(PRODUCT_NAME:rfc1034identifier)`. A value is taken as it
/// is.
package struct BuildVariables: Sendable, Hashable {
    /// The most bytes that a text may become.
    static let sizeBound = 64 << 10

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
        var resolved = ""
        var rest = Substring(text)
        while let dollar = rest.firstIndex(of: "$") {
            resolved += rest[..<dollar]
            rest = rest[dollar...].dropFirst()
            guard let open = rest.first, let close = Self.brackets[open] else {
                resolved += "$"
                continue
            }
            guard let end = rest.firstIndex(of: close) else {
                throw .init("\"\(text.prefix(80))\" has a \(open) behind $ that is not closed")
            }
            resolved += try value(of: rest[..<end].dropFirst())
            rest = rest[end...].dropFirst()
            try Self.checkSize(resolved)
        }
        resolved += rest
        try Self.checkSize(resolved)
        return resolved
    }

    /// - Parameter reference: a name, and a modifier if there is one.
    private func value(of reference: Substring) throws(ApplicationManifestError) -> String {
        let parts = reference.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        let name = parts[0]
        guard let value = values[name] else {
            throw .init(
                ["AppIdentifierPrefix", "TeamIdentifierPrefix", "DEVELOPMENT_TEAM"].contains(name)
                    ? "$(\(name)) has no value: give the team with --team TEAM"
                    : "$(\(name)) has no value: give it with --set \(name)=VALUE")
        }
        switch parts.dropFirst() {
        case []:
            return value
        case ["rfc1034identifier"]:
            let isKept = { (character: Character) in
                character.isASCII && (character.isLetter || character.isNumber) || "-.".contains(character)
            }
            return String(value.map { isKept($0) ? $0 : "-" })
        case _:
            throw .init(
                "$(\(reference)) changes the value in a way that is not known here: write the value itself into a copy "
                    + "of the file")
        }
    }

    private static func isNameCharacter(_ character: Character) -> Bool {
        character.isASCII && (character.isLetter || character.isNumber || character == "_")
    }

    private static func checkSize(_ text: String) throws(ApplicationManifestError) {
        guard text.utf8.count <= sizeBound else {
            throw .init("a text becomes over \(sizeBound >> 10) KiB when its build variables are replaced")
        }
    }
}
