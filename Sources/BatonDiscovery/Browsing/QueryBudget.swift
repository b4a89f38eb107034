// SPDX-License-Identifier: Apache-2.0

/// Decides which instances are queried now. A value without a clock.
///
/// A query costs a thread, five descriptors and one of the 256 connections that D-Bus gives a user, and anyone on the
/// link can announce instances. So few queries are open at once, and each reads an instance's first record only. After
/// the owner's verdict the query is closed. Later records are heard from announcements (``AnnouncementListener``).
///
/// Each query has a turn, after which it makes room for an instance that waits. The newest instance goes first, because
/// a user most likely looks for what has just appeared. Every fourth turn goes to the instance that waits longest, so
/// that a flood of new instances starves none. A query without a verdict stays open while no instance waits. A rejected
/// instance is not queried again for a while.
///
/// The owner feeds events in, and asks ``nextAction(now:)`` until it is nil after each event and at each
/// ``deadline(now:)``. Times are durations since any fixed moment, and must not go back.
struct QueryBudget {
    /// Queries that are open at once.
    static let probing = 16
    /// How long a query may stay open when instances wait, at its first attempt. The last of 1,500 instances that
    /// appear at once then has its turn within 8 s, even if none has a record. Avahi hears a device's record together
    /// with its name and tells it within a few milliseconds.
    static let firstTurn = Duration.milliseconds(75)
    /// The same at later attempts: Avahi may have to ask for the record.
    static let turn = Duration.milliseconds(300)
    /// How long a rejected instance is not queried.
    static let rejection = Duration.seconds(600)
    /// Instances tracked at once, some 200 bytes each. Avahi remembers no more than 4,096 records of a link.
    ///
    /// Avahi shows each instance once, so a forgotten instance is not found under that name. Instances that were
    /// queried in vain are forgotten first, then the one that waits longest.
    static let tracked = 4096
    /// The pause before the second try; it doubles up to ``longestPause``.
    static let firstPause = Duration.seconds(1)
    static let longestPause = Duration.seconds(60)

    /// A step that the owner has to take.
    enum Action: Hashable {
        case open(String)
        case close(String)
    }

    private enum Phase {
        /// No query. `queued` is a rising number, `notBefore` the earliest time for a query.
        case waiting(queued: UInt64, notBefore: Duration)
        case probing(since: Duration)
        /// The owner wants every record, which needs no query. `queued` is a rising number.
        case heard(queued: UInt64, isKept: Bool)
    }

    private struct Instance {
        var phase: Phase
        var arrival: UInt64
        var attempts = 0

        /// Whether it may be queried and never was.
        func isUnseen(now: Duration) -> Bool {
            switch phase {
            case .waiting(_, let notBefore): attempts == 0 && notBefore <= now
            case .probing, .heard: false
            }
        }

        /// Fewer attempts go first, then the newer instance.
        func precedes(_ other: Instance) -> Bool {
            attempts != other.attempts ? attempts < other.attempts : arrival > other.arrival
        }
    }

    private var instances: [String: Instance] = [:]
    private var closing: [String] = []
    /// Whether an instance was forgotten that had not been queried, because there were too many.
    private var hasForgotten = false
    private var counter: UInt64 = 0
    private var admissions = 0

    /// Whether an instance is tracked.
    func isTracking(_ name: String) -> Bool { instances[name] != nil }

    /// Whether the owner wants every record of an instance.
    func isHeard(_ name: String) -> Bool { if case .heard? = instances[name]?.phase { true } else { false } }

    /// The number of tracked instances.
    var count: Int { instances.count }

    /// The number of kept instances, and of open queries.
    var usage: (kept: Int, probing: Int) {
        let kept = instances.values.count { if case .heard(_, isKept: true) = $0.phase { true } else { false } }
        return (kept, survey(.zero).probing)
    }

    /// Whether an instance may be queried and never was, or was forgotten before it was.
    func isBehind(now: Duration) -> Bool {
        hasForgotten || instances.values.contains { $0.isUnseen(now: now) }
    }

    // MARK: - Events

    /// An instance has appeared. Returns the instance that is forgotten for it when there are too many.
    mutating func appear(_ name: String, now: Duration) -> String? {
        guard instances[name] == nil else { return nil }
        var forgotten: String?
        if instances.count >= Self.tracked {
            guard let victim = leastPromising(now: now) else {
                hasForgotten = true
                return nil
            }
            if instances.removeValue(forKey: victim)?.isUnseen(now: now) == true { hasForgotten = true }
            forgotten = victim
        }
        instances[name] = Instance(phase: .waiting(queued: next(), notBefore: now), arrival: next())
        return forgotten
    }

    /// An instance has left the network.
    mutating func disappear(_ name: String) {
        guard let instance = instances.removeValue(forKey: name) else { return }
        release(name, from: instance.phase)
    }

