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

/// The steps of one handoff on the continuing device, in the order in which the core of ``HandoffTable`` wants them.
@ControlLoop
final class Handoff {
    /// Events that wait for an application that does not read; older progress is lost beyond it.
    nonisolated static let eventBound = 1024

    nonisolated let id = HandoffID()
    nonisolated let plan: Plan
    /// The events, of which `continued` or `failed` is the last. To be iterated once.
    nonisolated let events: AsyncStream<WireAcceptEvent>
    private nonisolated let event: AsyncStream<WireAcceptEvent>.Continuation
    let connections: PeerConnections
    let documents: DocumentService
    let applications: Applications
    let files: SharedFiles
    let deadlines: HandoffDeadlines

    /// The claim, and the connection to present it on. Replaced by ``hold(_:on:)``.
    private(set) var held: (connection: Connection, claim: ClaimID)?
    /// Nothing is held any more: a claim that comes now is released at once.
    private var isFinished = false
    /// The application that was told of the handoff and did not decline.
    var continuing: RunningApplication?
    /// It has answered that it continues the activity.
    var hasAgreed = false
    /// Open for as long as the application wants the activity.
    var continuation: BatonTransport.Stream?
    /// Browsers of the page's team that were not told of it.
    var browsers: [ApplicationChoice.Candidate] = []
    /// The reports to the application about the document; nil before the document is fetched.
    var reporter: DocumentReporter?
    /// How far the document is, in all attempts.
    let progress = TransferReport()
    /// The payload as the origin sent it; nil before it did.
    private var payload: WireActivityPayload?
    /// The same with the files of this device in it.
    private var arrival: SharedFiles.Arrival?
    /// The parts that were continued so far.
    private var result = WireAcceptEvent.Continued()
    /// The result, once whoever asked was told of it.
    private(set) var continued: WireAcceptEvent.Continued?
    private var hasFailed = false
    /// Under which id the origin offers the activity: another one when it was offered anew.
    var activityID: Data
    /// Which document of the origin the activity's is, what it is called there and how large it is, as it was last
    /// told.
    var known: (identity: DocumentIdentity, title: String, size: UInt64)
    /// Whether the activity has a document.
    var hasDocument = false
    /// The origin's description of the document; nil if the origin has to be asked.
    var described: DocumentDescription?
    /// Which document it was when it was described first.
    var firstDescribed: (label: DocumentLabel, identity: DocumentIdentity)?
    /// Where the document is on this device; nil until it has arrived.
    var place: FilePath?
    /// The reads of the document happen one after the other.
    let reads = WaitingLine(places: 1, waiting: readLineBound)
    /// The user's choice of several applications, as the asker says.
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
        (events, event) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(Self.eventBound))
    }

    // MARK: Steps

    /// Carries out one step, on the node's control loop: somebody waits for the payload, and each change of threads on
    /// the way would be felt. Work that computes more leaves the loop.
    func perform(_ step: HandoffTable.Core.Step) async -> HandoffTable.Core.Outcome {
        do throws(HandoffError) {
            switch step {
            case .announce: emitWillContinue(isShown: try await announce())
            case .claim: payload = try await fetchAcceptedPayload()
            case .prepare: return .prepared(try await prepare())
            case .fetch(let fetching):
                return try await retelling { () throws(HandoffError) in try await fetch(fetching) }
            case .renew: try await retelling { () throws(HandoffError) in try await renewClaim() }
            case .wait(let pause, _): try await retelling { () throws(HandoffError) in try await wait(pause) }
            case .commit: try await reportContinued()
            case .deliver: return .delivered(to: try await deliver())
            case .hold:
                endEvents()
                await hold()
            case .fail(let failure):
                // An application that has not answered yet is not waited for again.
                if hasAgreed { await tellFailure(failure) }
                hasFailed = true
                send(.failed(failure.failure))
                if !hasAgreed { await tellFailure(failure) }
            case .release(let failure): await finish(because: failure)
            }
            return .done
        } catch {
            return .failed(error)
        }
    }

    private func wait(_ pause: Duration) async throws(HandoffError) {
        do {
            try await Alarm.sleep(for: pause)
        } catch {
            throw HandoffError(.cancelled, "the handoff was cancelled")
        }
    }

    /// Does some work, and meanwhile tells again how far the document is.
    private func retelling<Value>(
        _ work: () async throws(HandoffError) -> Value
    ) async throws(HandoffError) -> Value {
        try await progress.repeating({ [self] in send(.progress($0)) }, during: work)
    }

    // MARK: Events

    /// Tells the asker an event.
    nonisolated func send(_ kind: WireAcceptEvent.OneOf_Kind) {
        event.yield(.with { $0.kind = kind })
    }

    /// Tells the asker that the activity is continued.
    func tellContinued() {
        continued = result
        send(.continued(result))
    }

    /// Tells the asker that the document stopped coming, and goes on by itself.
    ///
    /// - Parameter waits: how long its device is waited for; zero if it is there.
    nonisolated func tellInterruption(_ cause: HandoffError, waiting waits: Duration, keeping bytes: UInt64) {
        send(
            .interrupted(
                .with {
                    $0.cause = cause.shortened.failure
                    $0.keptBytes = bytes
                    $0.waitsSeconds = UInt32(clamping: waits.components.seconds)
                }))
    }

    /// No more events follow.
    func endEvents() { event.finish() }

    /// Whether the handoff was continued or has failed.
    var isOver: Bool { continued != nil || hasFailed }

    /// The user has chosen one of the applications that ``WireAcceptEvent`` `choose` named.
    nonisolated func choose(_ identifier: String) {
        choice.yield(identifier)
    }

    /// Nobody will choose any more.
    nonisolated func endChoosing() {
        choice.finish()
    }

    /// Lets the claim go.
    ///
    /// - Parameter error: why the activity could not be continued, which the origin's application is told.
    private func finish(because error: HandoffError? = nil) async {
        isFinished = true
        guard let (connection, claim) = held else { return }
        held = nil
        connections.letGo(of: connection)
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

    /// Tells whoever accepted it what has come, and looks what is to be done with it.
    private func prepare() async throws(HandoffError) -> HandoffContent {
        guard let payload else { throw HandoffError(.internal, "there is no payload") }
        // Told before the payload is handed on, and after it has come: before that nobody knows the host.
        try await announcePage(payload.webPageURL)
        // The user may have switched it off while the activity was on its way.
        try applications.requireOn(for: continuing?.identifier ?? "")
        let arrival = try await files.incoming(
            payload, of: plan.origin.name, takesLocal: continuing != nil || plan.destination == nil)
        self.arrival = arrival
        send(.payload(arrival.payload))
        // An application takes the copy of this device. Everybody else wants what the other device has.
        let local = continuing == nil ? nil : arrival.localDocument
        hasDocument = arrival.payload.summary.kind == .document
        if let local {
            place = local.path
            (result.path, result.bytes) = (Data(local.path.bytes), local.size)
        }
        var content: HandoffContent = []
        if arrival.payload.summary.exclusive { content.insert(.exclusive) }
        if hasDocument, local == nil, plan.destination != nil { content.insert(.document) }
        if isLook { content.insert(.look) }
        return content
    }

    /// Gives the activity to its application.
    ///
    /// - Returns: the application's identifier; nil if whoever asked has the activity.
    private func deliver() async throws(HandoffError) -> String? {
        guard let arrival else { throw HandoffError(.internal, "there is no payload") }
        guard continuing != nil else { return nil }
        let application = try await offLoop { () throws(HandoffError) in try await handOver(arrival) }
        guard let application else { return nil }
        result.application = .with {
            $0.identifier = application.identifier
            $0.name = application.name
        }
        // An exclusive activity is delivered after its document.
        if arrival.localDocument == nil, let place, let continuation {
            DocumentReporter(to: continuation).report(.arrived(Data(place.bytes)))
        }
        return application.identifier
    }

    /// The document is whole and in place.
    func setArrived(at path: Data, size: UInt64) {
        place = FilePath(bytes: path)
        (result.path, result.bytes, result.receivedBytes) = (path, size, progress.received)
    }

    /// Whether nobody takes the activity over: its payload is printed, its document is not fetched, or it belongs to a
    /// team's applications, of which there is none here. Its application keeps it then.
    private var isLook: Bool {
        guard continuing == nil, !plan.keepsClaim || plan.printsOnly else { return false }
        guard !plan.printsOnly, !hasDocument else { return plan.destination == nil }
        return plan.activity.kind == .application && !plan.activity.hasWebPage_p
            && TeamTag(plan.activity.teamTag) != TeamTag.none
    }

    /// Tells the origin that the activity is continued, and waits for its answer.
    private func reportContinued() async throws(HandoffError) {
        // A new connection, if one is needed, is waited for no longer.
        _ = try await withDeadline(
            deadlines.answer, "\(plan.origin.name) did not answer", device: plan.origin.name
        ) {
            // The document may have come by another connection, and under another claim, than the payload.
            let (connection, claim) = try await self.presentClaim()
            return try await connection.answer(to: .continued(.with { $0.claimID = Data(claim.bytes) }))
        }
    }

    /// Keeps the claim until the application lets the activity go or ends, or the activity is taken from it.
    private func hold() async {
        guard let continuation else {
            // Until whoever asked has said all.
            for await _ in choices {}
            return
        }
        async let _: Void = release(continuation)
        while (try? await continuation.read()) != nil {}
        await continuation.finish()
    }

    private func release(_ continuation: BatonTransport.Stream) async {
        await continuation.untilClosedOrCancelled()
        if Task.isCancelled { await continuation.reset(.cancelled) }
    }

    /// Tells that the activity will be continued.
    ///
    /// - Parameter page: the application that a web page goes to; `nil` before there is one, and for all else.
    func emitWillContinue(isShown: Bool, openingPage page: WireInstalledApplication? = nil) {
        send(
            .willContinue(
                .with {
                    $0.type = plan.activity.type
                    $0.device = plan.origin.name
                    $0.shown = isShown
                    if let page { $0.application = page }
                }))
    }
}
