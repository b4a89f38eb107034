// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// The revocation lists that the devices of the account are known to have: a value that decides which device is asked
/// or told next. It is told the time.
///
/// A *revision* stands for the lists of a device; its upper half is the number of the newest. Two devices that meet
/// compare revisions, and a device that may lack something asks. The question says what the asking device has, and the
/// other asks in turn. So everything is pull, and a device is told of lists by a question.
///
/// The driver calls ``advance(to:)`` before every other call, and carries out what ``takeEffects()`` returns after it.
package struct Membership: Sendable {
    /// Devices that are remembered, about 200 bytes each. One more takes the place of one that never said what it has,
    /// such as a device that somebody invented; if there is none, of any.
    package static var bound: Int { 256 }
    /// How often a device is told again that does not show that it has the lists: after 1, 2, 4, 8, 16 and 32 s.
    static var retryBound: Int { 6 }

    package enum Effect: Sendable, Hashable {
        /// Connects to a device and asks it; ``Membership/told(_:isPresent:)`` takes the outcome. There is one at a
        /// time for each device, and no other bound: a few at a time would let invented devices keep a revocation from
        /// real ones.
        case tell(String, isNews: Bool)
        /// A device has said which lists it has. If they are current, its requests wait no longer.
        case said(String, revision: UInt64, isCurrent: Bool)
        /// Stores the lists, which failed before.
        case store
    }

    private enum Telling: Sendable {
        case idle
        case waiting(until: Instant)
        case running(isRepeated: Bool)
    }

    private struct Device: Sendable {
        /// The lists that it said last that it has.
        var revision: UInt64?
        /// Both revisions at the last question on a meeting. The same question again would tell nothing new.
        var asked: [UInt64] = []
        var telling = Telling.idle
        /// How often in a row it was told and has not shown that it has the lists.
        var failures = 0
    }

    private var now = Instant(nanoseconds: 0)
    /// The revision of this device, and the one that a restart would find.
    private var own, stored: UInt64
    private let storingPause: Duration
    private var storingRetry: Instant?
    private var devices: [String: Device] = [:]
    private var effects: [Effect] = []

    /// - Parameters:
    ///   - revision: of the lists that this device has, which are stored.
    ///   - storingPause: the pause before lists that could not be stored are stored again.
    package init(revision: UInt64, storingPause: Duration) {
        (own, stored) = (revision, revision)
        self.storingPause = storingPause
    }

    /// Moves the clock on, and does what is due.
    package mutating func advance(to now: Instant) {
        self.now = now
        if let storingRetry, storingRetry <= now {
            self.storingRetry = nil
            if !isStored { effects.append(.store) }
        }
        let due = devices.filter { if case .waiting(let end) = $0.value.telling { end <= now } else { false } }
        // In an order that does not change, so that a run can be repeated.
        for device in due.keys.sorted() {
            devices[device]?.telling = .idle
            tell(device, within: .zero)
        }
    }

    /// When ``advance(to:)`` has to be called at the latest.
    package var nextDeadline: Instant? {
        let ends = devices.values.compactMap { known -> Instant? in
            if case .waiting(let end) = known.telling { end } else { nil }
        }
        return (ends + (storingRetry.map { [$0] } ?? [])).min()
    }

    /// The orders since this was called last, the oldest first.
    package mutating func takeEffects() -> [Effect] {
        defer { effects = [] }
        return effects
    }

    // MARK: The lists of this device

    /// This device has other lists.
    package mutating func adopted(_ revision: UInt64) { own = revision }

    /// Whether a restart would find the lists that this device has.
    package var isStored: Bool { stored == own }

    /// - Parameter revision: of the lists that were stored; nil if that failed.
    package mutating func stored(_ revision: UInt64?) {
        if let revision { stored = revision } else { storingRetry = storingRetry ?? now + storingPause }
    }

    // MARK: What devices say

    /// Whether a device has not said that it has the lists of this one.
    package func lacksWord(of device: String) -> Bool { devices[device]?.revision != own }

    /// Whether a device has lists of a lower number than this one.
    private func isBehind(_ device: String) -> Bool { (devices[device]?.revision ?? 0) >> 32 < own >> 32 }

    /// A device says which lists it has.
    package mutating func say(_ revision: UInt64, of device: String) {
        makeRoom(for: device)
        devices[device, default: Device()].revision = revision
        if !lacksWord(of: device) { devices[device]?.failures = 0 }
        effects.append(.said(device, revision: revision, isCurrent: !isBehind(device)))
    }

    /// A device says on a connection which lists it has.
    ///
    /// - Returns: whether it is to be asked there.
    package mutating func meet(_ device: String, having revision: UInt64) -> Bool {
        say(revision, of: device)
        guard lacksWord(of: device), !isBehind(device), devices[device]?.asked != [revision, own] else { return false }
        devices[device]?.asked = [revision, own]
        return true
    }

    /// A question to a device has ended.
    ///
    /// - Parameter isAnswered: whether it told its lists. If they could not be taken over, another question would not
    ///   help: two such devices would ask for ever.
    package mutating func asked(_ device: String, isAnswered: Bool) {
        guard !isAnswered else { return }
        devices[device]?.asked = []
        if case .idle? = devices[device]?.telling { retry(device) }
    }

    /// Forgets what a device has said.
    package mutating func forget(_ device: String) { devices[device] = nil }

    // MARK: Telling

    /// A device announces itself under other keys than this one's.
    ///
    /// - Parameter lacksLists: whether these are older keys. This counts more than what it has said: it may have
    ///   stopped before it had stored the lists, or an older state was restored. However often it announces that, it is
    ///   told once a second.
    package mutating func hear(_ device: String, lacksLists: Bool) {
        guard lacksLists else { return inform(device) }
        if let revision = devices[device]?.revision, revision != 0 {
            devices[device]?.revision = 0
            devices[device]?.asked = []
        }
        tell(device, within: .seconds(1))
    }

    /// Gives a device that is announced the chance to take over what it lacks, and to show that it is of the account.
    ///
    /// - Parameter isNews: whether a list has just come.
    package mutating func inform(_ device: String, isNews: Bool = false) {
        tell(device, within: isNews ? .zero : nil, isNews: isNews)
    }

    /// A device asks for something else than lists. It may not know that it lacks some, or its word may have been lost.
    ///
    /// - Returns: whether the request waits until the device has caught up.
    package mutating func isToWait(_ device: String) -> Bool {
        guard isBehind(device) else { return false }
        devices[device]?.failures = 0
        tell(device, within: .zero)
        return true
    }

    /// ``Effect/tell(_:isNews:)`` has ended.
    ///
    /// - Parameter isPresent: whether the device was connected or announced.
    package mutating func told(_ device: String, isPresent: Bool) {
        guard case .running(let isRepeated)? = devices[device]?.telling else { return }
        devices[device]?.telling = .idle
        guard isPresent else {
            devices[device]?.failures = 0
            return
        }
        if isRepeated { tell(device, within: .zero, isNews: true) } else if lacksWord(of: device) { retry(device) }
    }

    /// Tells a device now; or, if it was told and is told again in a while, then or after the pause.
    private mutating func tell(_ device: String, within pause: Duration?, isNews: Bool = false) {
        guard lacksWord(of: device) else { return }
        makeRoom(for: device)
        switch (devices[device, default: Device()].telling, pause) {
        case (.idle, _), (.waiting, Duration.zero?):
            devices[device, default: Device()].telling = .running(isRepeated: false)
            effects.append(.tell(device, isNews: isNews))
        case (.waiting(let end), let pause?): devices[device]?.telling = .waiting(until: min(end, now + pause))
        case (.running, Duration.zero?): devices[device]?.telling = .running(isRepeated: true)
        case (.waiting, nil), (.running, _): break
        }
    }

    private mutating func retry(_ device: String) {
        let failures = (devices[device]?.failures ?? 0) + 1
        guard failures <= Self.retryBound else {
            devices[device]?.failures = 0
            return
        }
        devices[device]?.failures = failures
        devices[device]?.telling = .waiting(until: now + .seconds(1 << (failures - 1)))
    }

    private mutating func makeRoom(for device: String) {
        guard devices[device] == nil, devices.count >= Self.bound else { return }
        let forgotten = devices.first { $0.value.revision == nil }?.key ?? devices.keys.first
        if let forgotten { devices[forgotten] = nil }
    }
}
