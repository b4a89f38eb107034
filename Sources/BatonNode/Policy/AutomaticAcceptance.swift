// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import Logging

import struct SystemPackage.FilePath

/// The driver of `Acceptance`: that value decides which documents are taken over by the user's rules and when, and this
/// class fetches them.
///
/// A document that a rule accepts takes the way of every handoff. An advertisement is only a device's own statement, so
/// later statements of the device are checked against the rule again.
///
/// The note that a document was taken is written while the document is fetched. After a crash within these milliseconds
/// the next start takes the document over once more.
@ControlLoop
final class AutomaticAcceptance {
    private struct Document: AnnouncedDocument {
        let peer: Peer
        let current: AdvertisedActivity
        let activity: ActivityID
        let device: String
        var isProved: Bool { peer.isProved }

        var summary: WireActivitySummary { WireActivitySummary(current, since: peer.currentSince) }
        var subject: AcceptPolicy.Subject {
            AcceptPolicy.Subject(peer, type: current.type, size: current.documentSize)
        }

        init?(_ peer: Peer) {
            guard let current = peer.current, current.flags.contains(.document), let activity = ActivityID(current.id)
            else { return nil }
            (self.peer, self.current, self.activity) = (peer, current, activity)
            device = peer.device.description
        }
    }

    private var core: Acceptance<Document>
    private var timer = DeadlineTimer()
    private let policy: PolicyKeeper
    private let takenPath: FilePath
    /// Documents to fetch.
    private let (turns, turn) = AsyncStream<Document>.makeStream()
    /// Lines of the file of taken activities, to be written.
    private let (lines, line) = AsyncStream<[String]>.makeStream(bufferingPolicy: .bufferingNewest(1))
    /// Each is logged once a minute at most, however often other devices announce.
    private var fullness = RateLimiter(capacity: 1, interval: .seconds(60))
    private var postponement = RateLimiter(capacity: 1, interval: .seconds(60))
    private let directory: PeerDirectory
    private let exchange: StateExchange
    private let handoffs: HandoffTable
    private let handoffSwitch: HandoffSwitchKeeper
    private let deadlines: HandoffDeadlines
    private let logger: Logger
    private let openDestination: @Sendable (FilePath) async throws -> DestinationFolder
    private let makeHandoff: @Sendable (Handoff.Plan) -> Handoff

    /// - Parameters:
    ///   - takenPath: the file of taken activities, with a line of device and activity for each.
    ///   - bound: see ``NodeLimits/acceptedWaiting``.
    ///   - openDestination: opens the folder of a rule.
    nonisolated init(
        policy: PolicyKeeper, takenPath: FilePath, directory: PeerDirectory, exchange: StateExchange,
        handoffs: HandoffTable, handoffSwitch: HandoffSwitchKeeper, deadlines: HandoffDeadlines, bound: Int,
        logger: Logger, openDestination: @escaping @Sendable (FilePath) async throws -> DestinationFolder,
        makeHandoff: @escaping @Sendable (Handoff.Plan) -> Handoff
    ) {
        self.policy = policy
        self.takenPath = takenPath
        self.directory = directory
        self.exchange = exchange
        self.handoffs = handoffs
        self.handoffSwitch = handoffSwitch
        self.deadlines = deadlines
        self.logger = logger
        self.openDestination = openDestination
        self.makeHandoff = makeHandoff
        core = Acceptance(bound: bound, rest: deadlines.rest)
    }

    /// Follows what other devices offer until ``stop()``, and until what was begun with has ended.
    func run() async {
        guard let changes = try? directory.watch() else { return }
        // A mistake in the file is reported at the start, not when the first document comes.
        _ = await policy.current()
        let taken = await Self.read(takenPath)
        decide { $0.remember(taken) }
        await withDiscardingTaskGroup { group in
            group.addTask { @ControlLoop @Sendable in
                for await _ in changes { await self.look() }
            }
            group.addTask { @ControlLoop @Sendable in
                for await lines in self.lines { await self.write(lines) }
            }
            await withDiscardingTaskGroup { group in
                for await document in turns {
                    group.addTask { @ControlLoop @Sendable in await self.fetch(document) }
                }
            }
            line.finish()
            group.cancelAll()
        }
    }

    /// Begins with nothing new. The next start looks at it.
    func stop() {
        decide { $0.stop() }
        turn.finish()
    }

    private func look() async {
        let new = decide { $0.look(at: directory.present.compactMap { Document($0) }) }
        guard !new.isEmpty else { return }
        let policy = await policy.current()
        decide { $0.accept(new.filter { policy.acceptance(of: $0.subject) != nil }) }
    }

