// SPDX-License-Identifier: Apache-2.0

package import BatonMessages
package import BatonTransport

/// A node's request to an application.
package enum NodeRequest: Sendable {
    /// A device takes the activity over: the node wants the state as it is now.
    case willSave(NodeQuestion<WireWillSaveRequest>)
    /// The continuing device opens a stream. Once accepted, it carries bytes both ways.
    case continuationStream(NodeQuestion<WireContinuationStreamRequest>)
    /// The user has accepted an activity that this application is to continue. Nothing of it is fetched yet.
    case willContinue(NodeQuestion<WireWillContinueRequest>)
    /// The activity. The stream stays open for as long as the application continues it; the node tells of the document
    /// on it.
    case continueActivity(NodeQuestion<WireContinueRequest>)
    /// The handoff of an earlier *will continue* has failed.
    case didFail(NodeQuestion<WireDidFailRequest>)

    /// Reads a request of the node.
    ///
    /// - Throws: ``HandoffError`` for a request that applications do not answer.
    init(_ opened: IncomingStream) throws(HandoffError) {
        let stream = opened.stream
        switch try WireRequest.decode(opened.request) {
        case .willSave(let request): self = .willSave(NodeQuestion(request, stream))
        case .continuationStream(let request): self = .continuationStream(NodeQuestion(request, stream))
        case .willContinue(let request): self = .willContinue(NodeQuestion(request, stream))
        case .continueActivity(let request): self = .continueActivity(NodeQuestion(request, stream))
        case .didFail(let request): self = .didFail(NodeQuestion(request, stream))
        case _: throw HandoffError(.unsupported, "an application does not answer this request")
        }
    }
}

/// One request of the node, and the stream on which the application answers it.
package struct NodeQuestion<Request: Sendable>: Sendable {
    package let request: Request
    package let stream: BatonTransport.Stream

    init(_ request: Request, _ stream: BatonTransport.Stream) {
        self.request = request
        self.stream = stream
    }

    /// Answers, and ends this side of the stream.
    package func answer(_ response: WireResponse.OneOf_Kind) async throws(HandoffError) {
        try await stream.respond(response)
        await stream.finish()
    }

    package func fail(_ error: HandoffError) async {
        await stream.fail(error)
    }
}
