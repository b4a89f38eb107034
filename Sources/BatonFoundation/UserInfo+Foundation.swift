// SPDX-License-Identifier: Apache-2.0

public import Baton
import Foundation

/// User info as Foundation's dictionaries, the form that `NSUserActivity` takes.
extension UserInfo {
    /// User info from a dictionary of the ten types: array, data, date, dictionary, null, number, set, string, URL,
    /// UUID, as Swift's types or as Foundation's classes.
    ///
    /// `true`, 1 and 1.0 stay three different values, in an `NSNumber` as well. ``UserInfoValue`` is accepted too.
    ///
    /// - Throws: ``UserInfoError``, which names the key of a value that user info cannot hold.
    public init(_ dictionary: [String: Any]) throws(UserInfoError) {
        var entries: [String: UserInfoValue] = [:]
        for (name, value) in dictionary { entries[name] = try UserInfoValue(value, path: name) }
        self.init(entries)
    }

    /// The same as Swift's and Foundation's types: `Bool`, `Int`, `UInt64` (above `Int.max`), `Double`, `String`,
    /// `Data`, `Date`, `URL`, `UUID`, `NSNull`, `[Any]`, `Set<AnyHashable>`, `[String: Any]`.
    ///
    /// To Swift's `AnyHashable` 1 and 1.0 are the same: of a set that has both, the second one stays a
    /// ``UserInfoValue``.
    public var dictionary: [String: Any] { entries.mapValues(\.any) }
}

extension UserInfoValue {
    init(_ value: Any, path: String) throws(UserInfoError) {
        switch value {
        case let value as UserInfoValue: self = value
        case let number as NSNumber where type(of: value) is AnyClass: self = try Self.number(number, path: path)
        case let value as Bool: self = .boolean(value)
        case let value as any BinaryInteger: self = try Self.integer(value, path: path)
        case let value as Double: self = .real(value)
        case let value as Float: self = .real(Double(value))
        case let value as String: self = .string(value)
        case let value as Data: self = .data(value)
        case let value as Date:
            guard value.timeIntervalSinceReferenceDate.isFinite else {
                throw UserInfoError("the date is no point in time", at: path)
            }
            self = .date(value)
        case let value as URL: self = .url(value)
        case let value as UUID: self = .uuid(value)
        case is NSNull: self = .null
        case let value as [Any]: self = .array(try Self.elements(value, path: path))
        case let value as Set<AnyHashable>: self = .set(Set(try Self.elements(value.map(\.base), path: path)))
        case let value as [AnyHashable: Any]: self = .dictionary(try Self.entries(value, path: path))
        default: throw Self.refusal(of: value, path: path)
        }
    }

    private static func number(_ number: NSNumber, path: String) throws(UserInfoError) -> UserInfoValue {
        // A boolean has a class of its own; `as? Bool` would take 1 for one as well.
        if type(of: number) == type(of: NSNumber(value: true)) { return .boolean(number.boolValue) }
        guard !(number is NSDecimalNumber) else { throw refusal(of: number, path: path) }
        switch UInt8(bitPattern: number.objCType.pointee) {
        case UInt8(ascii: "f"), UInt8(ascii: "d"): return .real(number.doubleValue)
        case UInt8(ascii: "Q"), UInt8(ascii: "L"): return try integer(number.uint64Value, path: path)
        default: return .integer(number.int64Value)
        }
    }

    private static func integer(_ value: any BinaryInteger, path: String) throws(UserInfoError) -> UserInfoValue {
        if let value = Int64(exactly: value) { return .integer(value) }
        guard let value = UInt64(exactly: value) else {
            throw UserInfoError("the number \(value) has more than 64 bits", at: path)
        }
        return .unsignedInteger(value)
    }

    private static func elements(_ values: [Any], path: String) throws(UserInfoError) -> [UserInfoValue] {
        var elements: [UserInfoValue] = []
        for (index, value) in values.enumerated() {
            elements.append(try UserInfoValue(value, path: "\(path)[\(index)]"))
        }
        return elements
    }

    private static func entries(
        _ dictionary: [AnyHashable: Any], path: String
    ) throws(UserInfoError) -> [String: UserInfoValue] {
        var entries: [String: UserInfoValue] = [:]
        for (key, value) in dictionary {
            guard let name = key.base as? String else {
                throw UserInfoError("the key \(key.base) is no string", at: path)
            }
            entries[name] = try UserInfoValue(value, path: "\(path).\(name)")
        }
        return entries
    }

    private static func refusal(of value: Any, path: String) -> UserInfoError {
        UserInfoError(
            "\(type(of: value)) is none of the types of user info: array, data, date, dictionary, null, number, set,"
                + " string, URL, UUID",
            at: path)
    }

    var any: Any {
        switch self {
        case .array(let elements): elements.map(\.any)
        case .dictionary(let entries): entries.mapValues(\.any)
        case .null, .boolean, .integer, .unsignedInteger, .real, .string, .data, .date, .url, .uuid, .set:
            hashable.base
        }
    }

    /// The same as a member of a set.
    private var hashable: AnyHashable {
        switch self {
        case .null: NSNull()
        case .boolean(let value): value
        case .integer(let value): Int(exactly: value).map { AnyHashable($0) } ?? AnyHashable(value)
        case .unsignedInteger(let value): value
        case .real(let value): value
        case .string(let value): value
        case .data(let value): value
        case .date(let value): value
        case .url(let value): value
        case .uuid(let value): value
        case .array(let elements): elements.map(\.hashable)
        case .dictionary(let entries): entries.mapValues(\.hashable)
        case .set(let elements): Self.hashableSet(elements)
        }
    }

    private static func hashableSet(_ elements: Set<UserInfoValue>) -> Set<AnyHashable> {
        var set: Set<AnyHashable> = []
        for element in elements where !set.insert(element.hashable).inserted { set.insert(element) }
        return set
    }
}
