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

/// Names a handoff on the continuing device, to the application that asked for it.
typealias HandoffID = Identifier<Handoff>

/// One handoff on the continuing device, from the user's yes to *continued* or to one typed error.
///
/// What happens is told through ``events``, which end with `continued` or `failed`.
@ControlLoop
final class Handoff {
    nonisolated let id = HandoffID()
    nonisolated let plan: Plan
    nonisolated let events = HandoffEvents()
    let connections: PeerConnections
    let documents: DocumentService
    let applications: Applications
    let files: SharedFiles
    let deadlines: HandoffDeadlines

    private var heldDocument: HandoffDocument?
    /// The claim, and the connection to present it on. Replaced by ``hold(_:on:)``.
    private(set) var held: (connection: Connection, claim: ClaimID)?
    /// Nothing is held any more: a claim that comes now is released at once.
    private var isFinished = false
    /// The application that was told of the handoff and did not decline.
    var continuing: ContinuingApplication?
    /// It has answered that it continues the activity.
    var hasAgreed = false
    /// Open for as long as the application wants the activity.
    var continuation: BatonTransport.Stream?
    /// Browsers of the page's team that were not told of it.
    var browsers: [ApplicationChoice.Candidate] = []
    /// The application has the failure of its document as the last report.
    var hasToldOfDocument = false
    /// Why the handoff ends if its task is cancelled from now on; nil: whoever accepted it cancels it.
    private var cause: HandoffError?
    /// It ended because the user of this device has switched Handoff off.
    private(set) var wasSwitchedOff = false
    /// Whoever asked is told that it is continued, which nothing takes back.
    private(set) var isContinued = false
    /// Tells the origin that its document is in place; no cancellation reaches it.
    private var reporting: Task<Void, Never>?
    /// What was continued, once it was and its origin has been told, where it could be.
    private(set) var continued: WireAcceptEvent.Continued?
    /// Under which id the origin offers the activity: another one when it was offered anew.
    var activityID: Data
    /// Which document of the origin the activity's is, what it is called there and how large it is, as it was last
    /// told.
    var known: (identity: DocumentIdentity, title: String, size: UInt64)
    /// What the user chose of several applications, as whoever asked says.
    nonisolated let choices: AsyncStream<String>
    private nonisolated let choice: AsyncStream<String>.Continuation

