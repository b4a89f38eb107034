// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// The driver of `Handoffs`: that value decides about the handoffs of this device, and this class has each ``Handoff``
/// carry out its steps.
///
/// No `await` stands between reading the core's state and changing it, because everything goes through ``decide(_:)``.
@ControlLoop
final class HandoffTable {
    typealias Core = Handoffs<NodeWorld>

    /// Handoffs under way at once; see `Handoffs`.
    nonisolated static var bound: Int { Core.bound }
    /// How long a stopping node waits for handoffs that it has cancelled. A disk that hangs takes no longer.
    private static let stopGrace = Duration.seconds(5)
    /// How long a cancelled handoff is waited for: for its last step, and for what its application and origin are told.
    private static let endGrace = Duration.seconds(30)

    /// Continuation streams to other devices at once: 96 of all applications, and 32 of each. A device allows 128
    /// streams on a connection, and a quarter is left to what the nodes have to say to each other. An activity serves
    /// 32 streams (``Baton/UserActivity/continuationStreams()``).
    ///
    /// A stream keeps its place until the other device counts it no longer. So an application that aborts streams
    /// faster than their RESETs may leave (``BatonProtocol/Limits/sentResets``) finds no place for new ones, and slows
    /// nobody but itself.
    nonisolated static let (streamBound, streamBoundOfApplication) = (96, 32)

    private struct Entry {
        let handoff: Handoff
        /// Rises with each step.
        var number = 0
        /// The step under way.
        var step: Task<Void, Never>?
    }

    private var core = Core()
    private var streams = Places<UInt64, ObjectIdentifier>(bound: streamBound, boundPerHost: streamBoundOfApplication)
    private var lastStream: UInt64 = 0
    private var entries: [HandoffID: Entry] = [:]
    private var timer = DeadlineTimer()
    /// Requests that wait for the end of a handoff. One more does not wait.
    private let ends = WaitList<HandoffID>(bound: 256, boundPerKey: 32)

    nonisolated init() {}

    private func decide<Value: Sendable>(_ event: (inout Core) -> Value) -> Value {
        core.advance(to: .now)
        let value = event(&core)
        for effect in core.takeEffects() { carryOut(effect) }
        timer.schedule(at: core.nextDeadline) { [weak self] in self?.decide { _ in } }
        return value
    }

    private func carryOut(_ effect: Core.Effect) {
        switch effect {
        case .perform(let id, let step): perform(step, of: id)
        case .interrupt(let id): entries[id]?.step?.cancel()
        case .paused(let id, let failure, let waits, let bytes):
            entries[id]?.handoff.tellInterruption(failure, waiting: waits, keeping: bytes)
        case .continued(let id): entries[id]?.handoff.tellContinued()
        case .ended(let id):
            entries.removeValue(forKey: id)?.handoff.endEvents()
            ends.wake(id)
        }
    }

    private func perform(_ step: Core.Step, of id: HandoffID) {
        guard var entry = entries[id] else { return }
        entry.step?.cancel()
        entry.number += 1
        entry.step = ControlLoop.task { [handoff = entry.handoff, number = entry.number] in
            let outcome = await handoff.perform(step)
            // The outcome of a step that was replaced counts no more.
            guard self.entries[id]?.number == number else { return }
            self.decide { $0.performed(id, outcome) }
        }
        entries[id] = entry
    }

    // MARK: Life

    subscript(id: HandoffID) -> Handoff? { entries[id]?.handoff }

    /// Takes a handoff on, which ``begin(_:)`` starts.
    ///
    /// - Throws: `destinationExists` if the same activity is being received into the same folder; `limitExceeded`;
    ///   `nodeStopping`.
    func insert(_ handoff: Handoff) throws(HandoffError) {
        let plan = handoff.plan
        let ask = HandoffAsk(
            origin: plan.origin, activity: ActivityID(plan.activity.id), title: plan.activity.title,
            folder: plan.destination?.resolvedPath.bytes, keepsClaim: plan.keepsClaim)
        if let failure = decide({ $0.accept(ask, as: handoff.id) }) { throw failure }
        entries[handoff.id] = Entry(handoff: handoff)
    }

    /// Starts a handoff. Its events end when it is over or held.
    func begin(_ handoff: Handoff) { decide { $0.begin(handoff.id) } }

    /// Forgets a handoff that has not begun.
    func remove(_ handoff: Handoff) { decide { $0.forget(handoff.id) } }

    /// Goes on with a handoff although whoever asked has gone.
    func setDetached(_ handoff: Handoff) { decide { $0.detach(handoff.id) } }

