// SPDX-License-Identifier: Apache-2.0

/// Decides which of the instances on the network are worth one of the few queries. A value without a clock.
///
/// A query costs a thread, five descriptors and one of the 256 connections that D-Bus gives a user, and anybody on the
/// link can announce instances. So queries are of two kinds. The *kept* ones belong to instances that somebody who can
/// read them (the node) has asked to keep. The *probes* find that out, and hear what is only worth following: each has
/// a turn, after which it makes room for whoever waits, newest first, because what has just appeared is most likely
/// what a user is looking for; every fourth place goes to the one that waits longest, so that a flood of new instances
/// starves nobody. A turn is over when the instance was heard and is only worth following, and after a while in any
/// case; such a probe stays while nobody waits. An instance that was rejected is not looked at again for a while. Where
/// a crowd was never looked at, as when a node starts in the middle of a flood, first turns are short.
///
/// The owner feeds events in, and asks ``nextAction(now:)`` until it is nil after each of them and at each
/// ``deadline(now:)``. Times are durations since any fixed moment, and must not go back.
struct QueryBudget {
    /// The numbers of the budget.
    struct Limits {
        /// Queries for kept instances.
        var kept = 48
        /// Queries that probe.
        var probing = 16
        /// How long a probe may hold its place when others wait; nil, for tests alone: for as long as it likes.
        var turn: Duration? = .milliseconds(300)
        /// How many that were never looked at are a crowd.
        var crowd = 64
        /// How long a first turn lasts while there is a crowd. Of 1,500 that come at once the last one then has it
        /// within 8 s, though none of them says anything. The responder, which hears a device's record together with
        /// its name, tells it in a few milliseconds; one that it has to ask for, which takes longer than this, comes
        /// with a later turn.
        var firstTurn: Duration = .milliseconds(75)
        /// How long a rejected instance is left alone.
        var rejection: Duration = .seconds(600)
        /// Rejections remembered for instances that went away, some 100 bytes each.
        var rejections = 4096
        /// Instances tracked at once, some 200 bytes each: Avahi itself remembers no more than 4,096 records of a link.
        /// It shows each of them once, so that one that is forgotten is not found under that name. Beyond it the one
        /// that waits longest is, of those that were looked at in vain while there are any.
        var tracked = 4096
        /// The pause before the second try; it doubles up to ``longestPause``.
        var firstPause: Duration = .seconds(1)
        var longestPause: Duration = .seconds(60)
        /// The longest pause between two turns of an instance that is followed: 500 clones then take 17 queries a
        /// second.
        var longestFollowingPause: Duration = .seconds(30)
    }

    /// What the owner has to do.
    enum Action: Hashable {
        case open(String)
        case close(String)
    }

    private enum Phase {
        /// No query. `queued` is a rising number, `notBefore` the earliest time for a query.
        case waiting(queued: UInt64, notBefore: Duration)
        case probing(since: Duration)
        case kept
    }

    private struct Instance {
        var phase: Phase
        var arrival: UInt64
        var attempts = 0
        /// Somebody asked to keep it.
        var isKnown = false
        /// Somebody asked to hear it in its turns.
        var isFollowed = false

        /// It could be looked at, and never was.
        func isUnseen(now: Duration) -> Bool {
            switch phase {
            case .waiting(_, let notBefore): attempts == 0 && !isFollowed && notBefore <= now
            case .probing, .kept: false
            }
        }

        /// It was looked at, and nobody asked to hear more of it.
        func wasInVain(now: Duration) -> Bool { !isKnown && !isFollowed && !isUnseen(now: now) }

        /// Whether a turn that it has now is its first one.
        var isNew: Bool { attempts == 0 && !isKnown && !isFollowed }

        /// Fewer attempts go first, then the newer instance.
        func precedes(_ other: Instance) -> Bool {
            attempts != other.attempts ? attempts < other.attempts : arrival > other.arrival
        }
    }

    private let limits: Limits
    private var instances: [String: Instance] = [:]
    private var closing: [String] = []
    private var rejections: [String: Duration] = [:]
    /// Known names of before ``reset()``.
    private var remembered: Set<String> = []
    /// An instance was forgotten that had not been looked at, since there were too many.
    private var hasForgotten = false
    private var counter: UInt64 = 0
    private var admissions = 0

    init(limits: Limits = Limits()) {
        self.limits = limits
    }

