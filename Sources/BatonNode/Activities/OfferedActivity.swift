import BatonDocuments
import BatonMessages
import FoundationEssentials

/// An activity that an application of this device offers.
struct OfferedActivity: Sendable {
    let id: ActivityID
    let kind: WireActivityKind
    let type: String
    let title: String
    let userInfo: WireDictionaryValue
    let webPageURL: String
    /// As it was when it was offered; what is sent is what the file is then.
    let document: DocumentSource?
    let supportsContinuationStreams: Bool
    let isExclusive: Bool
    /// The application wants to be asked for the state when a device takes the activity over.
    let needsSave: Bool
    /// Seconds since 1970: when it became current.
    let since: UInt64

    var summary: WireActivitySummary {
        var summary = WireActivitySummary()
        summary.id = Data(id.bytes)
        summary.kind = kind
        summary.type = type
        summary.title = title
        summary.documentSize = document?.size ?? 0
        summary.since = since
        summary.supportsContinuationStreams = supportsContinuationStreams
        summary.hasWebPage_p = !webPageURL.isEmpty
        summary.exclusive = isExclusive
        return summary
    }

    var payload: WireActivityPayload {
        var payload = WireActivityPayload()
        payload.summary = summary
        payload.userInfo = userInfo
        payload.webPageURL = webPageURL
        return payload
    }
}
