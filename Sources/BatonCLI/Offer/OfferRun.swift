// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonDocuments
import BatonMessages
import BatonTransport
import Glibc

/// One offer, until it is withdrawn: by one node, and where that stops by the next one.
struct OfferRun: Sendable {
    /// How long the next node is waited for: 10 minutes, as long as another device waits for a document to go on.
    static let patience = Duration.seconds(600)
    /// How often in a row nodes may stop soon after they were given the offer: 5. Perhaps it is what they stop of.
    static let lossLimit = 5
    /// A node that stops within this time has stopped soon: 10 s.
    static let soon = Duration.seconds(10)
    /// How long the node may take to confirm that the activity is withdrawn.
    private static let withdrawDeadline = Duration.seconds(3)

    let request: WireOfferRequest
    let draft: OfferDraft
    let server: StreamServer?
    let reporter: OfferReporter
    /// The offer ends with the first device that has it whole.
    let isOnce: Bool

    /// What became of the offer at one node.
    private enum Outcome {
        case withdrawn
        /// The node has stopped; it had the offer since then.
        case lost([UInt8], since: ContinuousClock.Instant)
        /// The node stopped before it had taken the offer.
        case refused
    }

    /// That a node has stopped.
    private struct Loss {
        let id: [UInt8]
        let time: ContinuousClock.Instant
        /// How many in a row have stopped soon after they were given the offer, this one included.
        let count: Int
    }

    private let end = OfferEnd()

    init(
        _ request: WireOfferRequest, draft: OfferDraft, server: StreamServer?, reporter: OfferReporter, isOnce: Bool
    ) {
        self.request = request
        self.draft = draft
        self.server = server
        self.reporter = reporter
        self.isOnce = isOnce
    }

    func run() async throws {
        var client = try await NodeAccess.connect()
        // A terminal that dies ends the offer as well: nobody could see or stop it any more.
        let interrupts = await Interrupts.watch([SIGINT, SIGTERM, SIGHUP]) { [end] _ in end.come() }
        defer { withExtendedLifetime(interrupts) {} }
        var last: Loss?
        while true {
            let isAgain = last != nil
            switch try await NodeAccess.closing(client, { try await offer(at: $0, again: isAgain) }) {
            case .withdrawn: return
            case .lost(let id, let since):
                let lost = try loss(of: id, since: since, after: last)
                last = lost
                try await reporter.nodeLost()
            case .refused: break
            }
            guard let last, let next = try await nextNode(after: last) else { return }
            client = next
        }
    }

    /// - Throws: where it may be the offer that nodes stop of.
    private func loss(of id: [UInt8], since start: ContinuousClock.Instant, after last: Loss?) throws -> Loss {
        let now = ContinuousClock.now
        let count = now - start < Self.soon ? (last?.count ?? 0) + 1 : 0
        guard count < Self.lossLimit else {
            throw CommandError(
                .noNode, code: "noNode",
                "the node has stopped \(count) times soon after it was given this offer; see what it says itself")
        }
        return Loss(id: id, time: now, count: count)
    }

    /// Waits for the next node.
    ///
    /// - Returns: `nil` when the offer was to end meanwhile, which is told.
    private func nextNode(after loss: Loss) async throws -> NodeClient? {
        let next = try await NodeAccess.connectAgain(until: loss.time + Self.patience) { end.hasCome }
        if end.hasCome {
            await next?.close()
            try await reporter.withdrawn(loss.id)
            return nil
        }
        if let next { return next }
        throw CommandError(
            .noNode, code: "noNode",
            "no node came back within \(HumanUnits.duration(Self.patience)), so nothing is offered any more; start"
                + " `baton node` and offer it again")
    }

    /// Offers it at one node.
    ///
    /// - Parameter isAgain: another node had it before: one that is stopping is that one still.
    private func offer(at client: NodeClient, again isAgain: Bool) async throws -> Outcome {
        let since = ContinuousClock.now
        let offer: NodeOffer
        // The node looks at the document first, which can take long.
        end.stands { Task { await client.close() } }
        do {
            offer = try await client.offer(request)
        } catch {
            guard isAgain, error.code == .nodeStopping || error.code == .connectionLost else {
                throw end.hasCome ? CommandError.interrupted : error
            }
            return .refused
        }
        end.stands {
            Task {
                await offer.withdraw()
                try? await Task.sleep(for: Self.withdrawDeadline)
                await client.close()
            }
        }
        defer { end.stands(nil) }
        // Only now: whoever reads this line may stop the offer at once.
        let isHandoffOff = try? await !client.handoffSwitch().isOn
        try await reporter.offered(offer, at: draft.documentPath, isHandoffOff: isHandoffOff ?? false)
        // One that has just been started is not announced either, and needs no words.
        if let status = try? await client.status(), status.isUnannounced {
            try await reporter.unannounced(status.responder)
        }
        let isWithdrawn = try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await serveRequests(of: client) }
            defer { group.cancelAll() }
            do {
                return try await follow(offer)
            } catch let error as HandoffError where error.code == .connectionLost {
                return end.hasCome
            }
        }
        guard isWithdrawn else { return .lost(offer.id, since: since) }
        try await reporter.withdrawn(offer.id)
        return .withdrawn
    }

    /// - Returns: whether it was withdrawn, and not lost with its node.
    private func follow(_ offer: NodeOffer) async throws -> Bool {
        for try await event in offer.events {
            switch event.kind {
            case .taken(let taken):
                try await reporter.taken(taken, claim: event.claim)
            case .progress(let progress):
                try await reporter.progressed(progress, claim: event.claim)
            case .continued(let taken):
                try await reporter.continued(taken, claim: event.claim)
                // With streams, what the other side wants comes only now: its first stream ends the offer.
                if isOnce, server == nil { end.come() }
            case .failed(let failure) where failure.code == .nodeStopping && !end.hasCome:
                return false
            case .failed(let failure):
                try await reporter.failed(failure, claim: event.claim)
            case .withdrawn:
                return true
            case nil:
                continue
            }
        }
        return true
    }

    private func serveRequests(of client: NodeClient) async throws {
        try await withThrowingDiscardingTaskGroup { group in
            for await request in client.requests {
                switch request {
                case .willSave(let question):
                    group.addTask { try await save(question) }
                case .continuationStream(let request):
                    guard let server else {
                        await request.refuse(HandoffError(.streamsUnsupported, "this activity has no streams"))
                        continue
                    }
                    group.addTask {
                        // A node that ran before this command was updated tells no identifier.
                        let served = await server.serve(
                            request.stream, from: request.device,
                            identified: request.deviceID.isEmpty ? request.device : request.deviceID
                        ) {
                            await reporter.note($0)
                        }
                        if isOnce, served { end.come() }
                    }
                case .willContinue(let question):
                    await question.decline(Self.continuesNothing)
                case .continueActivity(let activity):
                    await activity.fail(Self.continuesNothing)
                case .didFail(let news):
                    await news.acknowledge()
                }
            }
        }
    }

    private static let continuesNothing = HandoffError(.notHandled, "`baton offer` continues no activities")

    /// Answers with the state as it is now: what a file says, or what was said in the beginning.
    private func save(_ question: NodeWillSave) async throws {
        // Side by side: the other device waits for the answer.
        async let told: Void = reporter.willSave(question.device)
        do {
            let state = try draft.state()
            // The node may have given up waiting; then there is nobody to answer.
            try? await question.answer(userInfo: state.userInfo, webPageURL: state.webPageURL)
        } catch {
            await question.fail(HandoffError(.documentUnreadable, error.message))
        }
        try await told
    }
}
