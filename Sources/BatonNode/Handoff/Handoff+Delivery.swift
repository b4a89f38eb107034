// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

import struct SystemPackage.FilePath

/// The delivery of an activity to an application.
extension Handoff {
    /// Gives the activity to the application that was told of it, and a page that this one does not take to the next.
    ///
    /// - Returns: the one that has it; `nil` where whoever asked has it.
    func handOver(
        _ arrival: SharedFiles.Arrival, with document: HandoffDocument?
    ) async throws(HandoffError) -> RunningApplication? {
        // Ends: each time round an application is given up, and there is at most one browser after it.
        while let application = continuing {
            do {
                try await hand(arrival, with: document, to: application)
                return application.application
            } catch {
                try await leavePage(error, of: application.application.name)
                try await announceToBrowser()
            }
        }
        return nil
    }

    /// Gives an application the activity.
    private func hand(
        _ arrival: SharedFiles.Arrival, with document: HandoffDocument?, to application: ContinuingApplication
    ) async throws(HandoffError) {
        var description: WireContinuedDocument?
        if let local = arrival.localDocument {
            description = .with {
                $0.path = Data(local.path.bytes)
                $0.size = local.size
                $0.isLocal = true
            }
        } else if let document {
            let tree = try await document.description().tree
            description = .with {
                $0.size = tree.size
                if let folder = plan.destination?.path.bytes {
                    $0.path = Data(folder + Array("/".utf8) + tree.label.bytes)
                }
            }
        }
        do {
            continuation = try await application.continueActivity(arrival.payload, document: description)
        } catch {
            // It knows what it refused itself. It knows nothing of a user who cancels.
            if error.code != .timedOut, error.code != .cancelled { continuing = nil }
            throw error
        }
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
        events.send(.choose(.with { $0.applications = candidates.map(\.message) }))
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
