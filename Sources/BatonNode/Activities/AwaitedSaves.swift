// SPDX-License-Identifier: Apache-2.0

import BatonMessages
import BatonProtocol

/// The claims that wait for the state of an activity.
///
/// As many as there are claims at the most, and one question to the application for all who have not come too late for
/// it.
struct AwaitedSaves {
    typealias Answer = Result<WireWillSaveResponse, HandoffError>

    struct Waiting {
        let claim: ClaimID
        let device: PeerName
        let waiter: CheckedContinuation<Answer, Never>
    }

    /// For whom the question that is under way was asked.
    private var asked: [Waiting] = []
    /// Who has come since: the state that the application is giving may be older than their question.
    var next: [Waiting] = []

    var count: Int { asked.count + next.count }

    /// The next question is asked.
    ///
    /// - Returns: the device that has waited longest; `nil` where nobody waits.
    mutating func begin() -> PeerName? {
        asked = next
        next = []
        return asked.first?.device
    }

    /// It has its answer.
    mutating func end(with answer: Answer) {
        for waiting in asked { waiting.waiter.resume(returning: answer) }
        asked = []
    }

    /// A claim has gone: it waits no longer. A question that is under way stays so, since the application is at it.
    mutating func remove(_ claim: ClaimID, because error: HandoffError) {
        for waiting in asked + next where waiting.claim == claim { waiting.waiter.resume(returning: .failure(error)) }
        asked.removeAll { $0.claim == claim }
        next.removeAll { $0.claim == claim }
    }
}

extension HandoffError {
    /// What a device waited for has no claim any more.
    static let claimGone = HandoffError(.noSuchClaim, "the claim was let go while the activity was waited for")
}
