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

/// Takes over, without being asked, the documents that a rule of the user's policy accepts.
///
/// A document is looked at once, when it becomes another device's current activity; what a rule accepts goes the road
/// of every handoff. A device that no connection has shown is met first: whoever has the account's keys can announce
/// others that do not exist. What is said before it is fetched is held against the rule again, because an advertisement
/// is only what a device says of itself.
@ControlLoop
final class AutomaticAcceptance {
    /// Documents that are fetched at once.
    nonisolated static let concurrency = 2
    /// How often it is tried to open the folder of a rule for a document, where it does not open in time.
    static let openingAttempts = 3

    /// What became of a document that a rule accepts.
    private enum Outcome {
        /// It is here, or no rule's any more.
        case done
        case failed
        /// There was no place for it, or its folder did not open in time: it has its turn again.
        case waits(Candidate)
        /// Handoff is off: it has its turn again once that is on.
        case left(Candidate)

        /// Whether its device has no turn for a while.
        var rests: Bool {
            switch self {
            case .done, .left: false
            case .failed, .waits: true
            }
        }
    }

    private struct Candidate: Sendable {
        let peer: Peer
        let summary: WireActivitySummary
        let subject: AcceptPolicy.Subject
        /// How often its folder did not open in time.
        var failedOpenings = 0
    }

    private let policy: PolicyKeeper
    private let taken: TakenActivities
    private let directory: PeerDirectory
    private let connections: PeerConnections
    private let exchange: StateExchange
    private let documents: DocumentService
    private let handoffs: HandoffTable
    private let applications: Applications
    private let handoffSwitch: HandoffSwitchKeeper
    private let files: SharedFiles
    private let deadlines: HandoffDeadlines
    private let openDestination: @Sendable (FilePath) async throws -> DestinationFolder
    private let logger: Logger
    private var seen = SeenActivities()
    /// The same of devices that no connection has shown.
    private var announced = SeenActivities()
    private var queue: AcceptanceQueue<Candidate>
    /// What had its turn while Handoff was off, the oldest first: no more than wait in the queue. Its devices may have
    /// gone on to other documents, so that it is not looked at again by itself, or have gone, and are waited for.
    private var left: [Candidate] = []
    /// The node stops: what has not been begun is looked at again after its next start, which knows nothing of it.
    private var isOver = false
    private var fullness = RepeatedWarning()
    private var lackOfPlace = RepeatedWarning()
    /// Folders of rules that are being opened: each by one thread at the most, however long that is blocked.
    private var opening: [FilePath: Task<DestinationFolder, any Error>] = [:]

    /// - Parameters:
    ///   - bound: see ``NodeLimits/acceptedWaiting``.
    ///   - openDestination: opens the folder of a rule, where a test does it otherwise.
    nonisolated init(
        policy: PolicyKeeper, taken: TakenActivities, directory: PeerDirectory, connections: PeerConnections,
        exchange: StateExchange, documents: DocumentService, handoffs: HandoffTable, applications: Applications,
        handoffSwitch: HandoffSwitchKeeper, files: SharedFiles, deadlines: HandoffDeadlines, bound: Int,
        logger: Logger,
        openDestination: (@Sendable (FilePath) async throws -> DestinationFolder)? = nil
    ) {
        self.policy = policy
        self.taken = taken
        self.directory = directory
        self.connections = connections
        self.exchange = exchange
        self.documents = documents
        self.handoffs = handoffs
        self.applications = applications
        self.handoffSwitch = handoffSwitch
        self.files = files
        self.deadlines = deadlines
        queue = AcceptanceQueue(concurrency: Self.concurrency, bound: bound)
        self.logger = logger
        self.openDestination = openDestination ?? { try await documents.openDestination($0) }
    }

    /// Follows what other devices offer until the task is cancelled; then nothing new is begun.
    func run() async {
        guard let changes = try? directory.watch() else { return }
        // A file that is wrong is said at the start, not when the first document comes.
        _ = await policy.current()
        for await _ in changes {
            guard handoffSwitch.current.isOn else { continue }
            let present = directory.present
            enterLeft(by: Set(present.map(\.device)))
            for peer in present where !Task.isCancelled { await consider(peer) }
        }
        isOver = true
        queue.removeAll()
    }

    private func consider(_ peer: Peer) async {
        guard let current = peer.current, current.flags.contains(.document),
            peer.isProved ? seen.insert(current.id, of: peer.device) : announced.insert(current.id, of: peer.device)
        else { return }
        let summary = WireActivitySummary(current, since: peer.currentSince)
        let subject = AcceptPolicy.Subject(peer, type: summary.type, size: summary.documentSize)
        guard await policy.current().acceptance(of: subject) != nil else { return }
        guard peer.isProved else {
            Task { await exchange.inform(peer.device.description) }
            return
        }
        enter(Candidate(peer: peer, summary: summary, subject: subject))
        startNext()
    }

