// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import FoundationEssentials

/// User info as JSON, for the command and for scripts.
///
/// JSON's own types stand for themselves. The others are objects with one member whose name begins with `$`:
///
/// | Type | Form |
/// | --- | --- |
/// | date | `{"$date": "2026-11-21T09:30:00Z"}` |
/// | URL | `{"$url": "https://example.org/"}` |
/// | data | `{"$data": "aGVsbG8="}` (Base64) |
/// | UUID | `{"$uuid": "6BA7B810-9DAD-11D1-80B4-00C04FD430C8"}` |
/// | set | `{"$set": [1, 2]}` |
/// | a number that JSON lacks | `{"$real": "nan"}`, `"inf"`, `"-inf"` |
/// | a dictionary that looks like one of these | `{"$dictionary": {"$date": 1}}` |
///
/// Any other object with a single member whose name begins with `$` is refused.
extension UserInfo {
    /// Reads user info from JSON text.
    ///
    /// - Throws: ``UserInfoError``, which names the mistake and its place.
    public init(json: some Sequence<UInt8>) throws(UserInfoError) {
        let value: UserInfoValue
        do {
            value = try JSONParser.parse(json)
        } catch {
            throw UserInfoError("this is not JSON: \(error)")
        }
        try self.init(untagged: value)
    }

    /// User info from JSON whose objects were not yet looked at for tags.
    package init(untagged value: UserInfoValue) throws(UserInfoError) {
        guard case .dictionary = value else {
            throw UserInfoError("it has to be an object such as {\"page\": 3}, and this is \(value.kindName)")
        }
        guard case .dictionary(let entries) = try value.tagged(path: "") else {
            throw UserInfoError("it has to be an object with names of its own, such as {\"page\": 3}")
        }
        self.init(entries)
    }

    /// The user info as one line of JSON text, names in order. Control, bidirectional and invisible characters are
    /// escaped, so that a terminal shows the line as it is.
    public var jsonText: String { UserInfoValue.dictionary(entries).jsonText }
}

extension UserInfoValue {
    /// The value of a dictionary's name; `nil` if the dictionary has none, or if this is no dictionary.
    package subscript(name: String) -> UserInfoValue? {
        if case .dictionary(let entries) = self { entries[name] } else { nil }
    }

    /// The word for this kind of JSON in a sentence.
    fileprivate var kindName: String {
        switch self {
        case .null: "null"
        case .boolean: "a boolean"
        case .integer, .unsignedInteger, .real: "a number"
        case .string: "a string"
        case .array: "an array"
        case .dictionary, .data, .date, .url, .uuid, .set: "an object"
        }
    }

    /// The value with tagged objects replaced by what they stand for.
    fileprivate func tagged(path: String) throws(UserInfoError) -> UserInfoValue {
        switch self {
        case .array(let elements): return .array(try Self.values(elements, path: path))
        case .dictionary(let entries):
            if entries.count == 1, let (tag, value) = entries.first, tag.hasPrefix("$") {
                return try Self.tagged(tag, value, path: path)
            }
            return .dictionary(try Self.entries(entries, path: path))
        case .null, .boolean, .integer, .unsignedInteger, .real, .string, .data, .date, .url, .uuid, .set: return self
        }
    }

    private static func values(_ elements: [UserInfoValue], path: String) throws(UserInfoError) -> [UserInfoValue] {
        var values: [UserInfoValue] = []
        for (index, element) in elements.enumerated() {
            values.append(try element.tagged(path: "\(path)[\(index)]"))
        }
        return values
    }

    private static func entries(
        _ untagged: [String: UserInfoValue], path: String
    ) throws(UserInfoError) -> [String: UserInfoValue] {
        var entries: [String: UserInfoValue] = [:]
        for (name, value) in untagged {
            entries[name] = try value.tagged(path: path.isEmpty ? name : "\(path).\(name)")
        }
        return entries
    }

