import BatonAccount
import BatonDocuments
import BatonMessages
import FoundationEssentials
import SwiftProtobuf

extension OfferedActivity {
    /// The most bytes of user info, encoded, as Apple's Handoff fails above (`userInfoTooLarge`).
    static let userInfoBound = 48 << 10
    /// The most bytes of a title.
    static let titleBound = 1024
    /// The most bytes of a web page's URL.
    private static let urlBound = 8192

    /// What an application wants to offer, checked.
    ///
    /// - Throws: ``HandoffError`` with a sentence about the first thing that is wrong.
    init(_ request: WireOfferRequest, document: DocumentSource?) throws(HandoffError) {
        let isWeb = document == nil && !request.webPageURL.isEmpty && request.type.isEmpty
        let type =
            if !request.type.isEmpty { request.type } else if isWeb { ActivityType.browsingWeb } else {
                document == nil ? "" : ActivityType.document
            }
        guard !type.isEmpty else {
            throw HandoffError(.invalidRequest, "an activity needs a type, a document or a web page")
        }
        guard type.utf8.count <= AdvertisedActivity.maximumTypeCount, type.unicodeScalars.allSatisfy(Self.isInType)
        else {
            throw HandoffError(
                .invalidRequest,
                "the type has to be letters, digits, dots and hyphens, at most \(AdvertisedActivity.maximumTypeCount)")
        }
        guard request.title.utf8.count <= Self.titleBound else {
            throw HandoffError(.invalidRequest, "the title is over \(Self.titleBound) bytes: shorten it")
        }
        if !request.webPageURL.isEmpty {
            guard Self.isWebPage(request.webPageURL) else {
                throw HandoffError(
                    .invalidRequest, "the web page has to be an http or https URL of at most \(Self.urlBound) bytes")
            }
        }
        try Self.requireFitting(request.userInfo)
        self.init(
            id: ActivityID(),
            kind: document != nil ? .document : type == ActivityType.browsingWeb ? .web : .application,
            type: type,
            title: request.title.isEmpty ? document?.label.description ?? Self.title(request, type) : request.title,
            userInfo: request.userInfo, webPageURL: request.webPageURL, document: document,
            supportsContinuationStreams: request.supportsContinuationStreams, isExclusive: request.exclusive,
            needsSave: request.needsSave, since: UInt64(Date().timeIntervalSince1970))
    }

    /// Refuses user info that is too large for a handoff, or made to cost its reader more than its writer.
    ///
    /// - Parameter keyBound: the most bytes of what is hashed; tests of attacks see what the number is good for.
    static func requireFitting(
        _ userInfo: WireDictionaryValue, keyBound: Int = WireDictionaryValue.keyBound
    ) throws(HandoffError) {
        try userInfo.requireKeys(atMost: keyBound)
        let size = (try? userInfo.serializedData().count) ?? .max
        guard size <= userInfoBound else {
            throw HandoffError(
                .userInfoTooLarge,
                "the user info has \(size) bytes and may have \(userInfoBound): send more through a document or a stream"
            )
        }
    }

    /// Whether a URL is one of a web page: http or https, with a host, of a sane length and without control characters.
    static func isWebPage(_ text: String) -> Bool {
        guard text.utf8.count <= urlBound, text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }),
            let url = URLComponents(string: text)
        else { return false }
        return ["http", "https"].contains(url.scheme?.lowercased()) && url.host?.isEmpty == false
    }

    /// What an activity without a title is called. Never its URL, which stays here until a user accepts.
    private static func title(_ request: WireOfferRequest, _ type: String) -> String {
        type == ActivityType.browsingWeb ? "Web page" : type
    }

    private static func isInType(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", ".", "-", "_": true
        default: false
        }
    }
}
