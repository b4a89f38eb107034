import BatonAccount
import BatonApplications
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import Logging
import SwiftProtobuf
import SystemPackage

/// Serves the applications and commands of this user over the local socket.
struct ControlService: Sendable {
    let account: CurrentAccount
    let port: UInt16
    let offers: Offers
    let directory: PeerDirectory
    let connections: PeerConnections
    let exchange: StateExchange
    let activities: PeerActivities
    let documents: DocumentService
    let handoffs: HandoffTable
    let policy: PolicyKeeper
    let applications: Applications
    let handoffSwitch: HandoffSwitchKeeper
    let files: SharedFiles
    let deadlines: HandoffDeadlines
    /// Of the node's budget, for continuation streams.
    let streams: ByteBudget.Part
    /// Of the continuation streams that applications open.
    let places = ContinuationPlaces()

    /// Serves one stream that an application opened.
    func serve(_ incoming: IncomingStream, of application: Connection) async {
        let stream = incoming.stream
        do {
            // What an offer was read from takes ten times as much as what is kept of it, and goes before the waiting.
            guard let activity = try await answer(incoming, of: application) else { return }
            try await offer(activity, from: application, on: stream)
        } catch let error as HandoffError {
            await stream.fail(error)
        } catch {
            await stream.fail(HandoffError(.internal, "\(error)"))
        }
    }

    /// Answers a request.
    ///
    /// - Returns: the activity, of a request that offers one: that is answered when the request has gone.
    private func answer(
        _ incoming: IncomingStream, of application: Connection
    ) async throws -> OfferedActivity? {
        let stream = incoming.stream
        let request = try WireRequest.decode(incoming.request)
        if !request.hasInput { await stream.ignoreInput() }
        switch request {
        case .status:
            try await status(on: stream)
        case .devices:
            try await devices(on: stream)
        case .activities(let request):
            try await activities(request, on: stream)
        case .offer(let request):
            let (request, document) = try await outgoing(request)
            return try OfferedActivity(request, document: document)
        case .withdraw(let request):
            try await withdraw(request, on: stream)
        case .accept(let request):
            try await accept(request, on: stream)
        case .continuationStream(let request):
            try await continuationStream(request, from: application, on: stream)
        case .adoptState(let request):
            try await adoptState(request, on: stream)
        case .register(let request):
            try await register(request, from: application, on: stream)
        case .handoffSwitch(let request):
            try await handoffSwitch(request, on: stream)
        case .documentRead(let request):
            try await documentRead(request, on: stream)
        case .access(let request):
            try await access(request, from: application, on: stream)
        case .activityList, .payload, .documentManifest, .documentRanges, .continued, .release, .accountState,
            .willSave, .willContinue, .continueActivity, .didFail:
            throw HandoffError(.unsupported, "this request is not for the local socket")
        }
        return nil
    }

    private func status(on stream: BatonTransport.Stream) async throws(HandoffError) {
        var status = WireStatusResponse()
        status.device = account.value.deviceName
        status.deviceID = account.value.identity.id.description
        status.port = UInt32(port)
        status.responder = await directory.responderDescription
        status.peers = UInt32(await directory.present.count)
        status.offers = UInt32(await offers.count)
        status.connections = UInt32(await connections.count)
        let handoffSwitch = await handoffSwitch.current
        status.handoffIsOff = !handoffSwitch.isOn
        status.handoffProblem = handoffSwitch.problem ?? ""
        status.sharedRootsProblem = await files.currentProblem ?? ""
        status.applications = UInt32(await applications.count)
        status.policyProblem = await policy.currentProblem() ?? ""
        status.processID = UInt32(ProcessInfo.processInfo.processIdentifier)
        try await stream.respond(.status(status))
        await stream.finish()
    }

    private func devices(on stream: BatonTransport.Stream) async throws(HandoffError) {
        let current = account.value
        try await stream.respond(.devices(.with { $0.listsApart = current.state.isApart }))
        for peer in await directory.all {
            try await stream.send(
                record: WireDevice.with {
                    $0.name = peer.name
                    $0.deviceID = peer.device.description
                    $0.addresses = peer.addresses.map(\.description)
                    $0.seen = peer.seen
                    $0.knows = peer.knows(current)
                    $0.present = peer.isPresent
                })
        }
        await stream.finish()
    }

    private func adoptState(
        _ request: WireAdoptStateRequest, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        try await exchange.adopt(request.lists)
        try await stream.respond(.adoptState(.init()))
        await stream.finish()
    }

