// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonTransport
import Glibc
import SwiftProtobuf

/// One offer, until it is withdrawn. If the node stops, the offer is made again at the next node.
struct OfferRun: Sendable {
    /// The time to wait for the next node: 10 minutes. Other devices wait as long for a document to go on.
    static let patience = Duration.seconds(600)
    /// The number of nodes in a row that may stop soon after they got the offer: 5. The offer may be the cause.
    static let lossLimit = 5
    /// The time within which a node stops soon: 10 s.
    private static let soon = Duration.seconds(10)
    /// The time that the node has to confirm the withdrawal: 3 s.
    private static let withdrawDeadline = Duration.seconds(3)

    let request: WireOfferRequest
    let draft: OfferDraft
    let server: StreamServer?
    let reporter: OfferReporter
    /// Whether the offer ends after the first device that has all of it.
    let isOnce: Bool

    private enum Outcome {
        case withdrawn
        /// The node has stopped.
        case lost([UInt8])
        /// The node stopped before it accepted the offer.
        case refused
    }

    private let cancellation = Cancellation()

    func run() async throws {
        var client = try await NodeAccess.connect()
        // The end of the terminal ends the offer as well: nobody could see or stop it any more.
        await Interrupts.watch([SIGINT, SIGTERM, SIGHUP]) { [cancellation] in cancellation.request() }
        var lost: (id: [UInt8], time: ContinuousClock.Instant)?
        var losses = 0
        while true {
            let start = ContinuousClock.now
            switch try await NodeAccess.closing(client, { try await offer(at: $0, again: lost != nil) }) {
            case .withdrawn: return
            case .lost(let id):
                lost = (id, .now)
                losses = .now - start < Self.soon ? losses + 1 : 0
                guard losses < Self.lossLimit else {
                    throw CommandError(
                        .noNode,
                        "the node has stopped \(losses) times soon after it was given this offer; see `baton node log`")
                }
                try await reporter.nodeLost()
            case .refused: break
            }
            guard let lost, let next = try await nextNode(after: lost.id, until: lost.time + Self.patience) else {
                return
            }
            client = next
        }
    }

    /// Waits for the next node.
    ///
    /// - Parameter id: what the offer was called at the last node.
    /// - Returns: `nil` if the offer was ended meanwhile, which is then reported.
    private func nextNode(after id: [UInt8], until end: ContinuousClock.Instant) async throws -> NodeClient? {
        let next = try await NodeAccess.connectAgain(until: end) { cancellation.isRequested }
        if cancellation.isRequested {
            await next?.close()
            try await reporter.withdrawn(id)
            return nil
        }
        if let next { return next }
        throw CommandError(
            .noNode,
            "no node came back within \(HumanUnits.duration(Self.patience)), so nothing is offered any more; start"
                + " `baton node` and offer it again")
    }

    /// Makes the offer at one node.
    ///
    /// - Parameter isAgain: whether another node had the offer. That node may still be stopping.
    private func offer(at client: NodeClient, again isAgain: Bool) async throws -> Outcome {
        let offer: NodeOffer
        // The node reads the document first, which can take long.
        cancellation.setAction { Task { await client.close() } }
        do {
            offer = try await client.offer(request)
        } catch {
            guard isAgain, error.code == .nodeStopping || error.code == .connectionLost else {
                throw cancellation.isRequested ? CommandError.interrupted : error
            }
            return .refused
        }
        cancellation.setAction {
            Task {
                await offer.withdraw()
                try? await Task.sleep(for: Self.withdrawDeadline)
                await client.close()
            }
        }
        defer { cancellation.setAction(nil) }
        // Report it only now: the reader of this line may stop the offer at once.
        let isHandoffOff = try? await !client.handoffSwitch().isOn
        try await reporter.offered(offer, at: draft.documentPath, isHandoffOff: isHandoffOff ?? false)
        let isWithdrawn = try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await serveRequests(of: client) }
            group.addTask { try await ResponderWatch.run(client, reporter.output) }
            defer { group.cancelAll() }
            do {
                return try await follow(offer)
            } catch let error as HandoffError where error.code == .connectionLost {
                return cancellation.isRequested
            }
        }
        guard isWithdrawn else { return .lost(offer.id) }
        try await reporter.withdrawn(offer.id, stillSent: (try? await client.transfers(of: offer.id)) ?? [])
        return .withdrawn
    }

    /// - Returns: true if the offer was withdrawn; false if the node stopped.
    private func follow(_ offer: NodeOffer) async throws -> Bool {
        for try await event in offer.events {
            switch event.kind {
            case .taken(let taken):
                try await reporter.taken(taken, claim: event.claim)
            case .progress(let progress):
                try await reporter.progressed(progress, claim: event.claim)
            case .continued(let taken):
                try await reporter.continued(taken, claim: event.claim)
                // With streams the important part comes later: the first stream that succeeds ends the offer.
                if isOnce, server == nil { cancellation.request() }
            case .failed(let failure) where failure.code == .nodeStopping && !cancellation.isRequested:
                return false
            case .failed(let failure):
                try await reporter.failed(failure, claim: event.claim)
            case .interrupted(let cause):
                try await reporter.interrupted(cause, claim: event.claim)
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
                case .continuationStream(let question):
                    guard let server else {
                        await question.fail(HandoffError(.streamsUnsupported, "this activity has no streams"))
                        continue
                    }
                    group.addTask {
                        let served = await server.serve(
                            question.stream, from: question.request.device, identified: question.request.deviceID
                        ) { await reporter.output.say($0) }
                        if isOnce, served { cancellation.request() }
                    }
                case .willContinue(let question):
                    await question.fail(Self.continuesNothing)
                case .continueActivity(let question):
                    await question.fail(Self.continuesNothing)
                case .didFail(let news):
                    try? await news.answer(.didFail(.init()))
                }
            }
        }
    }

    private static let continuesNothing = HandoffError(.notHandled, "`baton offer` continues no activities")

    /// Answers with the user info that its file has now.
    private func save(_ question: NodeQuestion<WireWillSaveRequest>) async throws {
        try await reporter.willSave(question.request.device)
        do {
            let userInfo = try draft.userInfo.read()
            // A failure means that the node no longer waits.
            let answer = WireWillSaveResponse.with {
                $0.userInfo = userInfo.message
                $0.webPageURL = draft.webPageURL
            }
            try? await question.answer(.willSave(answer))
        } catch {
            await question.fail(HandoffError(.documentUnreadable, error.message))
        }
    }
}