    private func enter(_ candidate: Candidate) {
        guard !isOver, !queue.enter(candidate, of: candidate.peer.device) else { return }
        say(tooMany: candidate)
    }

    /// Keeps something for as long as Handoff is off.
    private func leave(_ candidate: Candidate) {
        left.append(candidate)
        if left.count > queue.bound { say(tooMany: left.removeFirst()) }
        // It may have been switched on since that was asked.
        if handoffSwitch.current.isOn { directory.changed() }
    }

    /// Handoff is on: what was left has its turn again, of devices that are there.
    private func enterLeft(by present: Set<DeviceID>) {
        let again = left.filter { present.contains($0.peer.device) }
        left.removeAll { present.contains($0.peer.device) }
        for candidate in again {
            enter(candidate)
            startNext()
        }
    }

    private func say(tooMany candidate: Candidate) {
        guard let unsaid = fullness.note(at: .now) else { return }
        logger.warning(
            """
            accept policy: “\(candidate.summary.title)” from \(candidate.peer.name) is left to you: too many wait \
            already
            """,
            metadata: unsaid > 0 ? ["leftSinceLastSaid": "\(unsaid)"] : nil)
    }

    private func startNext() {
        while let candidate = queue.begin() {
            Task {
                let device = candidate.peer.device
                let outcome = await take(candidate)
                queue.end(device, rests: outcome.rests)
                switch outcome {
                case .done, .failed: break
                case .waits(let candidate): enter(candidate)
                case .left(let candidate): leave(candidate)
                }
                startNext()
                guard outcome.rests else { return }
                try? await Alarm.sleep(for: deadlines.rest)
                queue.wake(device)
                startNext()
            }
        }
    }

    /// - Returns: whether Handoff is off by now, for as long as which the document is left.
    private func isLeft(_ what: String) -> Bool {
        guard !handoffSwitch.current.isOn else { return false }
        say(left: what)
        return true
    }

    private func say(left what: String) { logger.notice("\(what) is left until Handoff is on again") }

    /// What becomes of a document that is not begun with now: Handoff is off, or the node stops.
    private func postponement(of candidate: Candidate, _ what: String) -> Outcome? {
        if isLeft(what) { return .left(candidate) }
        return isOver ? .waits(candidate) : nil
    }

    private func take(_ candidate: Candidate) async -> Outcome {
        let (peer, summary) = (candidate.peer, candidate.summary)
        // The user may have changed the rules while it waited for its turn.
        let policy = await policy.current()
        guard let id = ActivityID(summary.id), let (rule, place) = policy.acceptance(of: candidate.subject) else {
            return .done
        }
        let what = "accept policy, line \(rule.line): “\(summary.title)” from \(peer.name)"
        guard !isLeft(what) else { return .left(candidate) }
        let handoff: Handoff
        do {
            handoff = Handoff(
                Handoff.Plan(
                    activity: summary, origin: peer.peerName, candidates: policy.candidates(for: candidate.subject),
                    destination: try await open(place), rule: rule,
                    naming: DocumentNaming(label: nil, renames: rule.renames)),
                connections: connections, documents: documents, applications: applications, files: files,
                deadlines: deadlines)
        } catch {
            return afterFailedOpening(candidate, what, error)
        }
        do {
            try handoffs.insert(handoff)
        } catch {
            if error.code == .destinationExists {
                logger.notice("\(what) is left to the user, who is receiving it there")
                return .done
            }
            say(waiting: what, error)
            return .waits(candidate)
        }
        let outcome: Outcome
        do {
            if let postponement = postponement(of: candidate, what) {
                outcome = postponement
            } else if try await !taken.insert(id, of: peer.device.description) {
                logger.notice("\(what) was begun with before, and is not taken over again")
                outcome = .done
            } else if let postponement = postponement(of: candidate, what) {
                // The node has stopped, or the user has switched it off, while that was written.
                try await taken.remove(id, of: peer.device.description)
                outcome = postponement
            } else {
                logger.notice("\(what) is taken over into \(place)")
                let task = handoff.start()
                await handoffs.setTask(task, of: handoff)
                let isWell = await follow(handoff, of: peer.device, what)
                // By the user of this device, and on again by now, perhaps: another one that says so is not asked
                // without end.
                let isLeft = handoff.wasSwitchedOff
                if isLeft { say(left: what) }
                await task.value
                if isLeft { try await taken.remove(id, of: peer.device.description) }
                outcome = isLeft ? .left(candidate) : isWell ? .done : .failed
            }
        } catch {
            logger.warning("\(what) was not taken over: \(error)")
            outcome = .failed
        }
        handoffs.remove(handoff)
        return outcome
    }

