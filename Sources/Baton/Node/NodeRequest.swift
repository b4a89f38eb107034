// SPDX-License-Identifier: Apache-2.0

package import BatonMessages
import BatonProtocol
package import BatonTransport
import SwiftProtobuf

/// A node's request to an application.
package enum NodeRequest: Sendable {
    /// A device takes the activity over: the node wants the state as it is now.
    case willSave(NodeWillSave)
    /// The continuing device opens a stream.
    case continuationStream(NodeStreamRequest)
    /// The user has accepted an activity that this application is to continue.
    case willContinue(NodeWillContinue)
    /// Here is the activity.
    case continueActivity(NodeContinue)
    /// The handoff of an earlier *will continue* has failed.
    case didFail(NodeDidFail)

    /// Reads a request of the node.
    ///
    /// - Throws: ``HandoffError`` for a request that applications do not answer.
    init(_ opened: IncomingStream) throws(HandoffError) {
        let stream = opened.stream
        switch try WireRequest.decode(opened.request) {
        case .willSave(let request):
            self = .willSave(NodeWillSave(request: request, stream: stream))
        case .continuationStream(let request):
            self = .continuationStream(NodeStreamRequest(request: request, stream: stream))
        case .willContinue(let request):
            self = .willContinue(NodeWillContinue(request: request, stream: stream))
        case .continueActivity(let request):
            self = .continueActivity(NodeContinue(request: request, stream: stream))
        case .didFail(let request):
            self = .didFail(NodeDidFail(request: request, stream: stream))
        case .activityList, .payload, .documentManifest, .documentRanges, .continued, .release, .status, .devices,
            .activities, .offer, .withdraw, .accept, .accountState, .adoptState, .register, .handoffSwitch,
            .documentRead, .access, .transfers, .cancelTransfer, .discardPart, .editDevices, .examination, .examine:
            throw HandoffError(.unsupported, "an application does not answer this request")
        }
    }
}

/// The question for the state of an activity as it is now.
package struct NodeWillSave: Sendable {
    /// The activity it is about.
    package let activityID: [UInt8]
    /// The continuing device. If several devices wait for the same answer, the one that asked first.
    package let device: String
    private let stream: BatonTransport.Stream

    init(request: WireWillSaveRequest, stream: BatonTransport.Stream) {
        activityID = [UInt8](request.activityID)
        device = request.device
        self.stream = stream
    }

    /// Answers with the state.
    package func answer(userInfo: UserInfo, webPageURL: String) async throws(HandoffError) {
        var response = WireWillSaveResponse()
        response.userInfo = userInfo.message
        response.webPageURL = webPageURL
        try await answer(response)
    }

    /// Answers with all of the state.
    package func answer(_ response: WireWillSaveResponse) async throws(HandoffError) {
        try await stream.respond(.willSave(response))
        await stream.finish()
    }

    /// Tells that the state cannot be had.
    package func fail(_ error: HandoffError) async {
        await stream.fail(error)
    }
}

/// The wish of the continuing device to open a stream.
package struct NodeStreamRequest: Sendable {
    /// The id of its activity.
    package let activityID: [UInt8]
    /// The device that opens it, as it calls itself.
    package let device: String
    /// Its identifier.
    package let deviceID: String
    /// Carries the bytes once it is accepted.
    package let stream: BatonTransport.Stream

    init(request: WireContinuationStreamRequest, stream: BatonTransport.Stream) {
        activityID = [UInt8](request.activityID)
        device = request.device
        deviceID = request.deviceID
        self.stream = stream
    }

    /// Answers with yes; the stream carries bytes both ways from here on.
    package func accept() async throws(HandoffError) -> BatonTransport.Stream {
        try await stream.respond(.continuationStream(.init()))
        return stream
    }

    /// Answers with no.
    package func refuse(_ error: HandoffError) async {
        await stream.fail(error)
    }
}

/// The news that the user has accepted an activity, before anything of it is fetched.
package struct NodeWillContinue: Sendable {
    /// The id of the handoff in later requests.
    package let handoffID: [UInt8]
    package let type: String
    /// The name of the origin.
    package let device: String
    package let title: String
    /// The version of the activity's content; 0: it states none.
    package let version: UInt32
    private let stream: BatonTransport.Stream

    init(request: WireWillContinueRequest, stream: BatonTransport.Stream) {
        handoffID = [UInt8](request.handoffID)
        type = request.type
        device = request.device
        title = request.title
        version = request.version
        self.stream = stream
    }

    /// Answers that this application continues it.
    package func agree(showsProgress: Bool) async throws(HandoffError) {
        try await stream.respond(.willContinue(.with { $0.showsProgress = showsProgress }))
        await stream.finish()
    }

    /// Answers that the application does not continue it.
    package func decline(_ error: HandoffError) async {
        await stream.fail(error)
    }
}

/// An activity that has come.
package struct NodeContinue: Sendable {
    package let handoffID: [UInt8]
    /// The name of the origin.
    package let device: String
    package let payload: WireActivityPayload
    /// `nil` without a document.
    package let document: WireContinuedDocument?
    /// Stays open for as long as the application continues the activity; the node tells of the document on it.
    package let stream: BatonTransport.Stream

    init(request: WireContinueRequest, stream: BatonTransport.Stream) {
        handoffID = [UInt8](request.handoffID)
        device = request.device
        payload = request.payload
        document = request.hasDocument ? request.document : nil
        self.stream = stream
    }

    /// Answers that the application continues it.
    package func confirm() async throws(HandoffError) {
        try await stream.respond(.continueActivity(.init()))
    }

    /// Answers that the application does not continue it.
    package func fail(_ error: HandoffError) async {
        await stream.fail(error)
    }
}

/// The news that a handoff has failed.
package struct NodeDidFail: Sendable {
    package let handoffID: [UInt8]
    package let type: String
    package let error: HandoffError
    private let stream: BatonTransport.Stream

    init(request: WireDidFailRequest, stream: BatonTransport.Stream) {
        handoffID = [UInt8](request.handoffID)
        type = request.type
        let error = HandoffError(request.failure)
        self.error = error.device.isEmpty ? HandoffError(error.code, error.message, device: request.device) : error
        self.stream = stream
    }

    /// Acknowledges the message.
    package func acknowledge() async {
        try? await stream.respond(.didFail(.init()))
        await stream.finish()
    }
}