    /// Whether an instance is tracked.
    func isTracking(_ name: String) -> Bool { instances[name] != nil }

    /// Whether every record of an instance matters to the owner.
    func isHeard(_ name: String) -> Bool { instances[name].map { $0.isKnown || $0.isFollowed } ?? false }

    /// The number of tracked instances.
    var count: Int { instances.count }

    /// The open queries of each kind.
    var usage: (kept: Int, probing: Int) {
        let survey = survey(.zero)
        return (survey.kept, survey.probing)
    }

    /// Whether an instance could be looked at and never was, or might have been and was forgotten.
    func isBehind(now: Duration) -> Bool {
        hasForgotten || instances.values.contains { $0.isUnseen(now: now) }
    }

    // MARK: - Events

    /// An instance is on the network. Returns the name of an instance that is forgotten for it, when there are too
    /// many.
    mutating func appear(_ name: String, now: Duration) -> String? {
        guard instances[name] == nil else { return nil }
        var forgotten: String?
        if instances.count >= limits.tracked {
            guard let victim = leastPromising(now: now) else {
                hasForgotten = true
                return nil
            }
            if instances.removeValue(forKey: victim)?.isUnseen(now: now) == true { hasForgotten = true }
            forgotten = victim
        }
        if let until = rejections[name], until <= now { rejections[name] = nil }
        let notBefore = rejections[name] ?? now
        instances[name] = Instance(
            phase: .waiting(queued: next(), notBefore: notBefore), arrival: next(),
            isKnown: remembered.remove(name) != nil)
        return forgotten
    }

    /// An instance has left the network.
    mutating func disappear(_ name: String) {
        guard let instance = instances.removeValue(forKey: name) else { return }
        release(name, from: instance.phase)
    }

    /// The owner can read the instance and wants to hear of it from now on.
    mutating func keep(_ name: String, now: Duration) {
        rejections[name] = nil
        guard var instance = instances[name] else { return }
        instance.isKnown = true
        instance.isFollowed = false
        switch instance.phase {
        case .kept: break
        case .waiting: instance.phase = .waiting(queued: next(), notBefore: now)
        case .probing:
            // Without a place it goes on as a probe: its turn ends when others wait, and comes again.
            if usage.kept < limits.kept { instance.phase = .kept }
        }
        instances[name] = instance
    }

    /// The owner wants to hear of the instance in its turns, and not from now on.
    mutating func follow(_ name: String, now: Duration) {
        rejections[name] = nil
        guard var instance = instances[name] else { return }
        switch instance.phase {
        case .kept:
            closing.append(name)
            instance.phase = .waiting(queued: next(), notBefore: now)
        case .waiting:
            // The verdict on its last turn does not give it another one sooner.
            if !instance.isFollowed { instance.phase = .waiting(queued: next(), notBefore: now) }
        // What it had to say now it has said.
        case .probing(let since): instance.phase = .probing(since: limits.turn.map { now - $0 } ?? since)
        }
        instance.isKnown = false
        instance.isFollowed = true
        instances[name] = instance
    }

    /// The owner has no use for the instance.
    mutating func reject(_ name: String, now: Duration) {
        let until = now + limits.rejection
        if rejections.count >= limits.rejections, rejections[name] == nil {
            rejections = rejections.filter { $0.value > now }
            if rejections.count >= limits.rejections, let oldest = rejections.min(by: { $0.value < $1.value }) {
                rejections[oldest.key] = nil
            }
        }
        rejections[name] = until
        guard var instance = instances[name] else { return }
        release(name, from: instance.phase)
        instance.isKnown = false
        instance.isFollowed = false
        instance.attempts = 0
        instance.phase = .waiting(queued: next(), notBefore: until)
        instances[name] = instance
    }

    /// The owner can read more than before: what it rejected is worth another look.
    mutating func reconsider(now: Duration) {
        for name in rejections.keys {
            guard case .waiting(_, let notBefore)? = instances[name]?.phase, notBefore > now else { continue }
            let queued = next()
            instances[name]?.phase = .waiting(queued: queued, notBefore: now)
        }
        rejections = [:]
    }

    /// The query of an instance could not be opened, or failed.
    mutating func fail(_ name: String, now: Duration) {
        guard var instance = instances[name] else { return }
        instance.attempts += 1
        instance.phase = .waiting(queued: next(), notBefore: now + pause(after: instance.attempts, of: instance))
        instances[name] = instance
    }