    private func activities(
        _ request: WireActivitiesRequest, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        if !request.watch { try await handoffSwitch.current.requireOn() }
        let changes = request.watch ? try await directory.watch() : nil
        try await stream.respond(.activities(.init()))
        let purpose: PeerActivities.Purpose =
            request.advertisedOnly ? .advertised : request.watch ? .watch : .look
        var listed = await activities.all(for: purpose, withRefused: request.withRefused && !request.watch)
        for listing in listed { try await stream.send(record: listing) }
        guard let changes else { return await stream.finish() }

        try await stream.send(record: WireActivityListing.with { $0.change = .listed })
        // The end of the application's side, which it never uses here, or of its connection ends the watch.
        let watching = Task {
            for await _ in changes {
                let now = await activities.all(for: purpose)
                for change in Self.changes(from: listed, to: now) { try await stream.send(record: change) }
                listed = now
            }
        }
        while (try? await stream.read()) != nil {}
        watching.cancel()
        await stream.finish()
    }

    /// What to tell somebody who knows one list and has to know another.
    static func changes(
        from old: [WireActivityListing], to new: [WireActivityListing]
    ) -> [WireActivityListing] {
        func isSame(_ left: WireActivityListing, _ right: WireActivityListing) -> Bool {
            left.activity.id == right.activity.id && left.deviceID == right.deviceID
        }
        func marked(_ listing: WireActivityListing, _ change: WireActivityListing.Change) -> WireActivityListing {
            var listing = listing
            listing.change = change
            return listing
        }
        let gone = old.filter { listing in !new.contains { isSame($0, listing) } }
        let come = new.filter { listing in !old.contains { isSame($0, listing) } }
        // Since when is known from an age, which is another by a second now and then.
        func isTold(_ left: WireActivityListing, _ right: WireActivityListing) -> Bool {
            var (before, after) = (left.activity, right.activity)
            (before.since, after.since) = (0, 0)
            return before == after && left.device == right.device
        }
        let updated = new.filter { listing in old.contains { isSame($0, listing) && !isTold($0, listing) } }
        return gone.map { marked($0, .removed) } + come.map { marked($0, .added) }
            + updated.map { marked($0, .updated) }
    }

    private func offer(
        _ activity: OfferedActivity, from application: Connection, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        let events = try await offers.offer(activity, from: application)
        do {
            try await stream.respond(
                .offer(
                    .with {
                        $0.activityID = Data(activity.id.bytes)
                        $0.title = activity.title
                    }))
        } catch {
            await offers.withdraw(activity.id)
            throw error
        }
        await applications.activityBecameCurrent(on: application)
        let telling = Task {
            for await event in events { try await stream.send(record: event) }
            await stream.finish()
        }
        var problem: HandoffError?
        do {
            // END, an abort, or the application's death: each withdraws.
            for try await update in stream.records(of: WireOfferUpdate.self) {
                try await self.update(activity, update)
                if update.becomesCurrent { await applications.activityBecameCurrent(on: application) }
            }
        } catch {
            problem = error
        }
        if let problem { await offers.report(.failed(problem.failure), of: activity.id) }
        await offers.withdraw(activity.id)
        _ = await telling.result
    }

    private func update(_ activity: OfferedActivity, _ update: WireOfferUpdate) async throws(HandoffError) {
        let (offer, document) = try await outgoing(update.offer)
        let since = update.becomesCurrent ? UInt64(Date.now.timeIntervalSince1970) : activity.since
        try await offers.update(
            OfferedActivity(offer, document: document, id: activity.id, since: since),
            becomesCurrent: update.becomesCurrent)
    }

    /// The activity as it may leave this device, and its document.
    private func outgoing(
        _ request: WireOfferRequest
    ) async throws(HandoffError) -> (WireOfferRequest, DocumentSource?) {
        var request = request
        let document: DocumentSource?
        (request.userInfo, document) = try await files.outgoing(
            request.userInfo, document: await self.document(of: request))
        return (request, document)
    }

    private func document(of request: WireOfferRequest) async throws(HandoffError) -> DocumentSource? {
        guard !request.documentPath.isEmpty else { return nil }
        return try await DocumentService.inspect(
            OfferedActivity.documentPath(request.documentPath), countedIn: documents.descriptions)
    }

    private func withdraw(
        _ request: WireWithdrawRequest, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        guard !request.idPrefix.isEmpty else { throw HandoffError(.invalidRequest, "an activity's id is needed") }
        let activity = try await offers.activity(withPrefix: request.idPrefix)
        await offers.withdraw(activity.id)
        try await stream.respond(
            .withdraw(
                .with {
                    $0.activityID = Data(activity.id.bytes)
                    $0.title = activity.title
                }))
        await stream.finish()
    }

