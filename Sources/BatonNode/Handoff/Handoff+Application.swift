// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

import struct SystemPackage.FilePath

/// The application that continues the activity, as the node speaks with it.
extension Handoff {
    /// How long it may take to say whether it continues the activity.
    private static let announcementDeadline = Duration.seconds(5)
    /// How long it may take to have continued it.
    private static let continuationDeadline = Duration.seconds(20)
    /// How long it is waited for when it is told of a failure, and that its document failed.
    private static let failureDeadline = Duration.seconds(5)

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

    /// Tells an application that an activity is about to be continued, before any of it is there.
    private func announce(
        to candidate: ApplicationChoice.Candidate, of team: TeamTag, continuing declared: String?
    ) async throws(HandoffError) -> Bool {
        let application = try await applications.started(
            candidate, of: team, continuing: declared, for: plan.activity.type)
        // It was launched by its manifest. Its own word counts more now.
        if declared != nil {
            try application.versions.require(plan.activity, of: plan.origin.name, by: application.name)
        }
        (continuing, hasAgreed) = (application, false)
        let (response, stream) = try await ask(
            application,
            .willContinue(
                .with {
                    $0.handoffID = Data(id.bytes)
                    $0.type = plan.activity.type
                    $0.device = plan.origin.name
                    $0.title = plan.activity.title
                    $0.version = plan.activity.version
                }), within: Self.announcementDeadline)
        await stream.finish()
        guard case .willContinue(let answer) = response else { throw unreadable(application) }
        hasAgreed = true
        return answer.showsProgress
    }

    private func unreadable(_ application: RunningApplication) -> HandoffError {
        continuing = nil
        return HandoffError(.internal, "\(application.name) gave an answer that cannot be read")
    }

    private func ask(
        _ application: RunningApplication, _ request: WireRequest.OneOf_Kind, within deadline: Duration
    ) async throws(HandoffError) -> (WireResponse.OneOf_Kind, BatonTransport.Stream) {
        do {
            return try await withDeadline(deadline, "\(application.name) did not answer") {
                try await application.connection.request(request)
            }
        } catch {
            // An application that is late may agree yet. It knows nothing of a user who cancels.
            if error.code != .timedOut, error.code != .cancelled { continuing = nil }
            guard error.code == .connectionLost else { throw error }
            throw HandoffError(.applicationGone, "\(application.name) ended while the activity was on its way")
        }
    }

    func tellFailure(_ error: HandoffError) async {
        guard let continuing else { return }
        if let reporter, let continuation {
            reporter.report(.failed(error.failure))
            await reporter.end()
            // An abort would take the report away that is still unread.
            await continuation.finish()
            _ = try? await withDeadline(Self.failureDeadline, "the application did not let the activity go") {
                while try await continuation.read() != nil {}
            }
        } else {
            await continuation?.reset(.cancelled)
        }
        await tell(continuing, of: error)
    }

    /// Tells an application that the handoff has failed. That it does not hear it changes nothing.
    private func tell(_ application: RunningApplication, of error: HandoffError) async {
        let answer = try? await ask(
            application,
            .didFail(
                .with {
                    $0.handoffID = Data(id.bytes)
                    $0.type = plan.activity.type
                    $0.device = plan.origin.name
                    $0.failure = error.failure
                }), within: Self.failureDeadline)
        await answer?.1.finish()
    }

    // MARK: Delivery

    /// Gives the activity to the application that was told of it, and a page that this one does not take to the next.
    ///
    /// - Returns: the one that has it; `nil` where whoever asked has it.
    func handOver(_ arrival: SharedFiles.Arrival) async throws(HandoffError) -> RunningApplication? {
        // Ends: each time round an application is given up, and there is at most one browser after it.
        while let application = continuing {
            do {
                try await hand(arrival, to: application)
                return application
            } catch {
                try await leavePage(error, of: application.name)
                try await announceToBrowser()
            }
        }
        return nil
    }

