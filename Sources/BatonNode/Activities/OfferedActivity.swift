// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonCore
import BatonDocuments
import BatonMessages
import FoundationEssentials
import SwiftProtobuf

/// An activity that an application of this device offers.
struct OfferedActivity: OfferedContent {
    let id: ActivityID
    let kind: WireActivityKind
    let type: String
    let title: String
    /// The user info as it travels. Decoded, each value takes some ten times as much.
    let encodedUserInfo: [UInt8]
    let webPageURL: String
    /// The page that led to it; empty: none.
    let referrerURL: String
    /// The keys that the user info needs for the activity to be restored.
    let requiredUserInfoKeys: [String]
    /// Which window or document continues it; empty: any.
    let targetContentIdentifier: String
    /// As it was when it was offered; what is sent is what the file is then.
    var document: DocumentSource?
    let supportsContinuationStreams: Bool
    let isExclusive: Bool
    /// The application wants to be asked for the state when a device takes the activity over.
    let needsSave: Bool
    /// The identifier of the application that offers it; empty where a command does.
    let application: String
    /// The label of the applications that share it; empty: of none.
    let team: String
    /// Of the content, as the application counts; 0: it states none.
    let version: UInt32
    /// Seconds since 1970: from when on it is not offered; nil for never.
    let expires: Double?
    /// Seconds since 1970: when it became current.
    let since: UInt64

    /// The title of a page that nobody named, for other devices: the address stays here until a user accepts.
    static let unnamedPage = "Web page"

    /// The title for the user of this device: a page that nobody named has its address for a title.
    var ownTitle: String { kind == .web && title == Self.unnamedPage ? webPageURL : title }

    /// The part of the team that others know.
    var teamTag: TeamTag { TeamTag(of: team) }

    var summary: WireActivitySummary {
        var summary = WireActivitySummary()
        summary.id = Data(id.bytes)
        summary.kind = kind
        summary.type = type
        summary.title = title
        summary.documentSize = document?.size ?? 0
        summary.identity = document?.document ?? .unknown
        summary.since = since
        summary.supportsContinuationStreams = supportsContinuationStreams
        summary.hasWebPage_p = !webPageURL.isEmpty
        summary.exclusive = isExclusive
        summary.teamTag = Data(teamTag.bytes)
        summary.version = version
        return summary
    }

    var payload: WireActivityPayload {
        var payload = WireActivityPayload()
        payload.summary = summary
        // It was encoded here, and can be read.
        payload.userInfo = (try? WireDictionaryValue(serializedBytes: encodedUserInfo)) ?? WireDictionaryValue()
        payload.webPageURL = webPageURL
        payload.referrerURL = referrerURL
        payload.requiredUserInfoKeys = requiredUserInfoKeys
        payload.targetContentIdentifier = targetContentIdentifier
        return payload
    }
}
