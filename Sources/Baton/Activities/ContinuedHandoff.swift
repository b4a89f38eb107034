import BatonEventLoop
import BatonMessages
import BatonTransport

/// The handoff that brought an activity to this application, for as long as the activity lives.
///
/// Its end lets the claim on the other device's activity go.
final class ContinuedHandoff: Sendable {
    /// The device that it comes from.
    let device: String
    /// The document on its way; `nil` where there is none.
    let document: WireContinuedDocument?
    private let id: [UInt8]
    private let client: NodeClient
    private let stream: Lock<BatonTransport.Stream?>

    init(_ request: NodeContinue, over client: NodeClient) {
        device = request.device
        document = request.document
        id = request.handoffID
        self.client = client
        stream = Lock(request.stream)
    }

    /// Opens a stream to the application that offers the activity.
    func openStream() async throws(HandoffError) -> BatonTransport.Stream {
        try await client.openContinuationStream(ofHandoff: id)
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