    /// A disk or a network drive that sleeps may take longer the first time; one that is away is not tried without end.
    private func afterFailedOpening(_ candidate: Candidate, _ what: String, _ error: HandoffError) -> Outcome {
        var candidate = candidate
        candidate.failedOpenings += 1
        guard error.code == .timedOut, candidate.failedOpenings < Self.openingAttempts else {
            logger.warning("\(what) was not taken over: \(error)")
            return .failed
        }
        logger.notice("\(what) has another turn: \(error)")
        return .waits(candidate)
    }

    /// Says that something waits, which has its turn again and again, as may many others.
    private func say(waiting what: String, _ error: HandoffError) {
        guard let unsaid = lackOfPlace.note(at: .now) else { return }
        logger.notice(
            "\(what) waits: \(error)", metadata: unsaid > 0 ? ["waitedSinceLastSaid": "\(unsaid)"] : nil)
    }

    /// Opens the folder of a rule, and waits no longer than ``HandoffDeadlines/opening``.
    private func open(_ place: FilePath) async throws(HandoffError) -> DestinationFolder {
        let name = NameDisplay.escaped(place.bytes)
        return try await withDeadline(deadlines.opening, "the folder '\(name)' did not open") {
            try await self.openInTurn(place)
        }
    }

    private func openInTurn(_ place: FilePath) async throws -> DestinationFolder {
        while let earlier = opening[place] {
            _ = try? await earlier.valueUnlessCancelled
            try Task.checkCancellation()
        }
        let task = Task<DestinationFolder, any Error> {
            defer { opening[place] = nil }
            return try await openDestination(place)
        }
        opening[place] = task
        return try await task.valueUnlessCancelled
    }

    /// - Returns: whether it came to its end well.
    private func follow(_ handoff: Handoff, of device: DeviceID, _ what: String) async -> Bool {
        var isWell = false
        // What was there when the device had gone; what is told again meanwhile is no news of it.
        var bytesWhenGone: UInt64?
        for await event in handoff.events.stream {
            switch event.kind {
            case .continued(let continued):
                isWell = true
                logger.notice(
                    "\(what) is here: \(NameDisplay.escaped(continued.path)), \(HumanUnits.bytes(continued.bytes))")
            case .failed(let failure):
                logger.warning("\(what) was not taken over: \(failure.message)")
            case .interrupted(let interruption):
                logger.notice("\(what) stopped coming, and goes on by itself: \(interruption.cause.message)")
                guard interruption.waitsSeconds > 0 else { continue }
                // Others are not to wait for a device that may be away for minutes.
                bytesWhenGone = interruption.keptBytes
                queue.leave(device)
                startNext()
            case .progress(let report):
                // Nor is what had come before news of it.
                guard let bytes = bytesWhenGone, report.bytes != bytes, report.bytes > report.resumedBytes else {
                    continue
                }
                bytesWhenGone = nil
                queue.comeBack(device)
            case .willContinue, .payload, .choose, nil:
                break
            }
        }
        return isWell
    }
}

extension AcceptPolicy {
    /// The rule that accepts something, and where to; `nil` where none does.
    fileprivate func acceptance(of subject: Subject) -> (rule: Rule, destination: FilePath)? {
        guard let rule = rule(for: subject), rule.action == .accept, let destination = rule.destination else {
            return nil
        }
        return (rule, destination)
    }
}

extension AcceptPolicy.Rule {
    /// Holds what a device says when it is asked against the rule that accepted what it had advertised.
    ///
    /// - Parameter type: `nil` where nothing is said of it again.
    /// - Throws: `refused`, with the rule.
    func require(type: String?, size: UInt64) throws(HandoffError) {
        if let type, let pattern = self.type, !Wildcard.matches(pattern, type) {
            throw HandoffError(.refused, "its type is \(type) now, which the rule in line \(line) does not accept")
        }
        guard maximumSize.map({ size <= $0 }) ?? true else {
            throw HandoffError(
                .refused, "it has \(HumanUnits.bytes(size)) now, more than the rule in line \(line) accepts")
        }
    }

    /// What each entry of a folder counts for besides what is in it, in bytes: about what it takes on a disk.
    static let entrySize: UInt64 = 4096

    /// What a document counts for, in bytes: all that is in it.
    static func size(of tree: DocumentTree) -> UInt64 {
        tree.size + entrySize * UInt64(tree.entryCount - 1)
    }
}
