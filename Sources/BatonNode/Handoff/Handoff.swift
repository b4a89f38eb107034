import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// One handoff on the continuing device, from the user's yes to *continued* or to one typed error.
///
/// What happens is told through ``events``, which end with `continued` or `failed`.
actor Handoff {
    /// Events that wait for an application that does not read; older progress is lost beyond it.
    private static let eventBound = 1024
    /// How long the origin may take for the payload: its application may take ``Offers/saveDeadline`` to save.
    private static let payloadDeadline = Duration.seconds(10)
    /// How long the origin may take for any other answer.
    private static let answerDeadline = Duration.seconds(10)

    /// What the application asked for.
    struct Plan: Sendable {
        let activityID: ActivityID
        let type: String
        /// What the user saw and said yes to.
        let title: String
        let origin: PeerName
        /// The folder that a document goes to, opened when the user said yes; `nil` asks for the payload only.
        let destination: DestinationFolder?
        /// The application opens continuation streams: the claim is kept until ``finish()``.
        let keepsClaim: Bool
        /// The rule that accepts it; `nil` where the user does.
        var rule: AcceptPolicy.Rule?
    }

    nonisolated let id = HandoffID()
    nonisolated let plan: Plan
    nonisolated let events: AsyncStream<WireAcceptEvent>
    private let eventContinuation: AsyncStream<WireAcceptEvent>.Continuation
    private let connections: PeerConnections
    private let documents: DocumentService

    private var held: (connection: Connection, claim: ClaimID)?
    private var isNodeStopping = false

    init(_ plan: Plan, connections: PeerConnections, documents: DocumentService) {
        self.plan = plan
        self.connections = connections
        self.documents = documents
        (events, eventContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(Self.eventBound))
    }

    /// Runs the handoff; cancelling the task cancels it.
    func run() async {
        emit(
            .willContinue(
                .with {
                    $0.type = plan.type
                    $0.device = plan.origin.name
                }))
        do {
            let continued = try await takeOver()
            emit(.continued(continued))
            if !plan.keepsClaim { await finish() }
        } catch {
            let stopped = HandoffError(.nodeStopping, "the node of this device was stopped before all was there")
            emit(.failed((isNodeStopping && error.code == .cancelled ? stopped : error).failure))
            await finish()
        }
        eventContinuation.finish()
    }

    /// The node stops: where the handoff is cancelled from now on, that is why.
    func nodeIsStopping() {
        isNodeStopping = true
    }

    /// Lets the claim go.
    func finish() async {
        guard let (connection, claim) = held else { return }
        held = nil
        await connections.letGo(of: connection)
        // In a task of its own: a cancelled handoff still lets go.
        await Task {
            _ = try? await withDeadline(Self.answerDeadline, "the origin did not answer") {
                let (_, stream) = try await connection.request(.release(.with { $0.claimID = Data(claim.bytes) }))
                await stream.finish()
            }
        }.value
    }

    /// Opens a continuation stream to the application on the origin.
    func openContinuationStream() async throws(HandoffError) -> BatonTransport.Stream {
        guard let (connection, claim) = held else {
            throw HandoffError(.noSuchClaim, "the activity has not been continued")
        }
        return try await connection.request(
            .continuationStream(.with { $0.claimID = Data(claim.bytes) })
        ).1
    }

    private func takeOver() async throws(HandoffError) -> WireAcceptEvent.Continued {
        let connection = try await connections.connection(to: plan.origin.id)
        try plan.rule?.require(connection)
        let activityID = Data(plan.activityID.bytes)
        let answer = try await withDeadline(Self.payloadDeadline, "\(plan.origin.name) did not send the activity") {
            let (response, stream) = try await connection.request(.payload(.with { $0.activityID = activityID }))
            await stream.finish()
            return response
        }
        guard case .payload(let response) = answer, let claim = ClaimID(response.claimID) else {
            throw HandoffError(.internal, "\(plan.origin.name) gave an answer that cannot be read")
        }
        held = (connection, claim)
        await connections.hold(connection)
        let url = response.payload.webPageURL
        guard ActivityID(response.payload.summary.id) == plan.activityID,
            url.isEmpty || OfferedActivity.isWebPage(url)
        else {
            throw HandoffError(.internal, "\(plan.origin.name) sent another activity, or a URL that is no web page's")
        }
        try OfferedActivity.requireFitting(response.payload.userInfo)
        try plan.rule?.require(type: response.payload.summary.type, size: response.payload.summary.documentSize)
        emit(.payload(response.payload))

        var continued = WireAcceptEvent.Continued()
        if let destination = plan.destination, response.payload.summary.kind == .document {
            let (path, size) = try await documents.fetch(
                from: connection, claim: claim, title: plan.title, into: destination, acceptedBy: plan.rule
            ) { progress in
                self.eventContinuation.yield(.with { $0.progress = progress })
            }
            continued.path = Data(path)
            continued.bytes = size
        }
        // Who only looks at the payload of a document has not taken it over.
        let isLook = plan.destination == nil && response.payload.summary.kind == .document && !plan.keepsClaim
        if !isLook { try await reportContinued(connection, claim) }
        return continued
    }

    private func reportContinued(_ connection: Connection, _ claim: ClaimID) async throws(HandoffError) {
        do {
            try await withDeadline(Self.answerDeadline, "\(plan.origin.name) did not answer") {
                let (_, stream) = try await connection.request(.continued(.with { $0.claimID = Data(claim.bytes) }))
                await stream.finish()
            }
        } catch {
            // The document is whole and in place: that its origin could not be told takes nothing back.
            guard plan.destination != nil else { throw error }
        }
    }

    private func emit(_ kind: WireAcceptEvent.OneOf_Kind) {
        eventContinuation.yield(.with { $0.kind = kind })
    }
}
