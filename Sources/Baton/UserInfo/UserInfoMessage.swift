// SPDX-License-Identifier: Apache-2.0

package import BatonMessages
import FoundationEssentials
import SwiftProtobuf

extension UserInfo {
    /// The recommended size of encoded user info, in bytes. Put larger content into a document or a stream: Apple
    /// recommends less than 3 KB for a quick handoff.
    public static let recommendedSize = 3 << 10
    /// Bytes of encoded user info at the most: with the rest of the activity it has to fit one message of 64 KiB.
    public static let maximumSize = 48 << 10
    /// How deep arrays, sets and dictionaries may nest, the user info itself counted. A dictionary costs three levels
    /// of a message, and a message nests at most `MessageLimits.depth` deep.
    public static let maximumDepth = (MessageLimits.depth - 5) / 3

    /// Bytes of the encoded user info.
    package var encodedSize: Int {
        // Encoding needs no request around it; a message that cannot be encoded does not exist.
        ((try? message.serializedBytes() as [UInt8]) ?? []).count
    }

    /// Makes sure that the user info can travel.
    ///
    /// - Throws: ``UserInfoError`` where it nests too deep, is too large, or has a key or a text in a set of more than
    ///   1,024 bytes.
    public func validate() throws(UserInfoError) {
        try Self.checkDepth(.dictionary(entries), path: "", depth: 1)
        do {
            try message.requireCheapKeys()
        } catch {
            throw UserInfoError(error.message)
        }
        let size = encodedSize
        guard size <= Self.maximumSize else {
            throw UserInfoError(
                "it has \(size) bytes, and \(Self.maximumSize) are the most; put the content into a document or"
                    + " a continuation stream")
        }
    }

    private static func checkDepth(_ value: UserInfoValue, path: String, depth: Int) throws(UserInfoError) {
        let children: [(String, UserInfoValue)]
        switch value {
        case .array(let elements): children = elements.enumerated().map { ("\(path)[\($0.offset)]", $0.element) }
        case .set(let elements): children = elements.map { ("\(path)[]", $0) }
        case .dictionary(let entries):
            children = entries.map { (path.isEmpty ? $0.key : "\(path).\($0.key)", $0.value) }
        case .null, .boolean, .integer, .unsignedInteger, .real, .string, .data, .date, .url, .uuid: return
        }
        guard depth <= maximumDepth else {
            throw UserInfoError("it nests deeper than \(maximumDepth) levels; make it flatter", at: path)
        }
        for (path, child) in children { try checkDepth(child, path: path, depth: depth + 1) }
    }

    package var message: WireDictionaryValue {
        var message = WireDictionaryValue()
        message.entries = entries.mapValues(\.message)
        return message
    }

    /// User info from a message.
    ///
    /// - Throws: ``UserInfoError`` for a malformed value, or one of a type that this version does not know.
    package init(_ message: WireDictionaryValue) throws(UserInfoError) {
        do {
            try message.requireCheapKeys()
        } catch {
            throw UserInfoError(error.message)
        }
        var entries: [String: UserInfoValue] = [:]
        for (name, value) in message.entries { entries[name] = try UserInfoValue(value, path: name) }
        self.init(entries)
    }
}

extension UserInfoValue {
    var message: WireValue {
        var message = WireValue()
        message.kind =
            switch self {
            case .null: .null(WireNullValue())
            case .boolean(let value): .boolean(value)
            case .integer(let value): .integer(value)
            case .unsignedInteger(let value): .unsignedInteger(value)
            case .real(let value): .real(value)
            case .string(let value): .string(value)
            case .data(let value): .data(value)
            case .date(let value): .date(value.timeIntervalSinceReferenceDate)
            case .url(let value): .url(value.absoluteString)
            case .uuid(let value): .uuid(withUnsafeBytes(of: value.uuid) { Data($0) })
            case .array(let elements): .array(Self.list(elements))
            case .set(let elements): .set(Self.list(elements))
            case .dictionary(let entries): .dictionary(UserInfo(entries).message)
            }
        return message
    }

    private static func list(_ elements: some Sequence<UserInfoValue>) -> WireArrayValue {
        var list = WireArrayValue()
        list.elements = elements.map(\.message)
        return list
    }

    init(_ message: WireValue, path: String) throws(UserInfoError) {
        switch message.kind {
        case .null: self = .null
        case .boolean(let value): self = .boolean(value)
        case .integer(let value): self = .integer(value)
        case .unsignedInteger(let value): self = Int64(exactly: value).map(Self.integer) ?? .unsignedInteger(value)
        case .real(let value): self = .real(value)
        case .string(let value): self = .string(value)
        case .data(let value): self = .data(value)
        case .date(let value):
            guard value.isFinite else { throw UserInfoError("the date is no point in time", at: path) }
            self = .date(Date(timeIntervalSinceReferenceDate: value))
        case .url(let value):
            guard let url = URL(string: value) else { throw UserInfoError("the URL is malformed", at: path) }
            self = .url(url)
        case .uuid(let value):
            guard value.count == 16 else { throw UserInfoError("a UUID has 16 bytes, not \(value.count)", at: path) }
            var uuid = noUUID
            withUnsafeMutableBytes(of: &uuid) { $0.copyBytes(from: value) }
            self = .uuid(UUID(uuid: uuid))
        case .array(let list): self = .array(try Self.values(of: list, path: path))
        case .set(let list): self = .set(Set(try Self.values(of: list, path: path)))
        case .dictionary(let entries):
            var values: [String: UserInfoValue] = [:]
            for (name, value) in entries.entries { values[name] = try UserInfoValue(value, path: "\(path).\(name)") }
            self = .dictionary(values)
        case nil: throw UserInfoError("the value has a type that this version does not know; update Baton", at: path)
        }
    }

    private static func values(of list: WireArrayValue, path: String) throws(UserInfoError) -> [UserInfoValue] {
        var values: [UserInfoValue] = []
        for (index, element) in list.elements.enumerated() {
            values.append(try UserInfoValue(element, path: "\(path)[\(index)]"))
        }
        return values
    }
}

private let noUUID: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