    nonisolated init(
        _ plan: Plan, connections: PeerConnections, documents: DocumentService, applications: Applications,
        files: SharedFiles, deadlines: HandoffDeadlines
    ) {
        self.plan = plan
        activityID = plan.activity.id
        known = (.unknown, plan.activity.title, plan.activity.documentSize)
        if case .applicationOfPage(_, let browsers) = plan.recipient { self.browsers = browsers }
        self.connections = connections
        self.documents = documents
        self.applications = applications
        self.files = files
        self.deadlines = deadlines
        (choices, choice) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(1))
    }

    /// Runs the handoff, on the node's control loop: somebody waits for the payload, and each change of threads on the
    /// way would be felt. What computes more leaves it.
    func start() -> Task<Void, Never> {
        ControlLoop.task { await self.run() }
    }

    /// Runs the handoff to its end, which for an application is when it lets the activity go; cancelling the task
    /// cancels it. Events end with `continued` or `failed` in any case.
    private func run() async {
        do {
            emitWillContinue(isShown: try await announce())
            let arrival = try await arrive()
            let continued = try await offLoop { () throws(HandoffError) in try await takeOver(arrival) }
            isContinued = true
            emit(.continued(continued))
            await reporting?.value
            self.continued = continued
            events.finish()
            await hold()
            if !plan.keepsClaim { await finish() }
        } catch {
            let failure = error.code == .cancelled ? cause ?? error : error
            await tellFailure(failure)
            emit(.failed(failure.failure))
            await finish(because: failure)
        }
        events.finish()
    }

    /// Whoever asked has gone: it is cancelled. What is just being put in place may be in place, of which its origin is
    /// to hear before the claim goes; a disk that hangs holds that up no longer than the origin might.
    func abandon(_ running: Task<Void, Never>) async {
        running.cancel()
        _ = try? await withDeadline(deadlines.answer, "the handoff did not end") { await running.value }
        await finish()
    }

    /// The node stops: where the handoff is cancelled from now on, that is why; what an application holds is let go.
    func nodeIsStopping() async {
        cause = HandoffError(.nodeStopping, "the node of this device was stopped before all was there")
        await releaseApplication()
    }

    /// The user cancels it, and not by the command that accepted it, which is told so.
    func cancel(_ running: Task<Void, Never>) async {
        cause = HandoffError(.cancelled, "the transfer was cancelled by `baton transfers cancel` on this device")
        await abandon(running)
    }

    /// Takes the activity from the application that holds on to it.
    func releaseApplication() async {
        await continuation?.reset(.cancelled)
    }

    /// The user has chosen one of the applications that ``WireAcceptEvent`` `choose` named.
    nonisolated func choose(_ identifier: String) {
        choice.yield(identifier)
    }

    /// Nobody will choose any more.
    nonisolated func endChoosing() {
        choice.finish()
    }

    /// The application that has the activity.
    var holder: String? { continuation == nil ? nil : continuing?.application.identifier }

    /// Lets the claim go, once the origin has been told what it is told before that.
    ///
    /// - Parameter error: why the activity could not be continued, which the origin's application is told.
    func finish(because error: HandoffError? = nil) async {
        await reporting?.value
        isFinished = true
        guard let (connection, claim) = held else { return }
        held = nil
        connections.letGo(of: connection)
        // In a task of its own: a cancelled handoff still lets go.
        await Task {
            _ = try? await withDeadline(deadlines.answer, "the origin did not answer") {
                try await connection.answer(
                    to: .release(
                        .with {
                            $0.claimID = Data(claim.bytes)
                            guard let error, error.code != .cancelled else { return }
                            // Which rule refused it names folders and other devices.
                            let told =
                                error.code == .refused
                                ? HandoffError(.refused, "it was refused there") : error.withoutPlaces
                            $0.failure = told.failure
                        }))
            }
        }.value
    }

    /// Holds a claim on a connection, instead of what was held before.
    ///
    /// The two change in one step, before anything is waited for. Otherwise two callers would both let the old
    /// connection go.
    ///
    /// - Throws: `cancelled` if the handoff is over.
    func hold(_ claim: ClaimID, on connection: Connection) async throws(HandoffError) {
        let before = held
        held = (connection, claim)
        connections.hold(connection, insteadOf: before?.connection)
        guard !isFinished else {
            await finish()
            throw HandoffError(.cancelled, "the handoff was cancelled")
        }
    }

    /// Opens a continuation stream to the application on the origin.
    func openContinuationStream() async throws(HandoffError) -> BatonTransport.Stream {
        do {
            // A new connection, where there has to be one, is waited for no longer.
            return try await withDeadline(deadlines.answer, "\(plan.origin.name) did not answer") {
                let (connection, claim) = try await self.presentClaim()
                return try await connection.request(.continuationStream(.with { $0.claimID = Data(claim.bytes) })).1
            }
        } catch {
            throw HandoffError(
                error.code, error.message, device: error.device.isEmpty ? plan.origin.name : error.device)
        }
    }

    /// The document, for reading.
    ///
    /// - Throws: `noSuchClaim` where the activity is not held here, `invalidRequest` where it has none.
    func document() throws(HandoffError) -> HandoffDocument {
        guard held != nil else { throw HandoffError(.noSuchClaim, "the activity has not been continued") }
        guard let heldDocument else { throw HandoffError(.invalidRequest, "the activity has no document") }
        return heldDocument
    }

    private func fetchPayload() async throws(HandoffError) -> WireActivityPayload {
        do {
            return try await fetchAcceptedPayload()
        } catch {
            // One that was there may have been dead for a while; nobody has been given anything by it.
            guard error.code == .connectionLost, !Task.isCancelled else { throw error }
            return try await fetchAcceptedPayload()
        }
    }

    /// Fetches the activity, and tells whoever accepted it.
    private func arrive() async throws(HandoffError) -> SharedFiles.Arrival {
        let payload = try await fetchPayload()
        // Told before the payload is handed on, and after it has come: before that nobody knows the host.
        try await announcePage(payload.webPageURL)
        // The user may have switched it off while the activity was on its way.
        do {
            try applications.requireOn(for: continuing?.application.identifier ?? "")
        } catch {
            wasSwitchedOff = true
            throw error
        }
        let arrival = try await files.incoming(
            payload, of: plan.origin.name, takesLocal: continuing != nil || plan.destination == nil)
        emit(.payload(arrival.payload))
        return arrival
    }

    private func takeOver(
        _ arrival: SharedFiles.Arrival
    ) async throws(HandoffError) -> WireAcceptEvent.Continued {
        guard held != nil else { throw HandoffError(.cancelled, "the handoff was cancelled") }

        var continued = WireAcceptEvent.Continued()
        let hasDocument = arrival.payload.summary.kind == .document
        // Whoever only looks wants what the other device has, which this one's copy may be behind.
        let document = HandoffDocument(
            documents, place: continuing == nil ? nil : arrival.localDocument?.path,
            presenting: { [weak self] () throws(HandoffError) in
                guard let self else { throw HandoffError(.noSuchClaim, "the activity has been let go") }
                return try await presentClaim()
            },
            approving: { [weak self] (tree, connection) throws(HandoffError) in
                try await self?.approve(tree, over: connection)
            })
        if hasDocument { heldDocument = document }
        if let application = try await handOver(arrival, with: hasDocument ? document : nil) {
            continued.application = .with {
                $0.identifier = application.identifier
                $0.name = application.name
            }
        }
        if let local = arrival.localDocument, continuing != nil {
            (continued.path, continued.bytes) = (Data(local.path.bytes), local.size)
        } else if let destination = plan.destination, hasDocument {
            (continued.path, continued.bytes, continued.receivedBytes) = try await fetch(document, into: destination)
            // It is whole and in place, however long its origin takes to hear of it.
            reporting = Task { _ = try? await reportContinued() }
            return continued
        }
        if !isLook(hasDocument: hasDocument) { try await reportContinued() }
        return continued
    }

    /// Holds the document, as it is described now, against what was accepted.
    private func approve(_ tree: DocumentTree, over connection: Connection) throws(HandoffError) {
        known.size = plan.size(of: tree)
        try plan.requirePolicy(over: connection, size: known.size)
    }

    /// Whether nobody takes the activity over: its payload is printed, its document is not fetched, or it belongs to a
    /// team's applications, of which there is none here. Its application keeps it then.
    private func isLook(hasDocument: Bool) -> Bool {
        guard continuing == nil, !plan.keepsClaim || plan.printsOnly else { return false }
        guard !plan.printsOnly, !hasDocument else { return plan.destination == nil }
        return plan.activity.kind == .application && !plan.activity.hasWebPage_p
            && TeamTag(plan.activity.teamTag) != TeamTag.none
    }

    private func reportContinued() async throws(HandoffError) {
        do {
            // A new connection, where there has to be one, is waited for no longer.
            _ = try await withDeadline(
                deadlines.answer, "\(plan.origin.name) did not answer", device: plan.origin.name
            ) {
                // The document may have come by another connection, and under another claim, than the payload.
                let (connection, claim) = try await self.presentClaim()
                return try await connection.answer(to: .continued(.with { $0.claimID = Data(claim.bytes) }))
            }
        } catch {
            // The document is whole and in place, or the application has the activity: that the origin could not be
            // told takes nothing back.
            guard plan.destination != nil || continuing != nil else { throw error }
        }
    }

    /// Keeps the claim until the application lets the activity go or ends.
    private func hold() async {
        guard let continuation else { return }
        while (try? await continuation.read()) != nil {}
        await continuation.finish()
    }

    /// Tells that the activity will be continued.
    ///
    /// - Parameter page: the application that a web page goes to; `nil` before there is one, and for all else.
    func emitWillContinue(isShown: Bool, openingPage page: WireInstalledApplication? = nil) {
        emit(
            .willContinue(
                .with {
                    $0.type = plan.activity.type
                    $0.device = plan.origin.name
                    $0.shown = isShown
                    if let page { $0.application = page }
                }))
    }

    func emit(_ kind: WireAcceptEvent.OneOf_Kind) {
        events.send(kind)
    }
}