    /// The owner wants every record of the instance. A kept instance is not forgotten. Another one may be, for a new
    /// one when there are too many.
    mutating func hear(_ name: String, isKept: Bool) {
        guard let phase = instances[name]?.phase else { return }
        release(name, from: phase)
        let queued = if case .heard(let queued, _) = phase { queued } else { next() }
        instances[name]?.phase = .heard(queued: queued, isKept: isKept)
    }

    /// The owner has no use for the instance.
    mutating func reject(_ name: String, now: Duration) {
        guard var instance = instances[name] else { return }
        release(name, from: instance.phase)
        instance.attempts = 0
        instance.phase = .waiting(queued: next(), notBefore: now + Self.rejection)
        instances[name] = instance
    }

    /// The owner can read more than before: what it rejected is worth another look.
    mutating func reconsider(now: Duration) {
        for (name, instance) in instances {
            guard case .waiting(_, let notBefore) = instance.phase, notBefore > now else { continue }
            let queued = next()
            instances[name]?.phase = .waiting(queued: queued, notBefore: now)
        }
    }

    /// The query of an instance could not be opened, or failed.
    mutating func fail(_ name: String, now: Duration) {
        guard var instance = instances[name], case .probing = instance.phase else { return }
        instance.attempts += 1
        instance.phase = .waiting(queued: next(), notBefore: now + pause(after: instance.attempts))
        instances[name] = instance
    }

    /// All queries are gone and all instances have to appear again.
    mutating func reset() {
        instances = [:]
        closing = []
        hasForgotten = false
    }

    // MARK: - Decisions

    /// The next thing to do, nil when there is none now.
    mutating func nextAction(now: Duration) -> Action? {
        if let name = closing.popLast() { return .close(name) }
        let survey = survey(now)
        guard let newest = survey.newest, let longest = survey.longest else { return nil }
        guard survey.probing < Self.probing else {
            guard let (name, end) = survey.firstEnd, end <= now else { return nil }
            fail(name, now: now)
            return .close(name)
        }
        admissions += 1
        let name = admissions % 4 == 0 ? longest.name : newest.name
        instances[name]?.phase = .probing(since: now)
        return .open(name)
    }

    /// When ``nextAction(now:)`` has something to do without a new event; nil when never.
    func deadline(now: Duration) -> Duration? {
        let survey = survey(now)
        guard let earliest = survey.earliest else { return nil }
        guard survey.probing >= Self.probing else { return earliest }
        return survey.firstEnd.map { max(earliest, $0.time) }
    }

    // MARK: - Choosing

    /// The result of one pass over all instances. A flood has thousands of them and causes hundreds of decisions a
    /// second, each of some 50 µs.
    private struct Survey {
        var probing = 0
        /// The query whose turn ends first, and when that is.
        var firstEnd: (name: String, time: Duration)?
        /// The instances that may be queried now: the newest, and the one that waits longest.
        var newest: (name: String, instance: Instance)?
        var longest: (name: String, queued: UInt64)?
        /// When the first of the waiting instances may be queried.
        var earliest: Duration?
    }

    private func survey(_ now: Duration) -> Survey {
        var survey = Survey()
        for (name, instance) in instances {
            switch instance.phase {
            case .heard: break
            case .probing(let since):
                survey.probing += 1
                let end = since + (instance.attempts == 0 ? Self.firstTurn : Self.turn)
                if survey.firstEnd.map({ end < $0.time }) ?? true { survey.firstEnd = (name, end) }
            case .waiting(let queued, let notBefore):
                survey.earliest = min(survey.earliest ?? notBefore, notBefore)
                guard notBefore <= now else { continue }
                if queued < survey.longest?.queued ?? .max { survey.longest = (name, queued) }
                if survey.newest.map({ instance.precedes($0.instance) }) ?? true { survey.newest = (name, instance) }
            }
        }
        return survey
    }

    /// The instance to forget: one that was queried in vain, or else any that is not kept; the one that waits longest.
    private func leastPromising(now: Duration) -> String? {
        var best: (name: String, wasInVain: Bool, queued: UInt64)?
        for (name, instance) in instances {
            let (queued, wasInVain): (UInt64, Bool)
            switch instance.phase {
            case .waiting(let since, _): (queued, wasInVain) = (since, !instance.isUnseen(now: now))
            case .heard(let since, isKept: false): (queued, wasInVain) = (since, false)
            case .heard, .probing: continue
            }
            if let best, best.wasInVain == wasInVain ? best.queued < queued : best.wasInVain { continue }
            best = (name, wasInVain, queued)
        }
        return best?.name
    }

    private mutating func release(_ name: String, from phase: Phase) {
        switch phase {
        case .waiting, .heard: break
        case .probing: closing.append(name)
        }
    }

    private func pause(after attempts: Int) -> Duration {
        min(Self.longestPause, Self.firstPause * (1 << min(attempts - 1, 16)))
    }

    private mutating func next() -> UInt64 {
        counter += 1
        return counter
    }
}
