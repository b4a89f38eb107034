// SPDX-License-Identifier: Apache-2.0

import BatonMessages
package import FoundationEssentials

package struct ActivityContent: Sendable, Hashable {
    package var title: String?
    package var userInfo = UserInfo()
    package var requiredUserInfoKeys: Set<String> = []
    package var webpageURL: URL?
    package var referrerURL: URL?
    package var expirationDate: Date?
    package var targetContentIdentifier: String?
    package var persistentIdentifier: String?
    package var isEligibleForHandoff = true
    package var supportsContinuationStreams = false
    package var version: UInt32 = 0
    package var isExclusive = false
    package var document: URL?

    /// The required keys that the user info lacks, in order.
    var missingKeys: [String] {
        requiredUserInfoKeys.filter { userInfo[$0] == nil }.sorted()
    }
}

/// Names an activity for as long as it lives: 16 random bytes.
struct ActivityIdentifier: Sendable, Hashable {
    static let size = 16

    let bytes: [UInt8]

    init() {
        var generator = SystemRandomNumberGenerator()
        bytes = (0..<Self.size).map { _ in .random(in: 0...255, using: &generator) }
    }

    init(bytes: [UInt8]) {
        self.bytes = bytes
    }
}

extension ActivityContent {
    /// The most bytes of a title on its way.
    static let maximumTitleSize = 1024

    /// The part that other devices get. A web page has no user info, since the browser that opens it cannot use any.
    func handedOver(as type: String) -> ActivityContent {
        guard type == UserActivity.browsingWebType else { return self }
        var content = self
        (content.userInfo, content.requiredUserInfoKeys) = ([:], [])
        return content
    }

    func offer(id: ActivityIdentifier, type: String, by application: Application.Description) -> WireOfferRequest {
        var offer = WireOfferRequest()
        offer.type = type
        offer.title = cutTitle
        offer.userInfo = userInfo.message
        offer.webPageURL = webpageURL?.absoluteString ?? ""
        offer.documentPath = documentPath
        offer.supportsContinuationStreams = supportsContinuationStreams
        offer.exclusive = isExclusive
        offer.needsSave = true
        offer.application = application.identifier
        offer.team = application.team
        offer.activityID = Data(id.bytes)
        offer.version = version
        offer.expires = expirationDate?.timeIntervalSince1970 ?? 0
        offer.referrerURL = referrerURL?.absoluteString ?? ""
        offer.requiredUserInfoKeys = requiredUserInfoKeys.sorted()
        offer.targetContentIdentifier = targetContentIdentifier ?? ""
        return offer
    }

    var savedState: WireWillSaveResponse {
        var saved = WireWillSaveResponse()
        saved.userInfo = userInfo.message
        saved.webPageURL = webpageURL?.absoluteString ?? ""
        saved.referrerURL = referrerURL?.absoluteString ?? ""
        saved.requiredUserInfoKeys = requiredUserInfoKeys.sorted()
        saved.targetContentIdentifier = targetContentIdentifier ?? ""
        saved.title = cutTitle
        saved.documentPath = documentPath
        return saved
    }

    /// The path of the document's file; empty without a document.
    private var documentPath: Data {
        guard let document, document.isFileURL else { return Data() }
        return Data(document.filePathBytes)
    }

    /// The content that another device sent.
    ///
    /// - Throws: ``UserActivityError`` for user info that cannot be read, or that lacks a required key.
    init(_ payload: WireActivityPayload, document: WireContinuedDocument?) throws(UserActivityError) {
        title = payload.summary.title.isEmpty ? nil : payload.summary.title
        do {
            userInfo = try UserInfo(payload.userInfo)
        } catch {
            throw UserActivityError(.handoffFailed, "the activity cannot be read: \(error)")
        }
        requiredUserInfoKeys = Set(payload.requiredUserInfoKeys)
        webpageURL = payload.webPageURL.isEmpty ? nil : URL(string: payload.webPageURL)
        referrerURL = payload.referrerURL.isEmpty ? nil : URL(string: payload.referrerURL)
        targetContentIdentifier = payload.targetContentIdentifier.isEmpty ? nil : payload.targetContentIdentifier
        supportsContinuationStreams = payload.summary.supportsContinuationStreams
        version = payload.summary.version
        isExclusive = payload.summary.exclusive
        self.document = document.flatMap { $0.isLocal ? URL(filePathBytes: $0.path) : nil }
        let missing = missingKeys
        guard missing.isEmpty else {
            throw UserActivityError(
                .handoffFailed,
                "the activity came without what it requires in its user info: \(missing.joined(separator: ", "))")
        }
    }

    private var cutTitle: String { (title ?? "").beginning(bytes: Self.maximumTitleSize) }
}
