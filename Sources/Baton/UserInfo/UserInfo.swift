// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// The state that an activity carries from one device to the other: names with values of the ten types that
/// `NSUserActivity` allows in its `userInfo`.
///
/// The type rules out anything else, which Apple's dictionary silently drops.
public struct UserInfo: Sendable, Hashable {
    /// The entries, by name.
    public var entries: [String: UserInfoValue]

    /// User info with these entries; none by default.
    public init(_ entries: [String: UserInfoValue] = [:]) {
        self.entries = entries
    }

    /// Whether there is no entry.
    public var isEmpty: Bool { entries.isEmpty }

    /// The value of a name; setting `nil` removes it.
    public subscript(name: String) -> UserInfoValue? {
        get { entries[name] }
        set { entries[name] = newValue }
    }
}

extension UserInfo: ExpressibleByDictionaryLiteral {
    public init(dictionaryLiteral elements: (String, UserInfoValue)...) {
        self.init(Dictionary(elements) { _, last in last })
    }
}

/// One value of a ``UserInfo``.
///
/// The ten types are array, data, date, dictionary, null, number, set, string, URL and UUID. A number is one of four
/// cases, which stay apart on their way: `true`, 1 and 1.0 arrive as three different values.
public indirect enum UserInfoValue: Sendable, Hashable {
    case null
    case boolean(Bool)
    case integer(Int64)
    /// A whole number above `Int64.max`; smaller ones arrive as ``integer(_:)``.
    case unsignedInteger(UInt64)
    case real(Double)
    case string(String)
    case data(Data)
    case date(Date)
    case url(URL)
    case uuid(UUID)
    case array([UserInfoValue])
    case set(Set<UserInfoValue>)
    case dictionary([String: UserInfoValue])
}

extension UserInfoValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(floatLiteral value: Double) { self = .real(value) }
    public init(booleanLiteral value: Bool) { self = .boolean(value) }
    public init(arrayLiteral elements: UserInfoValue...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, UserInfoValue)...) {
        self = .dictionary(Dictionary(elements) { _, last in last })
    }
    public init(nilLiteral: ()) { self = .null }
}

/// Why something is no user info, or is too much of it.
public struct UserInfoError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Where it is, such as `pages[2].when`; empty for the whole.
    public let path: String
    /// The problem and the next step, as one clause.
    public let problem: String

    package init(_ problem: String, at path: String = "") {
        self.path = path
        self.problem = problem
    }

    public var description: String { path.isEmpty ? "user info: \(problem)" : "user info at \(path): \(problem)" }
}
