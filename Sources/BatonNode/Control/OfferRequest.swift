// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonApplications
import BatonCore
import BatonDocuments
import BatonMessages
import BatonProtocol
import FoundationEssentials
import SwiftProtobuf

import struct SystemPackage.FilePath

extension FilePath {
    /// A path that an application says.
    ///
    /// - Parameter what: completes the sentence "… has to be an absolute path".
    init(absolute bytes: Data, _ what: String) throws(HandoffError) {
        guard let path = FilePath(bytes: bytes), path.isAbsolute else {
            throw HandoffError(.invalidRequest, "\(what) has to be an absolute path")
        }
        self = path
    }
}

extension OfferedActivity {
    /// The most bytes of user info, encoded, as Apple's Handoff fails above (`userInfoTooLarge`).
    static let userInfoBound = 48 << 10
    /// The most bytes of a title.
    static let titleBound = 1024
    /// The most bytes of a web page's URL.
    static let urlBound = 8192
    /// The most bytes of the URL that led to it, of the identifier of what continues it, of a team and of an
    /// application's identifier. With these a payload, and an offer with its document's path, fit one message.
    static let (referrerBound, targetBound, teamBound, applicationBound) = (1024, 256, 255, 255)
    /// The most bytes of all required keys, each with three more.
    static let requiredKeysBound = 1024

    /// Checks an offer of an application.
    ///
    /// - Parameters:
    ///   - id: the activity's, where this replaces what it was; else what the application chose, or a new one.
    ///   - since: when it became current, in seconds since 1970.
    /// - Throws: ``HandoffError`` with a sentence about the first thing that is wrong.
    init(
        _ request: WireOfferRequest, document: DocumentSource?, id: ActivityID? = nil,
        since: UInt64 = UInt64(Date.now.timeIntervalSince1970)
    ) throws(HandoffError) {
        guard let id = id ?? (request.activityID.isEmpty ? ActivityID() : ActivityID(request.activityID)) else {
            throw HandoffError(.invalidRequest, "an activity's id has \(ActivityID.size) bytes")
        }
        let type = try Self.type(of: request, document)
        try Self.require(request.title, "the title", atMost: Self.titleBound)
        try Self.require(request.team, "the team", atMost: Self.teamBound)
        try Self.require(request.application, "the application's identifier", atMost: Self.applicationBound)
        let expires = try Self.expiry(request.expires)
        let unnamed = type == ActivityType.browsingWeb ? Self.unnamedPage : type
        let content = WireActivityPayload.with {
            $0.summary.id = Data(id.bytes)
            $0.summary.kind = document != nil ? .document : type == ActivityType.browsingWeb ? .web : .application
            $0.summary.type = type
            $0.summary.title =
                request.title.isEmpty ? document?.label.description ?? unnamed : request.title
            $0.summary.documentSize = document?.size ?? 0
            $0.summary.identity = document?.document ?? .unknown
            $0.summary.since = since
            $0.summary.supportsContinuationStreams = request.supportsContinuationStreams
            $0.summary.hasWebPage_p = !request.webPageURL.isEmpty
            $0.summary.exclusive = request.exclusive
            $0.summary.teamTag = Data(TeamTag(of: request.team).bytes)
            $0.summary.version = request.version
            $0.webPageURL = request.webPageURL
            $0.referrerURL = request.referrerURL
            $0.requiredUserInfoKeys = request.requiredUserInfoKeys
            $0.targetContentIdentifier = request.targetContentIdentifier
        }
        let userInfo = try Self.requireSane(content, userInfo: request.userInfo)
        self.init(
            id: id, content: content, encodedUserInfo: userInfo, document: document, needsSave: request.needsSave,
            application: request.application, expires: expires)
    }

    /// The second since 1970 from which on an activity is not offered; nil for never.
    ///
    /// - Parameter seconds: since 1970. 0, and all that is after the year 9999, mean never.
    private static func expiry(_ seconds: Double) throws(HandoffError) -> Double? {
        guard seconds.isFinite, seconds >= 0 else {
            throw HandoffError(
                .invalidRequest,
                "the time at which it expires is no point in time: give seconds since 1970, or 0 for never")
        }
        return seconds == 0 || seconds > 253_402_300_799 ? nil : seconds
    }

