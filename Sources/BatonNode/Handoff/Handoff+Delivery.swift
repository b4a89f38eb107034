import BatonApplications
import BatonDocuments
import BatonMessages
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

import struct SystemPackage.FilePath

/// What a handoff gives: the activity to an application, and its document to the folder that the user named.
extension Handoff {
    /// Gives an application the activity.
    func hand(
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
            let tree = try await document.tree()
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
            // What it refused itself it need not be told. It knows nothing of a user who cancels.
            if error.code != .timedOut, error.code != .cancelled { continuing = nil }
            throw error
        }
    }

    /// How long the user has to choose one of several applications for a page; then whoever asked has it.
    private static var choiceDeadline: Duration { .seconds(120) }

    /// Which application opens the page; `nil` where whoever asked does. Of several the user chooses.
    func applicationOfPage(_ address: String) async -> Applications.PageApplication? {
        guard case .applicationOfPage(let wanted) = plan.recipient else { return nil }
        let applications = await applications.applications(opening: address, wanted: wanted)
        guard applications.count > 1 else { return applications.first }
        emit(.choose(.with { $0.applications = applications.map(\.candidate.message) }))
        let chosen = try? await withDeadline(Self.choiceDeadline, "nobody chose an application") { [choices] in
            await choices.first { _ in true }
        }
        return applications.first { $0.candidate.identifier == chosen }
    }

    /// Leaves a page to whoever asked, because the application that its host lists has failed.
    ///
    /// - Throws: the error, where the user has cancelled or the application was chosen in another way.
    func leavePage(_ error: HandoffError, of application: String) async throws(HandoffError) {
        guard case .applicationOfPage = plan.recipient, !Task.isCancelled else { throw error }
        await applications.noteLeftPage(of: application, because: error)
        guard let told = continuing else { return }
        continuing = nil
        await told.didFail(error)
    }
}
