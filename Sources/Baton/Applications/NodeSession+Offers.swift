// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import FoundationEssentials
import Logging
import SwiftProtobuf

struct NodeOffering {
    /// An activity that the node does not offer, because the node refused it or somebody withdrew it. It is offered
    /// again after a change, or when it becomes current again.
    struct Refusal {
        let generation: UInt64
        let message: WireOfferRequest?

        func covers(_ generation: UInt64, _ message: WireOfferRequest) -> Bool {
            self.generation == generation && (self.message == nil || self.message == message)
        }
    }

    let id: ActivityIdentifier
    var generation: UInt64
    var message: WireOfferRequest
    let node: NodeOffer
    /// Why the node refused an update, which ends the offer.
    var refusal: HandoffError?
    /// Whether the node has released the activity. Events of takeovers may still come. It tells the offer from others
    /// of the same activity.
    let gone: FirstResult<Void>
}

/// The state that the node gets: that the application runs, and its current activity.
extension NodeSession {
    func register(with client: NodeClient) async throws(HandoffError) {
        let message = registerMessage
        if let registration {
            guard registration.message != message else { return }
            self.registration?.message = message
            try await registration.stream.send(record: message)
        } else if !isUnregistered {
            do {
                registration = (try await client.register(message), message)
            } catch {
                guard error.code != .connectionLost else { throw error }
                isUnregistered = true
                let reason = "the node does not register \(description.name): \(error)"
                if error.code == .limitExceeded {
                    // Others may have gone when the next connection asks.
                    noRoom = reason
                    return await client.close()
                }
                logger.warning("\(reason)")
            }
            noteConnected()
        }
    }

    private var registerMessage: WireRegisterRequest {
        var message = WireRegisterRequest()
        message.identifier = description.identifier
        message.name = description.name
        message.team = description.team
        message.types = description.continues.map { continued in
            .with {
                $0.type = continued.type
                $0.oldestVersion = continued.versions?.lowerBound ?? 0
                $0.newestVersion = continued.versions?.upperBound ?? 0
            }
        }
        message.inFront = roster.isInFront
        return message
    }

    /// Makes the node offer the current activity in its current state.
    func updateOffer(to client: NodeClient) async throws(HandoffError) {
        // Changes of one activity that are close together go out as one.
        if let known = offered?.generation ?? barred?.generation, known == roster.current?.generation {
            try? await Task.sleep(for: deadlines.coalescing)
        }
        let current = roster.current
        let message = current?.activity.offer()
        guard let (activity, generation) = current, let message else { return await withdraw() }
        if let offered, offered.id != activity.id { await withdraw() }
        guard barred?.covers(generation, message) != true else { return }
        barred = nil
        guard let offered else { return try await offer(activity, generation, message, to: client) }
        guard offered.message != message || offered.generation != generation else { return }
        self.offered?.message = message
        self.offered?.generation = generation
        try await offered.node.update(message, becomesCurrent: offered.generation != generation)
    }

    private func offer(
        _ activity: UserActivity, _ generation: UInt64, _ message: WireOfferRequest, to client: NodeClient
    ) async throws(HandoffError) {
        // Until the node has let it go, which is looked at again then: others do not wait for that.
        guard leaving[activity.id] == nil else { return }
        let refusal = refusal
        self.refusal = nil
        let node: NodeOffer
        do {
            node = try await client.offer(message)
        } catch {
            // The next node is told anew.
            guard error.code != .connectionLost, error.code != .nodeStopping else { throw error }
            barred = NodeOffering.Refusal(generation: generation, message: message)
            // The delegate was told so of the update.
            guard error != refusal else { return }
            logger.warning("\(activity.activityType) is not offered: \(error)")
            activity.tellFailure(UserActivityError(error))
            return
        }
        let gone = FirstResult<Void>()
        Task { [weak activity, weak self] in
            do {
                for try await event in node.events {
                    await self?.note(event, of: gone)
                    if case .withdrawn = event.kind {
                        gone.decide(())
                        await self?.offerEnded(gone)
                    } else {
                        await activity?.turns.room()
                        activity?.receive(event)
                    }
                }
            } catch {
                // Reset, or the connection broke: either way the offer has ended.
            }
            gone.decide(())
            await self?.offerEnded(gone)
        }
        offered = NodeOffering(
            id: activity.id, generation: generation, message: message, node: node, gone: gone)
    }

    private func withdraw() async {
        guard let offered else { return }
        self.offered = nil
        leaving[offered.id] = offered
        Task { [deadlines, weak self] in
            // After the deadline the node answers a new offer itself, though the application may still be saving.
            await offered.gone.value(within: deadlines.letGo, else: ())
            await self?.hasLeft(offered.gone)
        }
        await offered.node.withdraw()
    }

    /// The node released a withdrawn activity, which may be offered again.
    private func hasLeft(_ gone: FirstResult<Void>) {
        guard let (id, _) = leaving.first(where: { $0.value.gone === gone }) else { return }
        leaving[id] = nil
        roster.raise()
    }

    /// The node no longer offers an activity.
    ///
    /// If that was not the application's wish, as after `baton withdraw`, the activity stays withdrawn until it becomes
    /// current again. An expired activity is offered again once it has more time. If the node refused an update, the
    /// current state is offered instead, which may differ from the refused one.
    private func offerEnded(_ gone: FirstResult<Void>) async {
        hasLeft(gone)
        guard let offered, offered.gone === gone else { return }
        self.offered = nil
        refusal = offered.refusal
        let expires = offered.message.expires
        let hasExpired = expires > 0 && expires <= Date().timeIntervalSince1970
        barred =
            refusal == nil && !hasExpired
            ? NodeOffering.Refusal(generation: offered.generation, message: nil) : nil
        // The stream stays open for its events, so this side of it must be ended here.
        await offered.node.withdraw()
        roster.raise()
    }

    /// Records that the node refused an update, before the application can change anything because of it. A failure
    /// that names no device is such a refusal, unless the node is stopping.
    private func note(_ event: WireOfferEvent, of gone: FirstResult<Void>) {
        guard offered?.gone === gone, case .failed(let failure)? = event.kind else { return }
        guard failure.device.isEmpty, failure.code != .nodeStopping else { return }
        offered?.refusal = HandoffError(failure)
    }
}
