import Baton
import BatonMessages
import BatonTransport
import Glibc

/// One offer, from the node's yes until it is withdrawn.
struct OfferRun: Sendable {
    let client: NodeClient
    let offer: NodeOffer
    let draft: OfferDraft
    let server: StreamServer?
    let reporter: OfferReporter
    /// The offer ends with the first device that has it whole.
    let isOnce: Bool

    /// How long the node may take to confirm that the activity is withdrawn.
    private static let withdrawDeadline = Duration.seconds(3)

    func run() async throws {
        let stopped = OneTime()
        // A terminal that dies ends the offer as well: nobody could see or stop it any more.
        let interrupts = await Interrupts.watch([SIGINT, SIGTERM, SIGHUP]) { _ in withdraw(stopped) }
        defer { withExtendedLifetime(interrupts) {} }
        // Only now: whoever reads this line may stop the offer at once.
        let isHandoffOff = try? await !client.handoffSwitch().isOn
        try await reporter.offered(offer, at: draft.documentPath, isHandoffOff: isHandoffOff ?? false)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await serveRequests(stopped) }
            defer { group.cancelAll() }
            do {
                try await follow(stopped)
            } catch let error as HandoffError where error.code == .connectionLost {
                guard stopped.hasHappened else {
                    throw CommandError(
                        .noNode, code: "noNode",
                        "the node has stopped, so nothing is offered any more; start `baton node` and offer it again")
                }
            }
        }
        try await reporter.withdrawn(offer.id)
    }

    /// Withdraws, once; the node ends the events then.
    private func withdraw(_ stopped: OneTime) {
        guard stopped.take() else { return }
        let (client, offer) = (client, offer)
        Task {
            await offer.withdraw()
            try? await Task.sleep(for: Self.withdrawDeadline)
            await client.close()
        }
    }

    private func follow(_ stopped: OneTime) async throws {
        for try await event in offer.events {
            switch event.kind {
            case .taken(let taken):
                try await reporter.taken(taken)
            case .progress(let progress):
                try await reporter.progressed(progress)
            case .continued(let taken):
                try await reporter.continued(taken)
                // With streams, what the other side wants comes only now: its first stream ends the offer.
                if isOnce, server == nil { withdraw(stopped) }
            case .failed(let failure) where failure.code == .nodeStopping && !stopped.hasHappened:
                throw HandoffError(failure)
            case .failed(let failure):
                try await reporter.failed(failure)
            case .withdrawn:
                return
            case nil:
                continue
            }
        }
    }

    private func serveRequests(_ stopped: OneTime) async throws {
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
                        let served = await server.serve(request.stream, from: request.device) {
                            await reporter.note($0)
                        }
                        if isOnce, served { withdraw(stopped) }
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
