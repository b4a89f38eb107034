// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// A value of a JSON text. `1`, `1.0` and `true` are three different values, and members keep their order.
package enum JSONValue: Sendable, Hashable {
    case null
    case boolean(Bool)
    /// A number without fraction and exponent that fits 64 bits with a sign.
    case integer(Int64)
    /// A number without fraction and exponent above `Int64.max`.
    case unsigned(UInt64)
    /// A number with a fraction or an exponent. Finite when it was read.
    case real(Double)
    case string(String)
    case array([JSONValue])
    case object([Member])

    package struct Member: Sendable, Hashable {
        package let name: String
        package let value: JSONValue

        package init(_ name: String, _ value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    /// The value of an object's member; `nil` if the object has no such member, or if this is no object.
    package subscript(name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    /// The word for this kind of value in a sentence.
    package var kindName: String {
        switch self {
        case .null: "null"
        case .boolean: "a boolean"
        case .integer, .unsigned, .real: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}

extension JSONValue: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(elements.map { Member($0.0, $0.1) })
    }
}

extension JSONValue: ExpressibleByStringLiteral {
    package init(stringLiteral value: String) {
        self = .string(value)
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

extension JSONValue {
    /// The value as one line of JSON text. Control, bidirectional and invisible characters are escaped, so that a
    /// terminal shows the line as it is.
    package var text: String {
        var text = ""
        write(to: &text)
        return text
    }

    private func write(to text: inout String) {
        switch self {
        case .null: text += "null"
        case .boolean(let value): text += value ? "true" : "false"
        case .integer(let value): text += String(value)
        case .unsigned(let value): text += String(value)
        // Swift's shortest form that reads back the same. It always has a point or an exponent, so it is never read as
        // a whole number. JSON has no infinity and no NaN; writers put null in their place.
        case .real(let value): text += value.isFinite ? "\(value)" : "null"
        case .string(let value): Self.write(value, to: &text)
        case .array(let elements):
            text += "["
            for (index, element) in elements.enumerated() {
                if index > 0 { text += "," }
                element.write(to: &text)
            }
            text += "]"
        case .object(let members):
            text += "{"
            for (index, member) in members.enumerated() {
                if index > 0 { text += "," }
                Self.write(member.name, to: &text)
                text += ":"
                member.value.write(to: &text)
            }
            text += "}"
        }
    }

    private static func write(_ string: String, to text: inout String) {
        text += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case _ where scalar.isUnsafeToShow:
                for unit in String(scalar).utf16 {
                    let digits = String(unit, radix: 16)
                    text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }
            case _: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}
