// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonCore
import BatonDocuments
import BatonMessages

extension Handoff {
    /// The program that continues the activity here.
    enum Recipient: Sendable {
        /// The asker, which is told everything by events.
        case asker
        /// An application, launched if need be.
        case application(ApplicationChoice.Candidate)
        /// The application that the page's host lists, which is known when the page's address is here.
        ///
        /// If there is none, or if it fails before it has answered that it continues, one of `browsers` has the page,
        /// which are of the page's team. If that fails as well, the asker has it. If several may have it, the user
        /// chooses, unless `wanted` names the one. If the user does not choose, nobody has it.
        case applicationOfPage(wanted: String, browsers: [ApplicationChoice.Candidate])
    }

    /// What was asked for.
    struct Plan: Sendable {
        let activity: WireActivitySummary
        let origin: PeerName
        /// The rules of the user's policy about it, of which the first that is about its size and the connection's
        /// network decides.
        let candidates: [AcceptPolicy.Rule]
        /// The folder that a document goes to, opened when the user said yes; `nil` asks for the payload only.
        let destination: DestinationFolder?
        var recipient = Recipient.asker
        /// The asker opens continuation streams: the claim is kept until they go.
        var keepsClaim = false
        /// The asker wants to see the payload, and takes nothing over.
        var printsOnly = false
        /// The rule that accepts it; `nil` where the user does.
        var rule: AcceptPolicy.Rule?
        /// Older copies of the document on this device: what they have is not sent.
        var copies = OlderCopies()
        /// The name of the document here.
        var naming = DocumentNaming.own

        /// Requires the type, the team and the kind that were accepted.
        ///
        /// - Throws: `refused`; `noSuchActivity` where it is no document any more, which it may be again.
        func requireAccepted(_ summary: WireActivitySummary) throws(HandoffError) {
            guard summary.type == activity.type, TeamTag(summary.teamTag) == TeamTag(activity.teamTag) else {
                throw HandoffError(
                    .refused, "\(origin.name) sent an activity of another type or team than it had announced")
            }
            // Saving can make a document of anything, and nothing else of a document: whoever accepted one looked at no
            // page, which would be opened.
            guard activity.kind != .document || summary.kind == .document else {
                throw HandoffError(
                    .noSuchActivity, "\(origin.name) offers no document under this any more: look at it again",
                    device: origin.name)
            }
        }
    }
}
