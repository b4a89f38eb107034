// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// The application that continues one handoff, as the node speaks with it.
struct ContinuingApplication: Sendable {
    /// How long it may take to say whether it continues the activity.
    private static let announcementDeadline = Duration.seconds(5)
    /// How long it may take to have continued it.
    private static let continuationDeadline = Duration.seconds(20)
    /// How long it is waited for when it is told of a failure.
    private static let failureDeadline = Duration.seconds(5)

    let application: RunningApplication
    let handoffID: HandoffID
    let type: String
    let device: String

    /// Tells it that an activity is about to be continued, before any of it is there.
    ///
    /// - Returns: whether it shows by itself that it is waiting.
    /// - Throws: what it declined with, or what became of it.
    func willContinue(_ summary: WireActivitySummary) async throws(HandoffError) -> Bool {
        let answer = try await ask(
            .willContinue(
                .with {
                    $0.handoffID = Data(handoffID.bytes)
                    $0.type = type
                    $0.device = device
                    $0.title = summary.title
                    $0.version = summary.version
                }), within: Self.announcementDeadline)
        await answer.stream.finish()
        guard case .willContinue(let response) = answer.response else { throw unreadable }
        return response.showsProgress
    }

    /// Gives it the activity.
    ///
    /// - Returns: the stream that stays open for as long as it wants the activity.
    func continueActivity(
        _ payload: WireActivityPayload, document: WireContinuedDocument?
    ) async throws(HandoffError) -> BatonTransport.Stream {
        let answer = try await ask(
            .continueActivity(
                .with {
                    $0.handoffID = Data(handoffID.bytes)
                    $0.device = device
                    $0.payload = payload
                    if let document { $0.document = document }
                }), within: Self.continuationDeadline)
        guard case .continueActivity = answer.response else { throw unreadable }
        return answer.stream
    }

    /// Tells it that what it was told of has failed. That it does not hear it changes nothing.
    func didFail(_ error: HandoffError) async {
        let answer = try? await ask(
            .didFail(
                .with {
                    $0.handoffID = Data(handoffID.bytes)
                    $0.type = type
                    $0.device = device
                    $0.failure = error.failure
                }), within: Self.failureDeadline)
        await answer?.stream.finish()
    }

    private struct Answer: Sendable {
        let response: WireResponse.OneOf_Kind
        let stream: BatonTransport.Stream
    }

    private func ask(
        _ request: WireRequest.OneOf_Kind, within deadline: Duration
    ) async throws(HandoffError) -> Answer {
        let connection = application.connection
        do {
            return try await withDeadline(deadline, "\(application.name) did not answer") {
                let (response, stream) = try await connection.request(request)
                return Answer(response: response, stream: stream)
            }
        } catch {
            guard error.code == .connectionLost else { throw error }
            throw HandoffError(.applicationGone, "\(application.name) ended while the activity was on its way")
        }
    }

    private var unreadable: HandoffError {
        HandoffError(.internal, "\(application.name) gave an answer that cannot be read")
    }
}