    private static func type(
        of request: WireOfferRequest, _ document: DocumentSource?
    ) throws(HandoffError) -> String {
        let type =
            if !request.type.isEmpty {
                request.type
            } else if let document {
                document.isFolder ? ActivityType.folder : ActivityType.document
            } else {
                request.webPageURL.isEmpty ? "" : ActivityType.browsingWeb
            }
        guard !type.isEmpty else {
            throw HandoffError(.invalidRequest, "an activity needs a type, a document or a web page")
        }
        guard type.utf8.count <= AdvertisedActivity.maximumTypeCount,
            type.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) || ".-_".contains($0) })
        else {
            throw HandoffError(
                .invalidRequest,
                "the type has to be letters, digits, dots and hyphens, at most \(AdvertisedActivity.maximumTypeCount)")
        }
        return type
    }

    /// The entries of the folder that are offered, as an application says.
    static func selection(_ names: [Data]) throws(HandoffError) -> DocumentSelection {
        let labels = names.compactMap { try? DocumentLabel($0) }
        guard labels.count == names.count, let selection = DocumentSelection(labels) else {
            throw HandoffError(
                .invalidRequest,
                "the names in the folder have to be names, at most \(DocumentSelection.nameLimit) with"
                    + " \(DocumentSelection.byteLimit) bytes: offer all of the folder")
        }
        return selection
    }

    /// Refuses what a payload may not carry, whether it was offered, saved, or came from another device.
    ///
    /// - Returns: the user info as it travels.
    @discardableResult
    static func requireSane(
        _ payload: WireActivityPayload, userInfo: WireDictionaryValue
    ) throws(HandoffError) -> [UInt8] {
        for (url, what, bound) in [
            (payload.webPageURL, "the web page", urlBound), (payload.referrerURL, "the referrer", referrerBound),
        ] {
            guard url.isEmpty || (isWebPage(url) && url.utf8.count <= bound) else {
                throw HandoffError(
                    .invalidRequest, "\(what) has to be an http or https URL of at most \(bound) bytes")
            }
        }
        guard payload.requiredUserInfoKeys.reduce(0, { $0 + $1.utf8.count + 3 }) <= requiredKeysBound else {
            throw HandoffError(.invalidRequest, "the required keys have over \(requiredKeysBound) bytes: name fewer")
        }
        try require(payload.targetContentIdentifier, "the target content identifier", atMost: targetBound)
        let encoded = try requireFitting(userInfo)
        // A browser has to be able to continue it.
        let type = payload.summary.type
        guard type == ActivityType.browsingWeb else { return encoded }
        guard !payload.webPageURL.isEmpty else {
            throw HandoffError(.invalidRequest, "an activity of type \(type) needs a web page: give it one")
        }
        guard userInfo.pairs.isEmpty else {
            throw HandoffError(
                .invalidRequest,
                "an activity of type \(type) has no user info, only a web page: give it a type of your own, or leave"
                    + " the user info out")
        }
        return encoded
    }

    private static func require(_ text: String, _ what: String, atMost bound: Int) throws(HandoffError) {
        guard text.utf8.count > bound else { return }
        throw HandoffError(.invalidRequest, "\(what) is over \(bound) bytes: shorten it")
    }

    /// Refuses user info that is too large for a handoff, or made to cost its reader more than its writer.
    ///
    /// - Returns: the user info as it travels.
    @discardableResult
    static func requireFitting(_ userInfo: WireDictionaryValue) throws(HandoffError) -> [UInt8] {
        try userInfo.requireCheapKeys()
        guard let encoded: [UInt8] = try? userInfo.serializedBytes() else {
            throw HandoffError(.userInfoTooLarge, "the user info cannot be encoded")
        }
        guard encoded.count <= userInfoBound else {
            throw HandoffError(
                .userInfoTooLarge,
                "the user info has \(encoded.count) bytes and may have \(userInfoBound): send more through a document"
                    + " or a stream")
        }
        return encoded
    }

    /// Whether a URL is one of a web page: http or https, with a host, of a sane length and without control characters.
    static func isWebPage(_ text: String) -> Bool {
        guard text.utf8.count <= urlBound, text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }),
            let url = URLComponents(string: text)
        else { return false }
        return ["http", "https"].contains(url.scheme?.lowercased()) && url.host?.isEmpty == false
    }
}
