// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// Reads JSON as RFC 8259 has it, and nothing else: no comments, no trailing commas, valid UTF-8, no repeated names.
///
/// `1`, `1.0` and `true` are three different values. Foundation's readers cannot be used for user info: they turn `1.0`
/// into 1, and take one of two members with the same name.
package struct JSONParser {
    /// How deep arrays and objects may nest: more would cost stack before anyone looks at it.
    package static let maximumDepth = 32

    private let bytes: [UInt8]
    private var position = 0
    private var depth = 0

    package static func parse(_ text: some Sequence<UInt8>) throws(JSONError) -> UserInfoValue {
        var parser = JSONParser(bytes: Array(text))
        return try parser.parseText()
    }

    package static func parse(_ text: String) throws(JSONError) -> UserInfoValue {
        try parse(text.utf8)
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    private mutating func parseText() throws(JSONError) -> UserInfoValue {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
        skipSpace()
        guard position < bytes.count else { throw error("there is nothing where JSON was expected") }
        let value = try parseValue()
        skipSpace()
        guard position == bytes.count else { throw error("something follows the end of the JSON value") }
        return value
    }

    private mutating func parseValue() throws(JSONError) -> UserInfoValue {
        guard let byte = peek else { throw error("the text ends where a value was expected") }
        switch byte {
        case UInt8(ascii: "{"): return try parseObject()
        case UInt8(ascii: "["): return try parseArray()
        case UInt8(ascii: "\""): return .string(try parseString())
        case UInt8(ascii: "t"): return try parseWord("true", .boolean(true))
        case UInt8(ascii: "f"): return try parseWord("false", .boolean(false))
        case UInt8(ascii: "n"): return try parseWord("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try parseNumber()
        case _: throw error("a value was expected (strings and names stand in double quotes)")
        }
    }

    private mutating func parseWord(_ word: String, _ value: UserInfoValue) throws(JSONError) -> UserInfoValue {
        guard bytes[position...].starts(with: word.utf8) else {
            throw error("a value was expected (strings and names stand in double quotes)")
        }
        position += word.utf8.count
        return value
    }

    // MARK: - Arrays and objects

    private mutating func parseArray() throws(JSONError) -> UserInfoValue {
        try enter()
        var elements: [UserInfoValue] = []
        if take(UInt8(ascii: "]")) { return leave(.array([])) }
        repeat {
            skipSpace()
            elements.append(try parseValue())
            skipSpace()
        } while take(UInt8(ascii: ","))
        guard take(UInt8(ascii: "]")) else { throw error("a comma or ] was expected") }
        return leave(.array(elements))
    }

    private mutating func parseObject() throws(JSONError) -> UserInfoValue {
        try enter()
        var entries: [String: UserInfoValue] = [:]
        if take(UInt8(ascii: "}")) { return leave(.dictionary([:])) }
        repeat {
            skipSpace()
            guard peek == UInt8(ascii: "\"") else { throw error("a name in double quotes was expected") }
            let start = position
            let name = try parseString()
            guard entries[name] == nil else {
                position = start
                throw error("the name \"\(name)\" is there twice")
            }
            skipSpace()
            guard take(UInt8(ascii: ":")) else { throw error("a colon was expected behind the name") }
            skipSpace()
            entries[name] = try parseValue()
            skipSpace()
        } while take(UInt8(ascii: ","))
        guard take(UInt8(ascii: "}")) else { throw error("a comma or } was expected") }
        return leave(.dictionary(entries))
    }

    private mutating func enter() throws(JSONError) {
        guard depth < Self.maximumDepth else { throw error("it nests deeper than \(Self.maximumDepth) levels") }
        depth += 1
        position += 1
        skipSpace()
    }

    private mutating func leave(_ value: UserInfoValue) -> UserInfoValue {
        depth -= 1
        return value
    }

    // MARK: - Numbers

    private mutating func parseNumber() throws(JSONError) -> UserInfoValue {
        let start = position
        _ = take(UInt8(ascii: "-"))
        let digits = skipDigits()
        guard digits > 0 else { throw error("a digit was expected") }
        if digits > 1, bytes[position - digits] == UInt8(ascii: "0") {
            position = start
            throw error("a number does not begin with 0")
        }
        var isWhole = true
        if take(UInt8(ascii: ".")) {
            isWhole = false
            guard skipDigits() > 0 else { throw error("a digit was expected behind the decimal point") }
        }
        if peek == UInt8(ascii: "e") || peek == UInt8(ascii: "E") {
            isWhole = false
            position += 1
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            guard skipDigits() > 0 else { throw error("a digit was expected in the exponent") }
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isWhole {
            if let value = Int64(text) { return .integer(value) }
            if let value = UInt64(text) { return .unsignedInteger(value) }
            position = start
            throw error("the whole number \(text.prefix(40)) does not fit 64 bits; write it with a decimal point")
        }
        guard let value = Double(text), value.isFinite else {
            position = start
            throw error("the number \(text.prefix(40)) is too large")
        }
        return .real(value)
    }

    private mutating func skipDigits() -> Int {
        let start = position
        while let byte = peek, byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") { position += 1 }
        return position - start
    }

    // MARK: - Strings

    private mutating func parseString() throws(JSONError) -> String {
        let start = position
        var hasEscape = false
        position += 1
        while let byte = peek, byte != UInt8(ascii: "\"") {
            guard byte >= 0x20 else {
                throw error("a control character stands in a string; write it as \\n, \\t or \\u00XX")
            }
            if byte == UInt8(ascii: "\\") {
                hasEscape = true
                position += 1
            }
            position += 1
        }
        guard take(UInt8(ascii: "\"")) else { throw error("the text ends inside a string") }
        let quoted = bytes[start..<position]
        let string =
            hasEscape
            ? try? JSONDecoder().decode(String.self, from: Data(quoted))
            : String(validating: quoted.dropFirst().dropLast(), as: UTF8.self)
        guard let string else {
            position = start
            throw error("the string is not valid UTF-8, or has an escape that JSON does not have")
        }
        return string
    }

    // MARK: - Bytes

    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard peek == byte else { return false }
        position += 1
        return true
    }

    private mutating func skipSpace() {
        while let byte = peek, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    private func error(_ problem: String) -> JSONError {
        let before = bytes.prefix(position)
        let line = before.count { $0 == UInt8(ascii: "\n") } + 1
        let lineStart = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        return JSONError(problem: problem, line: line, column: before.count - lineStart + 1)
    }
}

package struct JSONError: Error, Sendable, Hashable, CustomStringConvertible {
    /// One clause, such as `a comma or } was expected`.
    package let problem: String
    /// Lines and columns count from 1; columns are bytes.
    package let line: Int
    package let column: Int

    package var description: String { "\(problem) (line \(line), column \(column))" }
}
