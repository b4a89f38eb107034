// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonTransport

/// Streams between the application that offers an activity and the one that continues it.
extension UserActivity {
    /// How many pairs of streams of one activity may be served at a time by its delegate; one more is refused.
    static let streamBound = 32

    /// Opens a pair of streams to the application that offers the activity. Each call opens another pair.
    ///
    /// The origin decides at each call whether it supports streams.
    ///
    /// - Throws: ``UserActivityError``: at once `notContinued` for an activity that was not continued here or has been
    ///   released; otherwise the origin's answer, such as `streamsUnsupported` if it supports none now, or
    ///   `handoffFailed` if its application has gone.
    public func continuationStreams() async throws(UserActivityError) -> (
        input: ContinuationInput, output: ContinuationOutput
    ) {
        guard let handoff, !isInvalidated else {
            throw UserActivityError(
                .notContinued, "only an activity that this application continues has streams to the other device")
        }
        do {
            let stream = try await handoff.openStream()
            return (ContinuationInput(stream: stream), ContinuationOutput(stream: stream))
        } catch {
            throw UserActivityError(error)
        }
    }

    /// Gives a stream that the continuing device opened to the delegate, and returns when the delegate is done with it.
    func serve(_ question: NodeQuestion<WireContinuationStreamRequest>) async {
        guard !isInvalidated else { return await question.fail(.activityEnded) }
        guard content.supportsContinuationStreams, let delegate else {
            return await question.fail(
                HandoffError(.streamsUnsupported, "the activity has no continuation streams"))
        }
        let isWithinBound = state.withLock { state in
            guard state.streams < Self.streamBound else { return false }
            state.streams += 1
            return true
        }
        guard isWithinBound else {
            return await question.fail(
                HandoffError(.limitExceeded, "\(Self.streamBound) streams of this activity are open already"))
        }
        if (try? await question.stream.respond(.continuationStream(.init()))) != nil {
            await delegate.userActivity(
                self, didReceive: ContinuationInput(stream: question.stream),
                outputStream: ContinuationOutput(stream: question.stream))
        }
        state.withLock { $0.streams -= 1 }
    }
}
