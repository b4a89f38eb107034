// SPDX-License-Identifier: Apache-2.0

/// Reads JSON as RFC 8259 has it, and nothing else: no comments, no trailing commas, valid UTF-8, no repeated names.
///
/// Foundation's readers cannot be used for user info, since they turn `1.0` into 1 and, through `NSNumber`, `true`
/// into 1.
package struct JSONParser {
    /// How deep arrays and objects may nest: more would cost stack before anyone looks at it.
    package static let maximumDepth = 32

    private let bytes: [UInt8]
    private var position = 0
    private var depth = 0

    package static func parse(_ text: some Sequence<UInt8>) throws(JSONError) -> JSONValue {
        var parser = JSONParser(bytes: Array(text))
        return try parser.parseText()
    }

    package static func parse(_ text: String) throws(JSONError) -> JSONValue {
        try parse(text.utf8)
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    private mutating func parseText() throws(JSONError) -> JSONValue {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
        skipSpace()
        guard position < bytes.count else { throw error("there is nothing where JSON was expected") }
        let value = try parseValue()
        skipSpace()
        guard position == bytes.count else { throw error("something follows the end of the JSON value") }
        return value
    }

    private mutating func parseValue() throws(JSONError) -> JSONValue {
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

    private mutating func parseWord(_ word: String, _ value: JSONValue) throws(JSONError) -> JSONValue {
        guard bytes[position...].starts(with: word.utf8) else {
            throw error("a value was expected (strings and names stand in double quotes)")
        }
        position += word.utf8.count
        return value
    }

    // MARK: - Arrays and objects

    private mutating func parseArray() throws(JSONError) -> JSONValue {
        try enter()
        var elements: [JSONValue] = []
        if take(UInt8(ascii: "]")) { return leave(.array([])) }
        repeat {
            skipSpace()
            elements.append(try parseValue())
            skipSpace()
        } while take(UInt8(ascii: ","))
        guard take(UInt8(ascii: "]")) else { throw error("a comma or ] was expected") }
        return leave(.array(elements))
    }

    private mutating func parseObject() throws(JSONError) -> JSONValue {
        try enter()
        var members: [JSONValue.Member] = []
        var names: Set<String> = []
        if take(UInt8(ascii: "}")) { return leave(.object([])) }
        repeat {
            skipSpace()
            guard peek == UInt8(ascii: "\"") else { throw error("a name in double quotes was expected") }
            let start = position
            let name = try parseString()
            guard names.insert(name).inserted else {
                position = start
                throw error("the name \"\(name)\" is there twice")
            }
            skipSpace()
            guard take(UInt8(ascii: ":")) else { throw error("a colon was expected behind the name") }
            skipSpace()
            members.append(JSONValue.Member(name, try parseValue()))
            skipSpace()
        } while take(UInt8(ascii: ","))
        guard take(UInt8(ascii: "}")) else { throw error("a comma or } was expected") }
        return leave(.object(members))
    }

    private mutating func enter() throws(JSONError) {
        guard depth < Self.maximumDepth else { throw error("it nests deeper than \(Self.maximumDepth) levels") }
        depth += 1
        position += 1
        skipSpace()
    }

    private mutating func leave(_ value: JSONValue) -> JSONValue {
        depth -= 1
        return value
    }

    // MARK: - Numbers

    private mutating func parseNumber() throws(JSONError) -> JSONValue {
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
            if let value = UInt64(text) { return .unsigned(value) }
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
        position += 1
        let start = position
        var decoded: [UInt8] = []
        while let byte = peek {
            switch byte {
            case UInt8(ascii: "\""):
                guard let string = String(validating: decoded, as: UTF8.self) else {
                    position = start
                    throw error("the string is not valid UTF-8")
                }
                position += 1
                return string
            case UInt8(ascii: "\\"):
                position += 1
                decoded.append(contentsOf: String(try parseEscape()).utf8)
            case 0..<0x20:
                throw error("a control character stands in a string; write it as \\n, \\t or \\u00XX")
            case _:
                decoded.append(byte)
                position += 1
            }
        }
        throw error("the text ends inside a string")
    }

    private mutating func parseEscape() throws(JSONError) -> Unicode.Scalar {
        guard let byte = peek else { throw error("the text ends inside a string") }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return try parseUnicodeEscape()
        case _:
            position -= 1
            throw error("JSON has no such escape")
        }
    }

    private mutating func parseUnicodeEscape() throws(JSONError) -> Unicode.Scalar {
        let first = try parseFourHexDigits()
        if let scalar = Unicode.Scalar(first) { return scalar }
        // A surrogate: the low one has to follow the high one.
        if first < 0xDC00, take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) {
            let second = try parseFourHexDigits()
            if (0xDC00..<0xE000).contains(second),
                let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
            {
                return scalar
            }
        }
        throw error("half of a surrogate pair stands alone")
    }

    private mutating func parseFourHexDigits() throws(JSONError) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = peek, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
                throw error("four hexadecimal digits were expected")
            }
            value = value << 4 | UInt32(digit)
            position += 1
        }
        return value
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
        let before = bytes[..<min(position, bytes.count)]
        let line = before.count { $0 == UInt8(ascii: "\n") } + 1
        let lineStart = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        return JSONError(problem: problem, line: line, column: position - lineStart + 1)
    }
}
