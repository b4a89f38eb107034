// SPDX-License-Identifier: Apache-2.0

import Baton
import FoundationEssentials
import TerminalScreen

/// The list as user info of an activity, and in its file, in version 2.
///
/// | Version | `items` |
/// | ---: | --- |
/// | 1 | names |
/// | 2 | dictionaries with `name`, `state` and `changed` |
extension ShoppingList {
    /// The version that is written.
    static let version: UInt32 = 2
    /// The versions that are read.
    static let readableVersions: ClosedRange<UInt32> = 1...2

    /// The reason why user info is not a list.
    struct Unreadable: Error, CustomStringConvertible {
        let description: String
    }

    var userInfo: UserInfo {
        let items = items.map { item -> UserInfoValue in
            ["name": .string(item.name), "state": .string(item.state.rawValue), "changed": .date(item.changed)]
        }
        return ["items": .array(items)]
    }

    init(_ userInfo: UserInfo, version: UInt32) throws(Unreadable) {
        guard Self.readableVersions.contains(version) else {
            throw Unreadable(description: "version \(version) of the list cannot be read")
        }
        guard case .array(let items) = userInfo["items"] else {
            throw Unreadable(description: "there is no list in it")
        }
        for value in items {
            let item = try version == 1 ? Self.itemOfVersion1(value) : Self.item(value)
            guard !item.identity.isEmpty, item.name.utf8.count <= Self.nameBound else {
                throw Unreadable(description: "an item of the list has no name, or one that is too long")
            }
            take(item)
        }
    }

    private static func item(_ value: UserInfoValue) throws(Unreadable) -> Item {
        guard case .dictionary(let entries) = value, case .string(let name) = entries["name"],
            case .string(let stateName) = entries["state"], let state = Item.State(rawValue: stateName),
            case .date(let changed) = entries["changed"]
        else { throw Unreadable(description: "an item of the list has another form than expected") }
        return Item(name: name, state: state, changed: changed)
    }

    /// Version 1 had names alone. The age of its items is unknown, so any other change wins.
    private static func itemOfVersion1(_ value: UserInfoValue) throws(Unreadable) -> Item {
        guard case .string(let name) = value else {
            throw Unreadable(description: "an item of the list is no name")
        }
        return Item(name: name, state: .wanted, changed: Date(timeIntervalSince1970: 0))
    }
}

/// The half-typed item in the user info of the list.
extension Shop.Draft {
    var userInfo: UserInfo {
        var userInfo: UserInfo = [
            "draft": .string(field.text), "draftID": .uuid(id), "cursor": .integer(Int64(field.cursor)),
        ]
        if let replaces { userInfo["replaces"] = .string(replaces) }
        return userInfo
    }

    /// - Returns: `nil` without a half-typed item.
    init?(_ userInfo: UserInfo) {
        guard case .string(let text) = userInfo["draft"], !text.isEmpty else { return nil }
        // Version 1 had no cursor.
        var cursor: Int?
        if case .integer(let position) = userInfo["cursor"] { cursor = Int(clamping: position) }
        field = TextField(text, cursor: cursor)
        // A single character may be too long for the field, which is empty then.
        guard !field.isEmpty else { return nil }
        if case .uuid(let id) = userInfo["draftID"] { self.id = id }
        if case .string(let name) = userInfo["replaces"] { replaces = name }
    }
}