    /// Gives an application the activity. The stream of the answer stays open for as long as it wants the activity.
    private func hand(
        _ arrival: SharedFiles.Arrival, to application: RunningApplication
    ) async throws(HandoffError) {
        var document: WireContinuedDocument?
        if let local = arrival.localDocument {
            document = .with {
                $0.path = Data(local.path.bytes)
                $0.size = local.size
                $0.isLocal = true
            }
        } else if hasDocument {
            let tree = try await description().tree
            document = .with {
                $0.size = tree.size
                if let folder = plan.destination?.path.bytes {
                    $0.path = Data(folder + Array("/".utf8) + tree.label.bytes)
                }
            }
        }
        let (response, stream) = try await ask(
            application,
            .continueActivity(
                .with {
                    $0.handoffID = Data(id.bytes)
                    $0.device = plan.origin.name
                    $0.payload = arrival.payload
                    if let document { $0.document = document }
                }), within: Self.continuationDeadline)
        guard case .continueActivity = response else { throw unreadable(application) }
        continuation = stream
    }

    /// Tells the application that opens the page: the one that its host lists, else a browser of its team. Where
    /// neither does, nobody is told, and whoever asked has the page.
    func announcePage(_ address: String) async throws(HandoffError) {
        guard case .applicationOfPage(let wanted, _) = plan.recipient else { return }
        // Reading and verifying what a site says of its applications takes time.
        let pages = await offLoop {
            await applications.applications(opening: address, wanted: wanted)
        }
        let chosen = try await userChoice(among: pages.map(\.candidate))
        if let page = pages.first(where: { $0.candidate == chosen }) {
            do {
                return try await announcePage(to: page.candidate, of: page.team, continuing: nil)
            } catch {
                try await leavePage(error, of: page.candidate.name)
            }
        }
        try await announceToBrowser()
    }

    /// Tells a browser of the page's team, once.
    private func announceToBrowser() async throws(HandoffError) {
        let candidates = browsers
        browsers = []
        guard let browser = try await userChoice(among: candidates) else { return }
        do {
            // The user may have switched it off while another had the page.
            try applications.requireOn(for: browser.identifier)
            try await announcePage(
                to: browser, of: TeamTag(plan.activity.teamTag) ?? .none, continuing: plan.activity.type)
        } catch {
            try await leavePage(error, of: browser.name)
        }
    }

    /// Tells an application of the page that has come, and whoever waits which one it is and whether it shows that.
    private func announcePage(
        to candidate: ApplicationChoice.Candidate, of team: TeamTag, continuing declared: String?
    ) async throws(HandoffError) {
        let isShown = try await announce(to: candidate, of: team, continuing: declared)
        emitWillContinue(isShown: isShown, openingPage: candidate.message)
    }

    /// The one there is; of several the one that the user chooses.
    ///
    /// - Throws: `timedOut` where the user does not, `cancelled` where there is nobody to ask any more.
    private func userChoice(
        among candidates: [ApplicationChoice.Candidate]
    ) async throws(HandoffError) -> ApplicationChoice.Candidate? {
        guard candidates.count > 1 else { return candidates.first }
        send(.choose(.with { $0.applications = candidates.map(\.message) }))
        let answer = try await withDeadline(deadlines.choice, "nobody chose an application for the web page") {
            [choices] in await choices.first { _ in true }
        }
        guard let answer else {
            throw HandoffError(.cancelled, "nobody is there to choose an application for the web page")
        }
        guard let chosen = candidates.first(where: { $0.identifier == answer }) else {
            throw HandoffError(.invalidRequest, "\(answer) is none of the applications that may open the web page")
        }
        return chosen
    }

    /// Leaves a page to whoever is next, because an application has failed.
    ///
    /// - Throws: the error, where the user has cancelled or the application was chosen in another way.
    private func leavePage(_ error: HandoffError, of application: String) async throws(HandoffError) {
        guard case .applicationOfPage = plan.recipient, !Task.isCancelled else { throw error }
        applications.noteLeftPage(of: application, because: error)
        guard let told = continuing else { return }
        continuing = nil
        await tell(told, of: error)
    }
}
