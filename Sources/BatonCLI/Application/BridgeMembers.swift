// SPDX-License-Identifier: Apache-2.0

import Baton
import FoundationEssentials

/// The members of one message, which are removed one by one as they are read. A member that is left is a mistake, such
/// as a mistyped name.
struct BridgeMembers {
    private let message: String
    private var members: [String: UserInfoValue]

    init(_ members: [String: UserInfoValue], of message: String) {
        self.message = message
        self.members = members
    }

    func requireEmpty() throws(BridgeProblem) {
        guard let name = members.keys.min() else { return }
        throw BridgeProblem("“\(message)” takes no member “\(name)” here")
    }

    /// Removes a member and returns its value; `nil` if it is missing.
    mutating func optional<Value>(_ name: String, _ reader: BridgeReader<Value>) throws(BridgeProblem) -> Value? {
        guard let member = members.removeValue(forKey: name) else { return nil }
        if let value = try reader.read(member) { return value }
        let text = member.jsonText.unicodeScalars
        let shown = String(String.UnicodeScalarView(text.prefix(80))) + (text.count > 80 ? "…" : "")
        throw BridgeProblem("“\(name)” of “\(message)” takes \(reader.wanted), and not \(shown)")
    }

    mutating func required<Value>(_ name: String, _ reader: BridgeReader<Value>) throws(BridgeProblem) -> Value {
        if let value = try optional(name, reader) { return value }
        throw BridgeProblem("“\(message)” needs a member “\(name)”")
    }
}

/// Reads the value of a member as what the message takes there.
struct BridgeReader<Value: Sendable>: Sendable {
    /// What it takes, for the problem with any other value.
    let wanted: String
    /// Returns nil for a value of another kind.
    let read: @Sendable (UserInfoValue) throws(BridgeProblem) -> Value?

    /// The same, where `null` stands for no value.
    var orNull: BridgeReader<Value?> {
        BridgeReader<Value?>(wanted: wanted) { (value) throws(BridgeProblem) in
            value == .null ? .some(nil) : try read(value).map { .some($0) }
        }
    }
}

extension BridgeReader<String> {
    static var string: Self {
        Self(wanted: "a string") { if case .string(let text) = $0 { text } else { nil } }
    }

    /// A name that the program gives: 1 to 64 bytes.
    static var name: Self {
        Self(wanted: "a string of 1 to \(Bridge.nameBound) bytes") { value in
            guard case .string(let text) = value, (1...Bridge.nameBound).contains(text.utf8.count) else { return nil }
            return text
        }
    }
}

extension BridgeReader<[String]> {
    static var strings: Self {
        Self(wanted: "an array of strings") { value in
            guard case .array(let elements) = value else { return nil }
            let texts = elements.compactMap { if case .string(let text) = $0 { text } else { nil } }
            return texts.count == elements.count ? texts : nil
        }
    }
}

extension BridgeReader<Bool> {
    static var boolean: Self {
        Self(wanted: "true or false") { if case .boolean(let flag) = $0 { flag } else { nil } }
    }
}

extension BridgeReader where Value: FixedWidthInteger {
    static func integer(from least: Value = 0) -> Self {
        Self(wanted: "a whole number, \(least) to \(Value.max)") { value in
            guard case .integer(let number) = value, let number = Value(exactly: number) else { return nil }
            return number >= least ? number : nil
        }
    }
}

extension BridgeReader<UInt64> {
    /// The number of a question.
    static var number: Self { integer() }
}

extension BridgeReader<UInt8> {
    /// The exit status of a program that failed.
    static var status: Self { integer(from: 1) }
}

/// The mistake in a line of input: one sentence without a full stop, which the `error` event repeats.
struct BridgeProblem: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
