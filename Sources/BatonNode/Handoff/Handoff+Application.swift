// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonCore
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport

/// The news for the application that continues the activity.
extension Handoff {
    /// How long an application has to hear that its document failed.
    private static let reportDeadline = Duration.seconds(5)

    /// Tells the application that continues the activity, which is launched if it does not run.
    ///
    /// - Returns: whether it shows by itself that it is waiting.
    func announce() async throws(HandoffError) -> Bool {
        switch plan.recipient {
        case .asker, .applicationOfPage: false
        case .application(let candidate):
            // It may have to be launched.
            try await offLoop { () throws(HandoffError) in
                try await announce(
                    to: candidate, of: TeamTag(plan.activity.teamTag) ?? .none, continuing: plan.activity.type)
            }
        }
    }

    func announce(
        to candidate: ApplicationChoice.Candidate, of team: TeamTag, continuing declared: String?
    ) async throws(HandoffError) -> Bool {
        let application = ContinuingApplication(
            application: try await applications.started(
                candidate, of: team, continuing: declared, for: plan.activity.type),
            handoffID: id, type: plan.activity.type, device: plan.origin.name)
        (continuing, hasAgreed) = (application, false)
        do {
            let isShown = try await application.willContinue(plan.activity)
            hasAgreed = true
            return isShown
        } catch {
            // It may agree yet, where it is late or the user has cancelled; what it refused itself it need not be told.
            if error.code != .timedOut, error.code != .cancelled { continuing = nil }
            throw error
        }
    }

    func tellFailure(_ error: HandoffError) async {
        guard let continuing else { return }
        if let reporter, let continuation {
            reporter.report(.failed(error.failure))
            await reporter.end()
            // An abort would take the report away that is still unread.
            await continuation.finish()
            _ = try? await withDeadline(Self.reportDeadline, "the application did not let the activity go") {
                while try await continuation.read() != nil {}
            }
        } else {
            await continuation?.reset(.cancelled)
        }
        await tell(continuing, of: error)
    }

    /// Tells an application that the handoff has failed. An application that has not answered yet is not waited for
    /// again.
    func tell(_ application: ContinuingApplication, of error: HandoffError) async {
        // In a task of its own: who is told is told of a cancellation as well.
        let telling = Task { await application.didFail(error) }
        if hasAgreed { await telling.value }
    }
}
