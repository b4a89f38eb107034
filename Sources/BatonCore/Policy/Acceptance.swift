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
    /// Documents that are fetched at once: 2, so that a slow one keeps no other device waiting. Documents whose devices
    /// have come back are fetched besides.
    package static let concurrency = 2
    /// Devices that have gone and keep no turn: 8. Each holds a place of all handoffs. One more keeps its turn.
    package static let away = 8
    /// Activities that are remembered as seen: 1,024 of proved devices, and as many of announced ones. The oldest make
    /// room. Devices have a fraction of that at once.
    package static let seen = 1024
    /// Attempts to open the folder of a rule for one document: 3. A drive that sleeps needs a second one.
    package static let openings = 3
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
        /// Calls ``Acceptance/look(at:present:)`` again.
        case lookAgain
    }

    /// The end of a turn.
    package enum End: Sendable {
        /// The document is here, or no rule accepts it any more.
        case done
        case failed
        /// Too many handoffs are under way.
        case noPlace
        /// The folder of the rule did not open in time.
        case folderLate
        /// The user of this device has switched Handoff off.
        case switchedOff
        /// The node stops.
        case stopped
    }

    package enum Start: Sendable, Equatable {
        case begun
        /// The activity was taken before, perhaps before the node was started.
        case begunBefore
        case postponed(End)
    }

    private struct Entry: Sendable {
        let document: Document
        var lateFolders = 0
        /// Whether it is noted as taken.
        var isNoted = false
    }

    /// The state of a device.
    private enum Turn: Sendable {
        case fetching(Entry)
        /// The device has gone in the middle, with so many bytes here. Its turn is another device's until it is back.
        case away(Entry, keptBytes: UInt64)
        case resting(until: Instant)

        var entry: Entry? {
            switch self {
            case .fetching(let entry), .away(let entry, _): entry
            case .resting: nil
            }
        }
    }

    private struct Key: Sendable, Hashable {
        let device: String
        let activity: ActivityID
    }

    /// Whether Handoff is on. While it is off, nothing is looked at, and nothing that waits is begun.
    package var isOn = true
    /// Documents that wait for a turn at most.
    private let bound: Int
    /// The time for which a device has no turn after its document failed or found no place.
    private let rest: Duration
    private var now = Instant(nanoseconds: 0)
    private var seen = RecentSet<Key>(bound: AcceptanceBounds.seen)
    /// The same of devices that no connection has shown.
    private var announced = RecentSet<Key>(bound: AcceptanceBounds.seen)
    /// The oldest first.
    private var waiting: [Entry] = []
    /// Documents that had their turn while Handoff was off, the oldest first, at most ``bound``. Their devices may
    /// announce other documents by now, so nothing else would look at them again.
    private var left: [Document] = []
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
        while fetching < AcceptanceBounds.concurrency,
            let index = waiting.firstIndex(where: { turns[$0.document.device] == nil })
        {
            let entry = waiting.remove(at: index)
            turns[entry.document.device] = .fetching(entry)
            effects.append(.fetch(entry.document))
        }
        defer { effects = [] }
        return effects
    }

    /// Remembers the activities that were taken before this start.
    package mutating func remember(_ lines: [String]) { taken = lines.suffix(AcceptanceBounds.taken) }

    /// The node stops. Its next start looks at what was not begun.
    package mutating func stop() { (isStopped, waiting, left) = (true, [], []) }

    // MARK: Announced documents

    /// Looks at what devices announce now. A document that was left while Handoff was off waits for its turn again if
    /// its device is there.
    ///
    /// - Returns: the new documents. ``accept(_:)`` takes those that a rule accepts.
    package mutating func look(at documents: [Document], present: Set<String>) -> [Document] {
        guard isOn, !isStopped else { return [] }
        let again = left.filter { present.contains($0.device) }
        left.removeAll { present.contains($0.device) }
        for document in again { enter(Entry(document: document)) }
        return documents.filter { document in
            let key = Key(device: document.device, activity: document.activity)
            return document.isProved ? seen.insert(key) : announced.insert(key)
        }
    }

    /// Takes documents on that a rule accepts.
    package mutating func accept(_ documents: [Document]) {
        for document in documents {
            if document.isProved { enter(Entry(document: document)) } else { effects.append(.meet(document)) }
        }
    }

    // MARK: A turn

    /// Begins with the document of a device, which notes it as taken.
    package mutating func start(_ device: String) -> Start {
        guard isOn else { return .postponed(.switchedOff) }
        guard !isStopped, case .fetching(var entry)? = turns[device] else { return .postponed(.stopped) }
        let line = line(of: entry.document)
        guard !taken.contains(line) else { return .begunBefore }
        taken.append(line)
        let own = taken.indices.filter { taken[$0].hasPrefix(device + " ") }
        if own.count > AcceptanceBounds.takenOfOneDevice { taken.remove(at: own[0]) }
        taken.removeFirst(max(0, taken.count - AcceptanceBounds.taken))
        effects.append(.keep(taken))
        entry.isNoted = true
        turns[device] = .fetching(entry)
        return .begun
    }

    /// The device has gone, perhaps for minutes: its turn is free.
    package mutating func interrupt(_ device: String, keptBytes: UInt64) {
        switch turns[device] {
        case .fetching(let entry) where away < AcceptanceBounds.away, .away(let entry, _):
            turns[device] = .away(entry, keptBytes: keptBytes)
        case .fetching, .resting, nil: break
        }
    }

    /// The device sends again. A report of bytes that were here before is no news of it.
    package mutating func progress(_ device: String, bytes: UInt64, resumedBytes: UInt64) {
        guard case .away(let entry, let keptBytes)? = turns[device], bytes != keptBytes, bytes > resumedBytes else {
            return
        }
        turns[device] = .fetching(entry)
    }

    /// The turn of a device is over.
    ///
    /// - Returns: whether its document has another turn.
    @discardableResult
    package mutating func end(_ device: String, _ end: End) -> Bool {
        guard let turn = turns[device], var entry = turn.entry else { return false }
        turns[device] = nil
        switch end {
        case .done, .stopped: return false
        case .switchedOff:
            leave(entry)
            return false
        case .failed, .noPlace, .folderLate:
            turns[device] = .resting(until: now + rest)
            if end == .folderLate { entry.lateFolders += 1 }
            return end != .failed && entry.lateFolders < AcceptanceBounds.openings && enter(entry)
        }
    }

    // MARK: Inside

    private var fetching: Int { turns.values.count { if case .fetching = $0 { true } else { false } } }
    private var away: Int { turns.values.count { if case .away = $0 { true } else { false } } }

    private func line(of document: Document) -> String { "\(document.device) \(document.activity)" }

    @discardableResult
    private mutating func enter(_ entry: Entry) -> Bool {
        guard !isStopped else { return false }
        let device = entry.document.device
        guard waiting.count < bound, waiting.count(where: { $0.document.device == device }) < bound / 2 else {
            effects.append(.leaveToUser(entry.document))
            return false
        }
        waiting.append(entry)
        return true
    }

    /// Keeps a document until Handoff is on again.
    private mutating func leave(_ entry: Entry) {
        if entry.isNoted {
            let line = line(of: entry.document)
            taken.removeAll { $0 == line }
            effects.append(.keep(taken))
        }
        guard !isStopped else { return }
        left.append(entry.document)
        if left.count > bound { effects.append(.leaveToUser(left.removeFirst())) }
        // It may be on again by now.
        if isOn { effects.append(.lookAgain) }
    }
}