    private func accept(
        _ request: WireAcceptRequest, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        guard let id = ActivityID(request.activityID) else {
            throw HandoffError(.invalidRequest, "an activity's id has \(ActivityID.size) bytes")
        }
        var destination: DestinationFolder?
        if !request.destination.isEmpty {
            guard let path = FilePath(bytes: request.destination), path.isAbsolute else {
                throw HandoffError(.invalidRequest, "the destination has to be an absolute path")
            }
            destination = try await documents.openDestination(path)
        }
        try await handoffSwitch.current.requireOn()
        let (summary, origin) = try await activities.find(
            id, on: request.deviceID, orNewest: request.orNewest)
        var plan = Handoff.Plan(
            activity: summary, origin: origin, destination: destination, keepsClaim: request.streams,
            printsOnly: request.look || (!request.toApplication && !request.streams && destination == nil),
            takesReplacement: request.orNewest, copies: try Self.copies(in: request))
        let wanted = request.application
        let isPage = summary.type == ActivityType.browsingWeb
        // Whether one that claims hosts may open a page says the page's host, also where the user has named it.
        if request.toApplication, isPage, await applications.claimsHosts(wanted) {
            plan.recipient = .applicationOfPage(wanted: wanted, browsers: [])
        } else if request.toApplication, isPage, wanted.isEmpty {
            let browsers = try await applications.choose(for: summary, of: origin.name, wanted: wanted).candidates
            plan.recipient = .applicationOfPage(wanted: wanted, browsers: browsers)
        } else if request.toApplication {
            switch try await applications.choose(for: summary, of: origin.name, wanted: wanted) {
            case .nobody: break
            case .one(let candidate):
                plan.recipient = .application(candidate)
                plan.keepsClaim = false
            case .ask(let candidates):
                try await stream.respond(.accept(.with { $0.choices = candidates.map(\.message) }))
                return await stream.finish()
            }
        }
        let handoff = Handoff(
            plan, connections: connections, documents: documents, applications: applications, files: files,
            deadlines: deadlines)
        if let continued = await handoffs.endDetached(like: plan) {
            try await stream.respond(.accept(.with { $0.handoffID = Data(handoff.id.bytes) }))
            try await stream.send(record: WireAcceptEvent.with { $0.continued = continued })
            return await stream.finish()
        }
        try await handoffs.insert(handoff)
        await run(handoff, for: stream)
        await handoffs.remove(handoff)
    }

    private static func copies(in request: WireAcceptRequest) throws(HandoffError) -> [FilePath] {
        guard request.against.count <= OlderCopy.limit else {
            throw HandoffError(.invalidRequest, "at most \(OlderCopy.limit) older copies can be named")
        }
        var copies: [FilePath] = []
        for copy in request.against {
            guard let path = FilePath(bytes: copy), path.isAbsolute else {
                throw HandoffError(.invalidRequest, "the path of an older copy has to be absolute")
            }
            copies.append(path)
        }
        return copies
    }

    /// Runs a handoff and tells the application of it.
    ///
    /// An abort by whoever asked cancels. The end of their connection detaches: a document goes on being fetched, and
    /// what goes to an application goes on as well; anything else has nobody left to go to.
    private func run(_ handoff: Handoff, for stream: BatonTransport.Stream) async {
        do {
            try await stream.respond(
                .accept(
                    .with {
                        $0.handoffID = Data(handoff.id.bytes)
                        if case .application(let candidate) = handoff.plan.recipient {
                            $0.application = candidate.message
                        }
                    }))
        } catch {
            return
        }
        let running = Task { await handoff.run() }
        await handoffs.setTask(running, of: handoff)
        let listening = Task {
            do throws(HandoffError) {
                for try await answer in stream.records(of: WireAcceptAnswer.self) {
                    handoff.choose(answer.application)
                }
                handoff.endChoosing()
                if handoff.plan.keepsClaim { await handoff.finish() }
            } catch {
                handoff.endChoosing()
                if Task.isCancelled { return }
                guard error.code != .connectionLost || !handoff.plan.outlivesAsker else {
                    return await handoffs.setDetached(handoff)
                }
                running.cancel()
                await handoff.finish()
            }
        }
        var isHeard = true
        for await event in handoff.events where isHeard {
            do {
                try await stream.send(record: event)
            } catch {
                isHeard = false
            }
            if case .failed(let failure) = event.kind, HandoffError(failure).code == .noSuchActivity {
                await activities.noteGone(handoff.plan.activity, of: handoff.plan.origin)
            }
        }
        await stream.finish()
        if let application = await handoff.holder { await handoffs.hold(handoff, by: application) }
        // An application may keep what it continues for long after whoever asked has gone.
        if handoff.plan.keepsClaim { _ = await listening.result } else { listening.cancel() }
        await running.value
        listening.cancel()
    }
}
