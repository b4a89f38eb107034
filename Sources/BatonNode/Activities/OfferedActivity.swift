// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonCore
import BatonDocuments
import BatonMessages
import FoundationEssentials
import SwiftProtobuf

/// An activity that an application of this device offers.
@dynamicMemberLookup
struct OfferedActivity: OfferedContent {
    let id: ActivityID
    /// The payload without its user info.
    let content: WireActivityPayload
    /// The user info as it travels. Decoded, each value takes some ten times as much.
    let encodedUserInfo: [UInt8]
    /// As it was when it was offered; what is sent is what the file is then.
    var document: DocumentSource?
    /// The application wants to be asked for the state when a device takes the activity over.
    let needsSave: Bool
    /// The identifier of the application that offers it; empty where a command does.
    let application: String
    /// Seconds since 1970: from when on it is not offered; nil for never.
    let expires: Double?

    /// The title of a page that nobody named, for other devices: the address stays here until a user accepts.
    static let unnamedPage = "Web page"

    subscript<Value>(dynamicMember member: KeyPath<WireActivitySummary, Value>) -> Value { summary[keyPath: member] }

    /// The title for the user of this device: a page that nobody named has its address for a title.
    var ownTitle: String { self.kind == .web && self.title == Self.unnamedPage ? content.webPageURL : self.title }

    var isExclusive: Bool { self.exclusive }

    var summary: WireActivitySummary { content.summary }

    var payload: WireActivityPayload {
        var payload = content
        // It was encoded here, and can be read.
        payload.userInfo = (try? WireDictionaryValue(serializedBytes: encodedUserInfo)) ?? WireDictionaryValue()
        return payload
    }
}
