// SPDX-License-Identifier: Apache-2.0

/// Decides which instances are queried now. A value without a clock.
///
/// A query costs a thread, five descriptors and one of the 256 connections that D-Bus gives a user, and anyone on the
/// link can announce instances. So few queries are open at once, and each reads an instance's first record only. After
/// the owner's verdict the owner closes the query. Later records are heard from announcements
/// (``AnnouncementListener``).
///
/// Each query has a turn, after which it makes room for an instance that waits. An instance that was never queried goes
/// first, chosen at random. One turn in 32 goes to any instance that waits, so that a flood of new instances starves
/// none. A query without a verdict stays open while no instance waits. A rejected instance is not queried again for a
/// while.
///
/// The owner feeds events in, and asks ``nextAction(now:)`` until it is nil after each event and at each ``deadline``.
/// Times are durations since any fixed moment, and must not go back.
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
    /// queried in vain are forgotten first, then any that is not kept.
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
        /// No query.
        case waiting(notBefore: Duration)
        case probing(until: Duration)
        /// The owner wants every record, which needs no query.
        case heard(isKept: Bool)
    }

    private struct Instance {
        var phase = Phase.waiting(notBefore: .zero)
        /// Queries that gave no record that the owner wants.
        var attempts = 0

        /// The earliest time for a query; nil if it has one or needs none.
        var notBefore: Duration? { if case .waiting(let notBefore) = phase { notBefore } else { nil } }
        /// Whether it was never queried and waits.
        var isUnseen: Bool { attempts == 0 && notBefore != nil }
        /// Whether it may be forgotten.
        var isForgettable: Bool {
            switch phase {
            case .waiting, .heard(isKept: false): true
            case .probing, .heard(isKept: true): false
            }
        }
    }

    private var instances: [String: Instance] = [:]

    /// Whether an instance is tracked.
    func isTracking(_ name: String) -> Bool { instances[name] != nil }

    /// Whether the owner wants every record of an instance.
    func isHeard(_ name: String) -> Bool { if case .heard? = instances[name]?.phase { true } else { false } }

    /// The number of kept instances, and of open queries.
    var usage: (kept: Int, probing: Int) {
        let kept = instances.values.count { if case .heard(isKept: true) = $0.phase { true } else { false } }
        return (kept, turns.count)
    }

    /// Whether an instance waits and was never queried, or may have been forgotten before it was.
    var isBehind: Bool { instances.count >= Self.tracked || instances.values.contains(where: \.isUnseen) }

    // MARK: - Events

    /// An instance has appeared. Returns the instance that is forgotten for it when there are too many.
    mutating func appear(_ name: String) -> String? {
        guard instances[name] == nil else { return nil }
        var forgotten: String?
        if instances.count >= Self.tracked {
            forgotten =
                instances.first { $0.value.isForgettable && $0.value.attempts > 0 }?.key
                ?? instances.compactMap { $0.value.isForgettable ? $0.key : nil }.randomElement()
            guard let forgotten else { return nil }
            instances[forgotten] = nil
        }
        instances[name] = Instance()
        return forgotten
    }

    /// An instance has left the network.
    mutating func disappear(_ name: String) {
        instances[name] = nil
    }

    /// The owner wants every record of the instance. A kept instance is not forgotten. Another one may be, for a new
    /// one when there are too many.
    mutating func hear(_ name: String, isKept: Bool) {
        guard instances[name] != nil else { return }
        instances[name] = Instance(phase: .heard(isKept: isKept))
    }

    /// The owner has no use for the instance.
    mutating func reject(_ name: String, now: Duration) {
        guard instances[name] != nil else { return }
        instances[name] = Instance(phase: .waiting(notBefore: now + Self.rejection), attempts: 1)
    }

    /// The owner can read more than before: what it rejected is worth another look.
    mutating func reconsider() {
        for (name, instance) in instances where instance.notBefore != nil { instances[name] = Instance() }
    }

    /// The query of an instance could not be opened, or failed.
    mutating func fail(_ name: String, now: Duration) {
        guard let instance = instances[name], case .probing = instance.phase else { return }
        let pause = min(Self.longestPause, Self.firstPause * (1 << min(instance.attempts, 16)))
        instances[name] = Instance(phase: .waiting(notBefore: now + pause), attempts: instance.attempts + 1)
    }

    /// All queries are gone and all instances have to appear again.
    mutating func reset() {
        instances = [:]
    }

    // MARK: - Decisions

    /// The next thing to do, nil when there is none now.
    mutating func nextAction(now: Duration) -> Action? {
        let turns = turns
        let ended = turns.count < Self.probing ? nil : turns.min { $0.end < $1.end }
        if let ended, ended.end > now { return nil }
        let ready = instances.compactMap { name, instance in
            instance.notBefore.map { $0 <= now } == true ? (name: name, isUnseen: instance.isUnseen) : nil
        }
        let unseen = Int.random(in: 0..<32) == 0 ? [] : ready.filter(\.isUnseen)
        guard let next = unseen.randomElement() ?? ready.randomElement() else { return nil }
        if let ended {
            fail(ended.name, now: now)
            return .close(ended.name)
        }
        instances[next.name]?.phase = .probing(until: now + (next.isUnseen ? Self.firstTurn : Self.turn))
        return .open(next.name)
    }

    /// When ``nextAction(now:)`` has something to do without a new event; nil when never.
    var deadline: Duration? {
        guard let earliest = instances.values.lazy.compactMap(\.notBefore).min() else { return nil }
        let turns = turns
        return turns.count < Self.probing ? earliest : turns.map(\.end).min().map { max(earliest, $0) }
    }

    /// The open queries, and when the turn of each ends.
    private var turns: [(name: String, end: Duration)] {
        instances.compactMap { if case .probing(let end) = $0.value.phase { ($0.key, end) } else { nil } }
    }
}
