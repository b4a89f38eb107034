// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonMessages

/// The handoffs of this device: those under way, and those whose activity an application holds on to.
@ControlLoop
final class HandoffTable {
    /// Handoffs under way at once; one more is refused.
    nonisolated static let bound = 32
    /// Activities that one application holds on to. Beyond it, its oldest is let go: no application continues so many,
    /// and an origin serves no more to one device (`ClaimBounds.ofOneDevice`).
    nonisolated static let boundHeldByOne = 32
    /// Activities that all applications hold on to; beyond it, the oldest of all is let go.
    nonisolated static let boundHeld = 128
    /// How long a stopping node waits for handoffs that it has cancelled. A disk that hangs holds it up no longer.
    private static let cancelGrace = Duration.seconds(5)

    private struct Entry {
        let handoff: Handoff
        var task: Task<Void, Never>?
        /// When an application began to hold on to it, and which; `nil` while it is under way.
        var held: (number: UInt64, application: String)?
        /// Whoever asked has gone, and it goes on without them.
        var isDetached = false
    }

    private var entries: [HandoffID: Entry] = [:]
    private var lastNumber: UInt64 = 0
    private var isStopped = false
    /// Says that a handoff has its task, or has been removed.
    private let (beginnings, beginning) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

    nonisolated init() {}

    subscript(id: HandoffID) -> Handoff? { entries[id]?.handoff }

    /// - Throws: `destinationExists` where the same activity is being received into the same folder: two would each
    ///   fetch all of it, and only one could have the name. `limitExceeded`; `nodeStopping` once it was stopped.
    func insert(_ handoff: Handoff) throws(HandoffError) {
        if let folder = handoff.plan.destination, isReceiving(handoff.plan, into: folder) {
            throw HandoffError(
                .destinationExists,
                "“\(handoff.plan.activity.title)” is being received into this folder already: wait for that,"
                    + " or cancel it", advises: true)
        }
        guard !isStopped else { throw HandoffError(.nodeStopping, "the node of this device is being stopped") }
        guard entries.values.count(where: { $0.held == nil }) < Self.bound else {
            throw HandoffError(.limitExceeded, "\(Self.bound) activities are being accepted already: try again later")
        }
        entries[handoff.id] = Entry(handoff: handoff)
    }

    /// Notes what is to be ended with a handoff: at once, where the table was stopped meanwhile.
    func setTask(_ task: Task<Void, Never>, of handoff: Handoff) async {
        entries[handoff.id]?.task = task
        beginning.yield()
        guard isStopped else { return }
        await handoff.nodeIsStopping()
        task.cancel()
    }

    /// Whoever asked has gone, and it goes on without them.
    func setDetached(_ handoff: Handoff) {
        entries[handoff.id]?.isDetached = true
    }

    /// Whether something goes on for somebody who has gone, from an origin into a folder.
    func hasDetached(from origin: String, into folder: DestinationFolder?) -> Bool {
        !detached(from: origin, into: folder).isEmpty
    }

    /// Ends what goes on for somebody who has gone, and fetches what is asked for now, into the same folder: two would
    /// each fetch all of it, and only one could have the name. Returns when that is over; what has come is gone on
    /// with.
    ///
    /// - Returns: what was continued, where all was in place before it could be ended.
    func endDetached(like plan: Handoff.Plan) async -> WireAcceptEvent.Continued? {
        for entry in detached(from: plan.origin.id, into: plan.destination) {
            guard entry.handoff.isOf(plan.activity), entry.handoff.continued == nil else { continue }
            entry.task?.cancel()
            await entry.task?.value
            // What was offered anew may be another version than the one that is in place now.
            guard let continued = entry.handoff.continued, entry.handoff.activityID == plan.activity.id
            else { continue }
            return continued
        }
        return nil
    }

    /// A handoff that has told its end writes nothing more. It stays in the table until its origin has released the
    /// claim, and the user may accept again before that.
    private func isReceiving(_ plan: Handoff.Plan, into folder: DestinationFolder) -> Bool {
        entries.values.contains {
            let other = $0.handoff.plan
            return !$0.isDetached && $0.held == nil && !$0.handoff.events.transfer.isOver
                && other.origin.id == plan.origin.id && other.activity.id == plan.activity.id
                && other.destination?.isSame(as: folder) == true
        }
    }

    private func detached(from origin: String, into folder: DestinationFolder?) -> [Entry] {
        guard let folder else { return [] }
        return entries.values.filter {
            $0.isDetached && $0.held == nil && $0.handoff.plan.origin.id == origin
                && $0.handoff.plan.destination?.isSame(as: folder) == true
        }
    }

    /// The documents that are being received.
    var transfers: [WireTransfer] {
        entries.values.filter { $0.task != nil && $0.held == nil && $0.handoff.isReceiving }.map { $0.handoff.transfer }
    }

    /// Cancels a transfer for the user of this device.
    ///
    /// - Returns: the transfer as it was left; nil where it is over already.
    func cancelTransfer(_ id: HandoffID) async -> WireTransfer? {
        guard let entry = entries[id], let task = entry.task, entry.handoff.isReceiving else { return nil }
        await entry.handoff.cancel(task)
        return entry.handoff.transfer
    }

    /// The activity has been handed over, and its application holds on to it.
    func hold(_ handoff: Handoff, by application: String) async {
        lastNumber += 1
        entries[handoff.id]?.held = (lastNumber, application)
        let held = entries.values.filter { $0.held != nil }
        let ofOne = held.filter { $0.held?.application == application }
        let excess = ofOne.count > Self.boundHeldByOne ? ofOne : held.count > Self.boundHeld ? held : []
        let oldest = excess.min { ($0.held?.number ?? 0) < ($1.held?.number ?? 0) }
        await oldest?.handoff.releaseApplication()
    }

    func remove(_ handoff: Handoff) {
        entries[handoff.id] = nil
        beginning.yield()
    }

    /// Lets what is being written be finished for a while, and cancels the rest; what is about to begin is waited for
    /// as well, which ends with that reason. Nothing is begun any more. Called once.
    func stop(grace: Duration) async {
        isStopped = true
        guard !entries.isEmpty else { return }
        for entry in entries.values { await entry.handoff.nodeIsStopping() }
        _ = try? await withDeadline(grace, "the handoffs were not over") {
            await self.awaitBeginnings()
            for task in await self.tasks { await task.value }
        }
        let cancelled = tasks
        for task in cancelled { task.cancel() }
        _ = try? await withDeadline(Self.cancelGrace, "the handoffs that were cancelled were not over") {
            for task in cancelled { await task.value }
        }
    }

    private var tasks: [Task<Void, Never>] { entries.values.compactMap(\.task) }

    /// Returns when each handoff has its task or has been removed, or the wait is cancelled: between its place and its
    /// task lies an answer to whoever asked.
    private func awaitBeginnings() async {
        beginning.yield()
        for await _ in beginnings where entries.values.allSatisfy({ $0.task != nil }) { return }
    }
}
