// SPDX-License-Identifier: Apache-2.0

import Baton
import FoundationEssentials

/// The members of one message, which are removed one by one as they are read. A member that is left is a mistake, such
/// as a mistyped name.
struct BridgeMembers {
    private let message: String
    private var members: [String: JSONValue] = [:]

    init(_ members: [JSONValue.Member], of message: String) {
        self.message = message
        for member in members { self.members[member.name] = member.value }
    }

    func requireEmpty() throws(BridgeProblem) {
        guard let name = members.keys.min() else { return }
        throw BridgeProblem("“\(message)” takes no member “\(name)” here")
    }

    /// Removes a member and returns its value; `nil` if it is missing.
    mutating func take(_ name: String) -> JSONValue? {
        members.removeValue(forKey: name)
    }

    mutating func string(_ name: String) throws(BridgeProblem) -> String {
        guard let value = take(name) else { throw missing(name) }
        return try string(value, name)
    }

    mutating func optionalString(_ name: String) throws(BridgeProblem) -> String? {
        guard let value = take(name) else { return nil }
        return try string(value, name)
    }

    mutating func optionalStrings(_ name: String) throws(BridgeProblem) -> [String]? {
        guard let value = take(name) else { return nil }
        return try strings(value, name)
    }

    mutating func optionalBoolean(_ name: String) throws(BridgeProblem) -> Bool? {
        guard let value = take(name) else { return nil }
        return try boolean(value, name)
    }

    mutating func boolean(_ name: String, else otherwise: Bool? = nil) throws(BridgeProblem) -> Bool {
        guard let value = try optionalBoolean(name) ?? otherwise else { throw missing(name) }
        return value
    }

    /// Reads a name that the program gives: 1 to 64 bytes.
    mutating func name(_ name: String) throws(BridgeProblem) -> String {
        let text = try string(name)
        guard (1...Bridge.nameBound).contains(text.utf8.count) else {
            throw BridgeProblem("“\(name)” of “\(message)” takes 1 to \(Bridge.nameBound) bytes")
        }
        return text
    }

    /// Reads the number of a question.
    mutating func request() throws(BridgeProblem) -> UInt64 {
        guard let value = take("request") else { throw missing("request") }
        return try integer(value, "request", "the number of the question")
    }

    /// Reads the exit status of a program that failed, 1 to 255; nil if the message has none.
    mutating func optionalStatus() throws(BridgeProblem) -> UInt8? {
        guard let value = take("status") else { return nil }
        let wanted = "a whole number, 1 to 255"
        let status: UInt8 = try integer(value, "status", wanted)
        guard status > 0 else { throw unfit(value.text, "status", wanted) }
        return status
    }

    func integer<Value: FixedWidthInteger>(
        _ value: JSONValue, _ name: String, _ wanted: String
    ) throws(BridgeProblem) -> Value {
        switch value {
        case .integer(let number):
            guard let value = Value(exactly: number) else { throw unfit(value.text, name, wanted) }
            return value
        case .unsigned, .real: throw unfit(value.text, name, wanted)
        case .null, .boolean, .string, .array, .object: throw wrong(value, name, wanted)
        }
    }

    func string(_ value: JSONValue, _ name: String) throws(BridgeProblem) -> String {
        guard case .string(let text) = value else { throw wrong(value, name, "a string") }
        return text
    }

    func boolean(_ value: JSONValue, _ name: String) throws(BridgeProblem) -> Bool {
        guard case .boolean(let flag) = value else { throw wrong(value, name, "true or false") }
        return flag
    }

    func strings(_ value: JSONValue, _ name: String) throws(BridgeProblem) -> [String] {
        guard case .array(let elements) = value else { throw wrong(value, name, "an array of strings") }
        var texts: [String] = []
        for element in elements { texts.append(try string(element, name)) }
        return texts
    }

    /// The problem of a value that has the right type and is not allowed.
    ///
    /// - Parameter text: the value. Only its beginning is shown.
    func unfit(_ text: String, _ name: String, _ wanted: String) -> BridgeProblem {
        let shown = text.unicodeScalars.prefix(80)
        let end = shown.endIndex < text.unicodeScalars.endIndex ? "…" : ""
        return BridgeProblem("“\(name)” of “\(message)” takes \(wanted), and not “\(String(shown))\(end)”")
    }

    func wrong(_ value: JSONValue, _ name: String, _ wanted: String) -> BridgeProblem {
        BridgeProblem("“\(name)” of “\(message)” takes \(wanted), and this is \(value.kindName)")
    }

    private func missing(_ name: String) -> BridgeProblem {
        BridgeProblem("“\(message)” needs a member “\(name)”")
    }
}

/// The mistake in a line of input: one sentence without a full stop, which the `error` event repeats.
struct BridgeProblem: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
