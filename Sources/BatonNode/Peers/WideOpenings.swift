// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// Says which records are tried with all keys of the account that do not open with those of the device that their name
/// has shown, and keeps those whose turn has not come: a pure value, told the time.
///
/// Anybody can put a record there. Were none tried, one packet would do to hide a device: the record of another one,
/// copied under the name of a device that has slept through a revocation before that one is heard. Were all tried, he
/// who sends thousands a second would have them cost up to 2 ms each. And were those lost that come too soon, one
/// packet just before the device's would do again, since nobody says the same twice. So whoever floods can keep a
/// device from being found for as long as he does, and whoever sends a few packets cannot.
struct WideOpenings {
    /// What came under a name.
    struct Record: Equatable {
        let instance: String
        let interface: UInt32
        let txt: [UInt8]
    }

    /// A name is tried once in it.
    static var interval: Duration { .seconds(1) }
    /// Names that are tried within it: 40 ms of a second at the most.
    static var bound: Int { 20 }
    /// Records that wait for their turn under one name. One more is passed over.
    static var waitingOfOne: Int { 4 }
    /// Records that wait in all, of some 1,200 bytes at the most.
    static var waitingBound: Int { 64 }

    /// The names that were tried within the last interval, the one tried last comes last.
    private var tried: [(name: String, at: Instant)] = []
    /// What came first comes first.
    private var waiting: [Record] = []

    /// A record has come.
    ///
    /// - Returns: whether it is tried now; where not, it may have its turn later.
    mutating func admit(_ record: Record, at now: Instant) -> Bool {
        forgetTried(at: now)
        if waiting.allSatisfy({ $0.instance != record.instance && !isFree($0.instance) }), isFree(record.instance) {
            tried.append((record.instance, now))
            return true
        }
        let isKept =
            waiting.count < Self.waitingBound && !waiting.contains(record)
            && waiting.count(where: { $0.instance == record.instance }) < Self.waitingOfOne
        if isKept { waiting.append(record) }
        return false
    }

    /// Takes the next one of those whose turn has come, to be tried.
    mutating func next(at now: Instant) -> Record? {
        forgetTried(at: now)
        guard let index = waiting.firstIndex(where: { isFree($0.instance) }) else { return nil }
        tried.append((waiting[index].instance, now))
        return waiting.remove(at: index)
    }

    /// When the next turn comes; nil where nothing waits.
    var nextTurn: Instant? {
        waiting.isEmpty ? nil : tried.first.map { $0.at + Self.interval } ?? Instant(nanoseconds: 0)
    }

    /// What came under a name is said no more.
    mutating func forget(_ instance: String) { waiting.removeAll { $0.instance == instance } }

    private mutating func forgetTried(at now: Instant) { tried.removeAll { now - $0.at >= Self.interval } }

    private func isFree(_ instance: String) -> Bool {
        tried.count < Self.bound && !tried.contains { $0.name == instance }
    }
}
