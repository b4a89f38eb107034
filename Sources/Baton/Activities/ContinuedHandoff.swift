import BatonEventLoop
import BatonMessages
import BatonTransport
import FoundationEssentials

/// The handoff that brought an activity to this application, for as long as the activity lives.
///
/// Its end lets the claim on the other device's activity go.
final class ContinuedHandoff: Sendable {
    /// The device that it comes from.
    let device: String
    /// The document on its way; `nil` where there is none.
    let document: WireContinuedDocument?
    /// How that comes here; `nil` where there is none.
    let arrival: DocumentArrival?
    private let id: [UInt8]
    private let client: NodeClient
    private let stream: Lock<BatonTransport.Stream?>

    init(_ request: NodeContinue, over client: NodeClient) {
        device = request.device
        document = request.document
        arrival = request.document.map(DocumentArrival.init)
        id = request.handoffID
        self.client = client
        stream = Lock(request.stream)
    }

    /// Opens a stream to the application that offers the activity.
    func openStream() async throws(HandoffError) -> BatonTransport.Stream {
        try await client.openContinuationStream(ofHandoff: id)
    }

    /// Follows the document on its way here, if there is one, until the node has told all.
    ///
    /// - Parameter hasArrived: is called before anybody who waits.
    func followDocument(_ hasArrived: @escaping @Sendable (URL) -> Void) {
        guard let arrival, let stream = stream.withLock({ $0 }) else { return }
        // It ends with the stream, which the end of this handoff ends.
        Task { [weak self] in
            await arrival.follow(stream, hasArrived: hasArrived)
            // The node has nothing more to tell: what is here of a document that failed is let go.
            if arrival.hasFailed { self?.letGo() }
        }
    }

    /// Bytes of the document, in requests of at most ``NodeClient/readBound``.
    func readDocument(at offset: UInt64, length: Int) async throws(HandoffError) -> Data {
        var data = Data()
        while data.count < length {
            let wanted = min(length - data.count, NodeClient.readBound)
            let (position, overflow) = offset.addingReportingOverflow(UInt64(data.count))
            guard !overflow else { break }
            let part = try await client.readDocument(ofHandoff: id, at: position, length: wanted)
            data.append(part)
            if part.count < wanted { break }
        }
        return data
    }

    /// Lets the claim go. Again does nothing.
    func letGo() {
        let held = stream.withLock { stream in
            defer { stream = nil }
            return stream
        }
        guard let held else { return }
        Task { await held.finish() }
    }
}