    /// Tells the core of an event, or asks it something, and carries out what it orders.
    @discardableResult
    private func decide<Value>(_ event: (inout Acceptance<Document>) -> Value) -> Value {
        core.isOn = handoffSwitch.current.isOn
        core.advance(to: .now)
        let value = event(&core)
        for effect in core.takeEffects() { carryOut(effect) }
        timer.schedule(at: core.nextDeadline) { [weak self] in self?.decide { _ in } }
        return value
    }

    private func carryOut(_ effect: Acceptance<Document>.Effect) {
        switch effect {
        case .fetch(let document): turn.yield(document)
        case .meet(let document): exchange.inform(document.device)
        case .keep(let lines): line.yield(lines)
        case .leaveToUser(let document):
            guard fullness.take(at: .now) else { break }
            logger.warning(
                """
                accept policy: “\(document.current.title)” from \(document.peer.name) is left to you: too many wait \
                already
                """)
        }
    }

    // MARK: Taken activities

    private func write(_ lines: [String]) async {
        do {
            try await Self.write(lines, to: takenPath)
        } catch {
            logger.warning(
                "what the accept policy has taken over may be taken over again after the next start: \(error)")
        }
    }

    @StorageThread
    private static func write(_ lines: [String], to path: FilePath) throws {
        try DurableFile.replace(path, with: Array(lines.map { $0 + "\n" }.joined().utf8))
    }

    @StorageThread
    private static func read(_ path: FilePath) -> [String] {
        let content = (try? DurableFile.read(path, limit: 128 * AcceptanceBounds.taken)) ?? []
        return String(decoding: content, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    // MARK: Fetching

    private func fetch(_ document: Document) async {
        // The user may have changed the rules while the document waited for its turn.
        let policy = await policy.current()
        guard let (rule, place) = policy.acceptance(of: document.subject) else {
            decide { $0.end(document.device, .done) }
            return
        }
        let what = "accept policy, line \(rule.line): “\(document.current.title)” from \(document.peer.name)"
        let (end, error) = await fetch(document, by: rule, of: policy, into: place, what)
        decide { $0.end(document.device, end) }
        switch (end, error) {
        case (.begunBefore, _): logger.notice("\(what) was begun with before, and is not taken over again")
        case (.postponed, let error?):
            if postponement.take(at: .now) { logger.notice("\(what) waits: \(error)") }
        case (_, let error?): logger.warning("\(what) was not taken over: \(error)")
        case (_, nil): break
        }
    }

    /// - Returns: the end of the document's turn, and why, unless that is logged already.
    private func fetch(
        _ document: Document, by rule: AcceptPolicy.Rule, of policy: AcceptPolicy, into place: FilePath, _ what: String
    ) async -> (Acceptance<Document>.End, HandoffError?) {
        let handoff: Handoff
        do {
            handoff = makeHandoff(
                Handoff.Plan(
                    activity: document.summary, origin: document.peer.peerName,
                    candidates: policy.candidates(for: document.subject), destination: try await open(place),
                    rule: rule, naming: DocumentNaming(label: nil, renames: rule.renames)))
        } catch {
            return (error.code == .timedOut ? .postponed : .failed, error)
        }
        do {
            try handoffSwitch.current.requireOn()
            try handoffs.insert(handoff)
        } catch {
            guard error.code == .destinationExists else { return (.postponed, error) }
            logger.notice("\(what) is left to the user, who is receiving it there")
            return (.done, nil)
        }
        defer { handoffs.remove(handoff) }
        if let end = decide({ $0.start(document.device) }) { return (end, nil) }
        logger.notice("\(what) is taken over into \(place)")
        handoffs.begin(handoff)
        return (await follow(handoff, what) ? .done : .failed, nil)
    }

    /// Opens the folder of a rule. Waits no longer than ``HandoffDeadlines/opening``. If the folder hangs, each try
    /// leaves a thread behind, until ``AbandonedOperations/bound`` of this folder wait.
    private func open(_ place: FilePath) async throws(HandoffError) -> DestinationFolder {
        let what = "the folder '\(NameDisplay.escaped(place.bytes))' did not open"
        return try await withDeadline(deadlines.opening, what, target: place.string) { [openDestination] in
            try await openDestination(place)
        }
    }

    /// - Returns: whether the handoff came to a good end.
    private func follow(_ handoff: Handoff, _ what: String) async -> Bool {
        var isWell = false
        for await event in handoff.events {
            switch event.kind {
            case .continued(let continued):
                isWell = true
                logger.notice(
                    "\(what) is here: \(NameDisplay.escaped(continued.path)), \(HumanUnits.bytes(continued.bytes))")
            case .failed(let failure):
                logger.warning("\(what) was not taken over: \(failure.message)")
            case .interrupted(let interruption):
                logger.notice("\(what) stopped coming, and goes on by itself: \(interruption.cause.message)")
            case .willContinue, .payload, .progress, .choose, nil: break
            }
        }
        return isWell
    }
}
