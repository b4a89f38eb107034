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
        guard UserInfoValue.dictionary(entries).nests(within: Self.maximumDepth) else {
            throw UserInfoError("it nests deeper than \(Self.maximumDepth) levels; make it flatter")
        }
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
        self.init(try UserInfoValue.entries(message))
    }
}

extension UserInfoValue {
    /// Whether arrays, sets and dictionaries nest at most so deep. Looks no deeper, so that no value fills the stack.
    fileprivate func nests(within depth: Int) -> Bool {
        switch self {
        case .array(let elements): depth > 0 && elements.allSatisfy { $0.nests(within: depth - 1) }
        case .set(let elements): depth > 0 && elements.allSatisfy { $0.nests(within: depth - 1) }
        case .dictionary(let entries): depth > 0 && entries.values.allSatisfy { $0.nests(within: depth - 1) }
        case .null, .boolean, .integer, .unsignedInteger, .real, .string, .data, .date, .url, .uuid: true
        }
    }

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

    private init(_ message: WireValue) throws(UserInfoError) {
        switch message.kind {
        case .null: self = .null
        case .boolean(let value): self = .boolean(value)
        case .integer(let value): self = .integer(value)
        case .unsignedInteger(let value): self = Int64(exactly: value).map(Self.integer) ?? .unsignedInteger(value)
        case .real(let value): self = .real(value)
        case .string(let value): self = .string(value)
        case .data(let value): self = .data(value)
        case .date(let value):
            guard value.isFinite else { throw UserInfoError("a date is no point in time") }
            self = .date(Date(timeIntervalSinceReferenceDate: value))
        case .url(let value):
            guard let url = URL(string: value) else { throw UserInfoError("a URL is malformed") }
            self = .url(url)
        case .uuid(let value):
            guard value.count == 16 else { throw UserInfoError("a UUID has 16 bytes, not \(value.count)") }
            self = .uuid(UUID(uuid: value.withUnsafeBytes { $0.loadUnaligned(as: uuid_t.self) }))
        case .array(let list): self = .array(try Self.values(list))
        case .set(let list): self = .set(Set(try Self.values(list)))
        case .dictionary(let entries): self = .dictionary(try Self.entries(entries))
        case nil: throw UserInfoError("a value has a type that this version does not know; update Baton")
        }
    }

    private static func values(_ list: WireArrayValue) throws(UserInfoError) -> [UserInfoValue] {
        try list.elements.map { (element) throws(UserInfoError) in try UserInfoValue(element) }
    }

    fileprivate static func entries(_ message: WireDictionaryValue) throws(UserInfoError) -> [String: UserInfoValue] {
        var entries: [String: UserInfoValue] = [:]
        for (name, value) in message.entries { entries[name] = try UserInfoValue(value) }
        return entries
    }
}
