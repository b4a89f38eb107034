// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// A document that another device announces as its current activity.
package protocol AnnouncedDocument: Sendable {
    var activity: ActivityID { get }
    /// The identifier of the device.
    var device: String { get }
    /// Whether a connection has shown the device. Anybody with the account's keys can announce devices that do not
    /// exist.
    var isProved: Bool { get }
}

package enum AcceptanceBounds {
    /// Devices whose documents are fetched at once: 10, one of each device. A device that has gone keeps its turn until
    /// its handoff ends, and each turn holds a place of all handoffs.
    package static let concurrency = 10
    /// Activities that are remembered as seen: 1,024. Beyond that those are forgotten that no device announces now.
    /// Devices have a fraction of that at once.
    package static let seen = 1024
    /// Activities that are remembered as taken, also by the next start: 512. The oldest are forgotten.
    package static let taken = 512
    /// The same of one device: 64, so that no device makes the others' forgotten.
    package static let takenOfOneDevice = 64
}

/// Documents that the user's rules take over without a question: a value that decides when each is fetched, and is told
/// the time.
///
/// A document is looked at once, when it becomes its device's current activity. A few documents are fetched while the
/// others wait. A device has one turn at a time, half of the places in the queue, and no turn while it rests.
///
/// The driver sets ``isOn``, calls ``advance(to:)`` before every other call, and carries out what ``takeEffects()``
/// returns after it.
package struct Acceptance<Document: AnnouncedDocument>: Sendable {
    package enum Effect: Sendable {
        /// Opens the rule's folder, calls ``Acceptance/start(_:)``, and ``Acceptance/end(_:_:)`` when it is over.
        case fetch(Document)
        /// Connects to a device, so that it is proved.
        case meet(Document)
        /// Writes down what was taken, a line each.
        case keep([String])
        /// Leaves a document to the user, because too many wait.
        case leaveToUser(Document)
    }

    /// The end of a turn.
    package enum End: Sendable {
        /// The document is here, or no rule accepts it any more.
        case done
        /// Also if Handoff is switched off after the document was noted: it is left to the user.
        case failed
        /// The activity was taken before, perhaps before the node was started.
        case begunBefore
        /// The document waits again: Handoff is off, too many handoffs are under way, or the folder of the rule did not
        /// open in time.
        case postponed
        /// The node stops.
        case stopped
    }

    /// The state of a device.
    private enum Turn: Sendable {
        /// Its document is to be fetched, or is being fetched.
        case fetching(Document)
        case resting(until: Instant)

        var document: Document? { if case .fetching(let document) = self { document } else { nil } }
    }

    private struct Key: Sendable, Hashable {
        let device: String
        let activity: ActivityID
        let isProved: Bool

        init(_ document: Document) {
            (device, activity, isProved) = (document.device, document.activity, document.isProved)
        }
    }

    /// Whether Handoff is on. While it is off, nothing is looked at, and nothing that waits is begun.
    package var isOn = true
    /// Documents that wait for a turn at most.
    private let bound: Int
    /// The time for which a device has no turn after its document failed or was postponed.
    private let rest: Duration
    private var now = Instant(nanoseconds: 0)
    private var seen: Set<Key> = []
    /// The oldest first.
    private var waiting: [Document] = []
    /// By device. A device rests for a limited time, and only devices that a connection has shown get here.
    private var turns: [String: Turn] = [:]
    /// Lines of device and activity, the oldest first.
    private var taken: [String] = []
    private var isStopped = false
    private var effects: [Effect] = []

    /// - Parameter bound: documents that wait at most; 2 at least.
    package init(bound: Int, rest: Duration) {
        precondition(bound > 1, "there is a place for more than one device")
        self.bound = bound
        self.rest = rest
    }

    /// Moves the clock on, and ends rests.
    package mutating func advance(to now: Instant) {
        self.now = now
        turns = turns.filter { if case .resting(let end) = $0.value { end > now } else { true } }
    }

    /// When ``advance(to:)`` has to be called at the latest.
    package var nextDeadline: Instant? {
        turns.values.compactMap { if case .resting(let end) = $0 { end } else { nil } }.min()
    }

    /// The orders since this was called last, the oldest first.
    package mutating func takeEffects() -> [Effect] {
        while isOn, turns.values.count(where: { $0.document != nil }) < AcceptanceBounds.concurrency,
            let index = waiting.firstIndex(where: { turns[$0.device] == nil })
        {
            let document = waiting.remove(at: index)
            turns[document.device] = .fetching(document)
            effects.append(.fetch(document))
        }
        defer { effects = [] }
        return effects
    }

    /// Remembers the activities that were taken before this start.
    package mutating func remember(_ lines: [String]) { taken = lines.suffix(AcceptanceBounds.taken) }

    /// The node stops. Its next start looks at what was not begun.
    package mutating func stop() { (isStopped, waiting) = (true, []) }

    // MARK: Announced documents

    /// Looks at what devices announce now.
    ///
    /// - Returns: the new documents. ``accept(_:)`` takes those that a rule accepts.
    package mutating func look(at documents: [Document]) -> [Document] {
        guard isOn, !isStopped else { return [] }
        let new = documents.filter { !seen.contains(Key($0)) }
        seen.formUnion(new.map { Key($0) })
        if seen.count > AcceptanceBounds.seen { seen = Set(documents.map { Key($0) }) }
        return new
    }

    /// Takes documents on that a rule accepts.
    package mutating func accept(_ documents: [Document]) {
        for document in documents {
            if document.isProved { enter(document) } else { effects.append(.meet(document)) }
        }
    }

    // MARK: A turn

    /// Begins with the document of a device, which notes it as taken.
    ///
    /// - Returns: nil, or the end of the turn if the document is not to be fetched.
    package mutating func start(_ device: String) -> End? {
        guard isOn else { return .postponed }
        guard !isStopped, let document = turns[device]?.document else { return .stopped }
        let line = line(of: document)
        guard !taken.contains(line) else { return .begunBefore }
        taken.append(line)
        let own = taken.indices.filter { taken[$0].hasPrefix(device + " ") }
        if own.count > AcceptanceBounds.takenOfOneDevice { taken.remove(at: own[0]) }
        taken.removeFirst(max(0, taken.count - AcceptanceBounds.taken))
        effects.append(.keep(taken))
        return nil
    }

    /// The turn of a device is over.
    package mutating func end(_ device: String, _ end: End) {
        guard let document = turns[device]?.document else { return }
        turns[device] = nil
        switch end {
        case .done, .begunBefore, .stopped: break
        case .failed, .postponed:
            turns[device] = .resting(until: now + rest)
            if end == .postponed { enter(document) }
        }
    }

    // MARK: Inside

    private func line(of document: Document) -> String { "\(document.device) \(document.activity)" }

    private mutating func enter(_ document: Document) {
        guard !isStopped else { return }
        guard waiting.count < bound, waiting.count(where: { $0.device == document.device }) < bound / 2 else {
            effects.append(.leaveToUser(document))
            return
        }
        waiting.append(document)
    }
}
