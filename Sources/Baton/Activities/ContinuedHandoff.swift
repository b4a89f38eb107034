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
    private let hold: Lock<Hold>

    private enum Hold: Sendable {
        /// The node has no answer yet: an end now would be one.
        case unanswered(BatonTransport.Stream, isLetGo: Bool)
        case held(BatonTransport.Stream)
        case over
    }

    init(_ request: NodeContinue, over client: NodeClient) {
        device = request.device
        document = request.document
        id = request.handoffID
        self.client = client
        hold = Lock(.unanswered(request.stream, isLetGo: false))
    }

    /// Opens a stream to the application that offers the activity.
    func openStream() async throws(HandoffError) -> BatonTransport.Stream {
        try await client.openContinuationStream(ofHandoff: id)
    }

    /// The node has its answer: the claim is held from now on, unless it was let go meanwhile.
    func wasAnswered() {
        let isLetGo = hold.withLock { hold in
            guard case .unanswered(let stream, let isLetGo) = hold else { return false }
            hold = .held(stream)
            return isLetGo
        }
        if isLetGo { letGo() }
    }

    /// Lets the claim go, after the answer at the earliest. Again does nothing.
    func letGo() {
        let held = hold.withLock { hold -> BatonTransport.Stream? in
            switch hold {
            case .unanswered(let stream, _):
                hold = .unanswered(stream, isLetGo: true)
                return nil
            case .held(let stream):
                hold = .over
                return stream
            case .over:
                return nil
            }
        }
        guard let held else { return }
        Task { await held.finish() }
    }
}