    private static func tagged(
        _ tag: String, _ value: UserInfoValue, path: String
    ) throws(UserInfoError) -> UserInfoValue {
        let inner = path.isEmpty ? tag : "\(path).\(tag)"
        switch (tag, value) {
        case ("$date", .string(let text)):
            guard let seconds = ISO8601.parse(sinceReferenceDate: text) else {
                throw UserInfoError(
                    "\"\(text)\" is no date as ISO 8601 has it, such as 2026-11-21T09:30:00Z", at: inner)
            }
            return .date(Date(timeIntervalSinceReferenceDate: seconds))
        // A date that ISO 8601 does not reach, or not as exactly, as seconds since 2001.
        case ("$date", .real(let seconds)):
            return .date(Date(timeIntervalSinceReferenceDate: seconds))
        case ("$url", .string(let text)):
            guard let url = URL(string: text), url.scheme != nil else {
                throw UserInfoError("\"\(text)\" is no URL, such as https://example.org/", at: inner)
            }
            return .url(url)
        case ("$data", .string(let text)):
            guard let data = Data(base64Encoded: text) else {
                throw UserInfoError("the data is not Base64", at: inner)
            }
            return .data(data)
        case ("$uuid", .string(let text)):
            guard let uuid = UUID(uuidString: text) else {
                throw UserInfoError("\"\(text)\" is no UUID", at: inner)
            }
            return .uuid(uuid)
        case ("$set", .array(let elements)):
            return .set(Set(try values(elements, path: inner)))
        case ("$real", .string("nan")): return .real(.nan)
        case ("$real", .string("inf")): return .real(.infinity)
        case ("$real", .string("-inf")): return .real(-.infinity)
        case ("$dictionary", .dictionary(let untagged)):
            return .dictionary(try entries(untagged, path: inner))
        case ("$date", _), ("$url", _), ("$data", _), ("$uuid", _), ("$set", _), ("$real", _), ("$dictionary", _):
            throw UserInfoError("\(tag) does not take \(value.kindName) such as this one", at: inner)
        case _:
            throw UserInfoError(
                "there is no type \(tag); beside JSON's own types, user info has $date, $url, $data, $uuid and $set",
                at: inner)
        }
    }

    /// The value as one line of JSON text.
    package var jsonText: String {
        switch self {
        case .null: "null"
        case .boolean(let value): "\(value)"
        case .integer(let value): "\(value)"
        case .unsignedInteger(let value): "\(value)"
        case .real(let value):
            // Swift's shortest form that reads back the same. It always has a point or an exponent, so it is never
            // read as a whole number.
            value.isFinite
                ? "\(value)" : Self.object([("$real", value.isNaN ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"")])
        case .string(let value): Self.quoted(value)
        case .data(let value): Self.object([("$data", Self.quoted(value.base64EncodedString()))])
        case .date(let value):
            Self.object([
                (
                    "$date",
                    ISO8601.format(sinceReferenceDate: value.timeIntervalSinceReferenceDate).map(Self.quoted)
                        ?? "\(value.timeIntervalSinceReferenceDate)"
                )
            ])
        case .url(let value): Self.object([("$url", Self.quoted(value.absoluteString))])
        case .uuid(let value): Self.object([("$uuid", Self.quoted(value.uuidString))])
        case .array(let elements): Self.array(elements.map(\.jsonText))
        // In the order of their text, so that the same set always looks the same.
        case .set(let elements): Self.object([("$set", Self.array(elements.map(\.jsonText).sorted()))])
        case .dictionary(let entries): Self.json(entries)
        }
    }

    private static func json(_ entries: [String: UserInfoValue]) -> String {
        let object = object(entries.sorted { $0.key < $1.key }.map { ($0.key, $0.value.jsonText) })
        let looksTagged = entries.count == 1 && entries.keys.allSatisfy { $0.hasPrefix("$") }
        return looksTagged ? Self.object([("$dictionary", object)]) : object
    }

    /// A JSON array of texts that are JSON.
    package static func array(_ texts: [String]) -> String { "[" + texts.joined(separator: ",") + "]" }

    /// A JSON object of names and texts that are JSON, in this order.
    package static func object(_ members: [(name: String, text: String)]) -> String {
        "{" + members.map { quoted($0.name) + ":" + $0.text }.joined(separator: ",") + "}"
    }

    private static func quoted(_ string: String) -> String {
        var text = "\""
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
        return text + "\""
    }
}