    /// All queries are gone, and what is on the network has to be learnt anew. Who is known stays known.
    mutating func reset() {
        remembered = Set(instances.filter { $0.value.isKnown }.keys.prefix(limits.tracked))
        instances = [:]
        closing = []
        hasForgotten = false
    }

    // MARK: - Decisions

    /// The next thing to do, nil when there is none now.
    mutating func nextAction(now: Duration) -> Action? {
        if let name = closing.popLast() { return .close(name) }
        let survey = survey(now)
        if survey.kept < limits.kept, let (name, _) = survey.longestKnown {
            instances[name]?.phase = .kept
            return .open(name)
        }
        guard let newest = survey.newest, let longest = survey.longest else { return nil }
        guard survey.probing < limits.probing else {
            guard let (name, end) = endOfTurn(in: survey), end <= now else { return nil }
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
        guard survey.probing >= limits.probing else { return earliest }
        return endOfTurn(in: survey).map { max(earliest, $0.time) }
    }

    // MARK: - Choosing

    /// What one look at all instances shows. One, and without a copy of any: in a flood there are thousands, and
    /// hundreds of decisions a second (some 50 µs each with as many as are tracked).
    private struct Survey {
        var kept = 0
        var probing = 0
        /// The probe that is open for the longest time, and of those that have their first turn the one that is.
        var oldestProbe: (name: String, since: Duration)?
        var oldestNewProbe: (name: String, since: Duration)?
        /// Those that could be looked at and never were.
        var unseen = 0
        /// Of those that are ready: which goes first, which waits longest, and which of the known waits longest.
        var newest: (name: String, instance: Instance)?
        var longest: (name: String, queued: UInt64)?
        var longestKnown: (name: String, queued: UInt64)?
        /// When the first of those that wait may have a query.
        var earliest: Duration?
    }

    private func survey(_ now: Duration) -> Survey {
        var survey = Survey()
        for (name, instance) in instances {
            switch instance.phase {
            case .kept: survey.kept += 1
            case .probing(let since):
                survey.probing += 1
                if survey.oldestProbe.map({ since < $0.since }) ?? true { survey.oldestProbe = (name, since) }
                if instance.isNew, survey.oldestNewProbe.map({ since < $0.since }) ?? true {
                    survey.oldestNewProbe = (name, since)
                }
            case .waiting(let queued, let notBefore):
                survey.earliest = min(survey.earliest ?? notBefore, notBefore)
                guard notBefore <= now else { continue }
                if instance.isUnseen(now: now) { survey.unseen += 1 }
                if queued < survey.longest?.queued ?? .max { survey.longest = (name, queued) }
                if instance.isKnown, queued < survey.longestKnown?.queued ?? .max {
                    survey.longestKnown = (name, queued)
                }
                if survey.newest.map({ instance.precedes($0.instance) }) ?? true { survey.newest = (name, instance) }
            }
        }
        return survey
    }

    /// The probe whose turn ends first, and when that is.
    private func endOfTurn(in survey: Survey) -> (name: String, time: Duration)? {
        guard let turn = limits.turn, let (name, since) = survey.oldestProbe else { return nil }
        guard survey.unseen > limits.crowd, let (newName, newSince) = survey.oldestNewProbe,
            newSince + limits.firstTurn < since + turn
        else { return (name, since + turn) }
        return (newName, newSince + limits.firstTurn)
    }

    /// The one to forget: of those that were looked at in vain, or else of all that nobody can read, the one that waits
    /// longest.
    private func leastPromising(now: Duration) -> String? {
        var best: (name: String, wasInVain: Bool, queued: UInt64)?
        for (name, instance) in instances {
            guard case .waiting(let queued, _) = instance.phase, !instance.isKnown else { continue }
            let wasInVain = instance.wasInVain(now: now)
            if let best, best.wasInVain == wasInVain ? best.queued < queued : best.wasInVain { continue }
            best = (name, wasInVain, queued)
        }
        return best?.name
    }

    private mutating func release(_ name: String, from phase: Phase) {
        switch phase {
        case .waiting: break
        case .probing, .kept: closing.append(name)
        }
    }

    private func pause(after attempts: Int, of instance: Instance) -> Duration {
        let longest = instance.isFollowed ? limits.longestFollowingPause : limits.longestPause
        return min(longest, limits.firstPause * (1 << min(attempts - 1, 16)))
    }

    private mutating func next() -> UInt64 {
        counter += 1
        return counter
    }
}