    /// Ends a handoff early.
    ///
    /// - Parameter reason: what the user is told.
    func cancel(_ handoff: Handoff, because reason: String = "the handoff was cancelled") {
        decide { $0.cancel(handoff.id, because: HandoffError(.cancelled, reason)) }
    }

    /// Whether something goes on for somebody who has gone, from an origin into a folder.
    func hasDetached(from origin: String, into folder: DestinationFolder?) -> Bool {
        !core.detached(from: origin, into: folder?.resolvedPath.bytes).isEmpty
    }

    /// Ends what goes on for somebody who has gone, if the same is asked for now, into the same folder. Returns when
    /// that is over. The next handoff goes on with what has come.
    ///
    /// - Returns: what was continued, if all was in place before it could be ended.
    func endDetached(like plan: Handoff.Plan) async -> WireAcceptEvent.Continued? {
        for id in core.detached(from: plan.origin.id, into: plan.destination?.resolvedPath.bytes) {
            guard let handoff = self[id], handoff.isOf(plan.activity) else { continue }
            cancel(handoff)
            await untilEnded(id, by: .now + Self.endGrace)
            // An activity that was offered anew may be another version than the one in place.
            guard let continued = handoff.continued, handoff.activityID == plan.activity.id else { continue }
            return continued
        }
        return nil
    }

    private func untilEnded(_ id: HandoffID, by end: Instant) async {
        let now = Instant.now
        if entries[id] != nil, now < end { await ends.wait(for: id, atMost: end - now) }
    }

    /// Lets what is being written be finished for a while, and cancels the rest. Nothing is begun any more.
    func stop(grace: Duration) async {
        let failure = HandoffError(.nodeStopping, "the node of this device was stopped before all was there")
        decide { $0.stop(because: failure) }
        await untilAllEnded(by: .now + grace)
        decide { $0.cancelAll(because: failure) }
        await untilAllEnded(by: .now + Self.stopGrace)
    }

    private func untilAllEnded(by end: Instant) async {
        for id in entries.keys { await untilEnded(id, by: end) }
    }

    // MARK: Continuation streams

    /// Takes a place for a continuation stream, until ``leaveStream(_:)``.
    ///
    /// - Throws: ``HandoffError`` `limitExceeded`.
    func enterStream(of application: Connection) throws(HandoffError) -> UInt64 {
        lastStream += 1
        guard streams.enter(lastStream, of: [ObjectIdentifier(application)]) else {
            throw HandoffError(
                .limitExceeded,
                "\(Self.streamBoundOfApplication) continuation streams of this application, or \(Self.streamBound) of"
                    + " all, are open, or not wholly closed yet: try again in a moment")
        }
        return lastStream
    }

    /// Gives the place of a stream back that has left its connection.
    func leaveStream(_ number: UInt64) { streams.leave(number) }

    // MARK: Transfers

    /// The documents that are being received.
    var transfers: [WireTransfer] {
        entries.values.filter { $0.step != nil && $0.handoff.isReceiving }.map { transfer(of: $0.handoff) }
    }

    private func transfer(of handoff: Handoff) -> WireTransfer {
        let plan = handoff.plan
        return .with {
            $0.id = Data(handoff.id.bytes)
            $0.direction = .receiving
            $0.state = core.isWaiting(handoff.id) ? .waiting : handoff.progress.transfer == nil ? .starting : .running
            $0.title = plan.activity.title
            $0.device = plan.origin.name
            $0.deviceID = plan.origin.id
            $0.activityID = plan.activity.id
            $0.total = plan.activity.documentSize
            if let folder = plan.destination?.path { $0.folder = Data(folder.bytes) }
            if let progress = handoff.progress.transfer { $0.set(progress, now: .now) }
        }
    }

    /// Cancels a transfer for the user of this device.
    ///
    /// - Returns: the transfer as it was left; nil if it is over already.
    func cancelTransfer(_ id: HandoffID) async -> WireTransfer? {
        guard let entry = entries[id], entry.step != nil, entry.handoff.isReceiving else { return nil }
        cancel(entry.handoff, because: "the transfer was cancelled by `baton transfers cancel` on this device")
        await untilEnded(id, by: .now + Self.endGrace)
        return transfer(of: entry.handoff)
    }
}

extension Handoff {
    /// Whether a document is on its way, or may be soon.
    fileprivate var isReceiving: Bool {
        plan.destination != nil && !isOver && (plan.activity.kind == .document || progress.transfer != nil)
    }
}
