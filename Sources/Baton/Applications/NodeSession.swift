// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonTransport
import Logging

/// One application's connection to its node. It lasts as long as the application runs, and is made again when it is
/// lost.
///
/// The ``ActivityRoster`` holds the state that the node should have. After each change the session compares and sends
/// the difference, so that a burst of changes is one message, and a new connection needs nothing but a first
/// comparison. It retains neither the application nor an activity.
actor NodeSession {
    let description: Application.Description
    let roster: ActivityRoster
    let states: Watchers<NodeState>
    let logger: Logger
    let deadlines: ApplicationDeadlines
    private let home: Home
    private let loop = EventLoop(name: "application")

    var client: NodeClient?
    var registration: (stream: BatonTransport.Stream, message: WireRegisterRequest)?
    /// The node does not register the application; it may take its offers all the same.
    var isUnregistered = false
    /// Why the node did not register the application, if it has no room for one more: the connection ends then.
    var noRoom: String?
    var offered: NodeOffering?
    /// The state that is not offered again unchanged.
    var barred: NodeOffering.Refusal?
    /// The error of the update that ended the last offer, if the delegate has heard of it.
    var refusal: HandoffError?
    /// Withdrawn activities that the node has not released yet; they are not offered again before. At most as many as
    /// the application has activities.
    var leaving: [ActivityIdentifier: NodeOffering] = [:]
    var handoffs = HandoffLog()
    private var hasSaidMissing = false

    init(
        _ description: Application.Description, home: Home, roster: ActivityRoster, states: Watchers<NodeState>,
        logger: Logger, deadlines: ApplicationDeadlines
    ) {
        self.description = description
        self.home = home
        self.roster = roster
        self.states = states
        self.logger = logger
        self.deadlines = deadlines
    }

    func run() async {
        var wait = deadlines.shortestRetry
        while !Task.isCancelled {
            do throws(NodeClientError) {
                let client = try await NodeClient.connect(to: home, on: loop)
                let end = await withTaskCancellationHandler {
                    await serve(client)
                } onCancel: {
                    Task { await client.close() }
                }
                if case .connected? = states.latest { wait = deadlines.shortestRetry }
                await client.close()
                if !Task.isCancelled { noteMissing(end) }
            } catch {
                if !Task.isCancelled { noteMissing("\(error)") }
            }
            guard !Task.isCancelled else { break }
            try? await Task.sleep(for: wait)
            wait = min(wait * 2, deadlines.longestRetry)
        }
        states.tell(.idle, isLatest: true)
    }

    func access(_ path: [UInt8]) async throws(HandoffError) {
        guard let client else {
            throw HandoffError(.connectionLost, "there is no node to ask whether the file may be used")
        }
        try await client.access(path: path)
    }

    /// Sends the node the application's state and answers its requests, until the connection ends.
    ///
    /// - Returns: why it has ended.
    private func serve(_ client: NodeClient) async -> String {
        self.client = client
        let (changes, change) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        roster.tell(change)
        let end = await withDiscardingTaskGroup { group in
            group.addTask { await self.tellChanges(changes, to: client) }
            group.addTask {
                for await request in client.requests { await self.take(request, over: client) }
            }
            let end = await client.ended()
            group.cancelAll()
            return end
        }
        roster.tell(nil)
        let reason = noRoom ?? "the node was lost: \(end)"
        forgetConnection()
        return reason
    }

    private func tellChanges(_ changes: AsyncStream<Void>, to client: NodeClient) async {
        for await _ in changes {
            do throws(HandoffError) {
                try await register(with: client)
                try await updateOffer(to: client)
            } catch {
                // A connection that broke has an end, which `serve` waits for.
                guard error.code != .connectionLost, error.code != .nodeStopping, error.code != .cancelled else {
                    continue
                }
                logger.warning("the node does not know what \(description.name) is at: \(error)")
            }
        }
    }

    private func forgetConnection() {
        tellLost()
        client = nil
        registration = nil
        isUnregistered = false
        noRoom = nil
        offered = nil
        barred = nil
        refusal = nil
        leaving = [:]
    }

    func noteConnected() {
        states.tell(.connected, isLatest: true)
        guard hasSaidMissing else { return }
        hasSaidMissing = false
        logger.info("\(description.name) has found its node")
    }

    private func noteMissing(_ reason: String) {
        states.tell(.missing(reason: reason), isLatest: true)
        guard !hasSaidMissing else { return }
        hasSaidMissing = true
        logger.notice("\(reason); until one is there, \(description.name) neither offers nor continues activities")
    }
}
