// SPDX-License-Identifier: Apache-2.0

package import BatonAccount
import BatonProtocol

/// Mutated advertisements against a device that knows the real ones, and what became of them.
package struct AdvertisementSiege {
    /// Records that were refused: no key of the account opened them.
    package private(set) var refused = 0
    /// Records whose seal was a real one's, unchanged: opened, and counted for nothing.
    package private(set) var known = 0
    /// Failures: records that were accepted, or taken for a member's, or that changed the guard. At most 16.
    package private(set) var breaches: [[UInt8]] = []

    private let mutator: AdvertisementMutator
    private let opener: AdvertisementOpener
    private let real: Set<Advertisement>
    private let before: ReplayGuard
    private var replays = ReplayGuard()

    /// - Parameters:
    ///   - records: Real advertisements as sealing gives them, in the order in which they were sealed.
    ///   - opener: Of a device that opens them all.
    package init(records: [[[UInt8]]], opener: AdvertisementOpener) throws {
        mutator = AdvertisementMutator(records: records)
        self.opener = opener
        var real: Set<Advertisement> = []
        for record in records {
            let advertisement = try opener.open(AdvertisementMutator.raw(record)).advertisement
            _ = replays.judge(advertisement, unixTime: 1000)
            real.insert(advertisement)
        }
        self.real = real
        replays.markSaved()
        before = replays
    }

    /// Whether the guard is as it was before the first round.
    package var isStateUnchanged: Bool { replays == before }

    /// Sends so many mutated records.
    package mutating func run(rounds: Int, using generator: inout SeededGenerator) {
        for _ in 0..<rounds {
            let record = mutator.next(using: &generator)
            let isGood: Bool
            do throws(AdvertisementError) {
                let opened = try opener.open(record).advertisement
                let verdict = replays.judge(opened, unixTime: 1000)
                isGood = real.contains(opened) && (verdict == .duplicate || verdict == .replayed)
                known += 1
            } catch {
                isGood = !error.isByMember
                refused += 1
            }
            if !isGood, breaches.count < 16 { breaches.append(record) }
        }
    }
}
