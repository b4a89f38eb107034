// SPDX-License-Identifier: Apache-2.0

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
        let value: JSONValue
        do {
            value = try JSONParser.parse(json)
        } catch {
            throw UserInfoError("this is not JSON: \(error)")
        }
        try self.init(value)
    }

    package init(_ value: JSONValue) throws(UserInfoError) {
        guard case .object(let members) = value else {
            throw UserInfoError("it has to be an object such as {\"page\": 3}, and this is \(value.kindName)")
        }
        guard case .dictionary(let entries) = try UserInfoValue(members, path: "") else {
            throw UserInfoError("it has to be an object with names of its own, such as {\"page\": 3}")
        }
        self.init(entries)
    }

    /// The user info as JSON, names in order.
    package var json: JSONValue {
        // The top level is not tagged, so only a member that reading refuses could look like a tag.
        UserInfoValue.dictionary(entries).json
    }

    /// The user info as one line of JSON text.
    public var jsonText: String { json.text }
}

extension UserInfoValue {
    init(_ value: JSONValue, path: String) throws(UserInfoError) {
        switch value {
        case .null: self = .null
        case .boolean(let value): self = .boolean(value)
        case .integer(let value): self = .integer(value)
        case .unsigned(let value): self = .unsignedInteger(value)
        case .real(let value): self = .real(value)
        case .string(let value): self = .string(value)
        case .array(let elements): self = .array(try Self.values(elements, path: path))
        case .object(let members): self = try UserInfoValue(members, path: path)
        }
    }

    fileprivate init(_ members: [JSONValue.Member], path: String) throws(UserInfoError) {
        if members.count == 1, members[0].name.hasPrefix("$") {
            self = try Self.tagged(members[0].name, members[0].value, path: path)
        } else {
            self = .dictionary(try Self.entries(members, path: path))
        }
    }

    private static func values(_ elements: [JSONValue], path: String) throws(UserInfoError) -> [UserInfoValue] {
        var values: [UserInfoValue] = []
        for (index, element) in elements.enumerated() {
            values.append(try UserInfoValue(element, path: "\(path)[\(index)]"))
        }
        return values
    }

    private static func entries(
        _ members: [JSONValue.Member], path: String
    ) throws(UserInfoError) -> [String: UserInfoValue] {
        var entries: [String: UserInfoValue] = [:]
        for member in members {
            let path = path.isEmpty ? member.name : "\(path).\(member.name)"
            entries[member.name] = try UserInfoValue(member.value, path: path)
        }
        return entries
    }

    private static func tagged(
        _ tag: String, _ value: JSONValue, path: String
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
        case ("$dictionary", .object(let members)):
            return .dictionary(try entries(members, path: inner))
        case ("$date", _), ("$url", _), ("$data", _), ("$uuid", _), ("$set", _), ("$real", _), ("$dictionary", _):
            throw UserInfoError("\(tag) does not take \(value.kindName) such as this one", at: inner)
        case _:
            throw UserInfoError(
                "there is no type \(tag); beside JSON's own types, user info has $date, $url, $data, $uuid and $set",
                at: inner)
        }
    }

    var json: JSONValue {
        switch self {
        case .null: .null
        case .boolean(let value): .boolean(value)
        case .integer(let value): .integer(value)
        case .unsignedInteger(let value): .unsigned(value)
        case .real(let value):
            if value.isFinite {
                .real(value)
            } else {
                ["$real": value.isNaN ? "nan" : value > 0 ? "inf" : "-inf"]
            }
        case .string(let value): .string(value)
        case .data(let value): ["$data": .string(value.base64EncodedString())]
        case .date(let value):
            [
                "$date": ISO8601.format(sinceReferenceDate: value.timeIntervalSinceReferenceDate)
                    .map(JSONValue.string) ?? .real(value.timeIntervalSinceReferenceDate)
            ]
        case .url(let value): ["$url": .string(value.absoluteString)]
        case .uuid(let value): ["$uuid": .string(value.uuidString)]
        case .array(let elements): .array(elements.map(\.json))
        // In the order of their text, so that the same set always looks the same.
        case .set(let elements): ["$set": .array(elements.map(\.json).sorted { $0.text < $1.text })]
        case .dictionary(let entries): Self.json(entries)
        }
    }

    private static func json(_ entries: [String: UserInfoValue]) -> JSONValue {
        let object = JSONValue.object(
            entries.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, $0.value.json) })
        let looksTagged = entries.count == 1 && entries.keys.allSatisfy { $0.hasPrefix("$") }
        return looksTagged ? ["$dictionary": object] : object
    }
}
