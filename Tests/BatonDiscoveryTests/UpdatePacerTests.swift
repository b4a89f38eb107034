// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonDiscovery

@Suite struct UpdatePacerTests {
    private let start = Instant(nanoseconds: 0)

    /// Publishes at each of `changes` (seconds) and returns when what was sent.
    private func simulate(_ changes: [(Double, RecordChange)], until end: Double) -> [Double] {
        var pacer = UpdatePacer()
        var sent: [Double] = []
        var waiting = changes.map { (start + .milliseconds(Int(($0.0 * 1000).rounded())), $0.1) }[...]
        var now = start
        while true {
            // From event to event, as the timers of the owner would.
            let moments = [waiting.first?.0, pacer.deadline].compactMap { $0 }
            guard let next = moments.min(), next <= start + .seconds(end) else { break }
            now = max(now, next)
            while let (time, change) = waiting.first, time <= now {
                pacer.change(change)
                waiting.removeFirst()
            }
            if pacer.takeIfDue(now: now) != nil { sent.append((now - start) / .milliseconds(1) / 1000) }
        }
        return sent
    }

    @Test func firstChangeAfterQuietGoesAtOnce() {
        #expect(simulate([(5, .update), (60, .update)], until: 70) == [5, 60])
    }

    @Test func nothingIsSentWithoutAChange() {
        var pacer = UpdatePacer()
        #expect(pacer.deadline == nil)
        let unchanged = pacer.takeIfDue(now: start + .seconds(1000))
        #expect(unchanged == nil)
        pacer.change(.update)
        pacer.satisfy()
        let satisfied = pacer.takeIfDue(now: start + .seconds(1000))
        #expect(satisfied == nil)
    }

    @Test func changesWithinTheSpacingAreCollected() {
        #expect(simulate([(1, .update), (1.05, .update), (1.1, .update), (1.2, .update)], until: 20) == [1, 1.25])
    }

    @Test func fourInARowThenOneInSixSeconds() {
        let changes = (0..<200).map { (1 + Double($0) * 0.1, RecordChange.update) }
        #expect(simulate(changes, until: 30) == [1, 1.25, 1.5, 1.75, 7, 13, 19, 25])
    }

    @Test func aSteadyRateIsNeverDelayed() {
        let times = (0..<100).map { 6 * Double($0) }
        #expect(simulate(times.map { ($0, .update) }, until: 600) == times)
    }

    @Test func aCreditIsAlwaysLeftForAWithdrawal() {
        var changes = (0..<40).map { (1 + Double($0) * 0.1, RecordChange.update) }
        changes.append((5.05, .withdrawal))
        #expect(simulate(changes, until: 6) == [1, 1.25, 1.5, 1.75, 5.05])
    }

    @Test func aWithdrawalDoesNotWaitForTheSpacing() {
        #expect(simulate([(1, .update), (1.01, .withdrawal)], until: 3) == [1, 1.01])
    }

    @Test func withdrawalsAreRationedToo() {
        let changes = (0..<100).map { (1 + Double($0) * 0.01, RecordChange.withdrawal) }
        // Five credits in all, then as they are earned.
        #expect(simulate(changes, until: 12) == [1, 1.01, 1.02, 1.03, 1.04, 7])
    }

    @Test func anUpdateAfterASpentReserveWaitsForTwoCredits() {
        let first = (0..<4).map { (1 + Double($0) * 0.25, RecordChange.update) }
        #expect(
            simulate(first + [(2, .withdrawal), (2.5, .update)], until: 30) == [1, 1.25, 1.5, 1.75, 2, 13])
    }

    @Test func aWithdrawalThatWaitsStaysOneWhateverComesAfterIt() {
        var changes = (0..<5).map { (1 + Double($0) * 0.01, RecordChange.withdrawal) }
        changes += [(2, .withdrawal), (3, .update)]
        #expect(simulate(changes, until: 30) == [1, 1.01, 1.02, 1.03, 1.04, 7])
    }

    @Test("The most urgent of the changes that wait is the one that is sent")
    func mostUrgent() {
        var pacer = UpdatePacer()
        let rounds: [[RecordChange]] = [[.renewal], [.renewal, .update, .renewal], [.update, .withdrawal, .renewal]]
        for (round, changes) in rounds.enumerated() {
            for change in changes { pacer.change(change) }
            let sent = pacer.takeIfDue(now: start + .seconds(1000 * (round + 1)))
            #expect(sent == changes.max())
        }
    }

    @Test("Of thirty changes in 3 s the ration sends five, and the last one within a refill")
    func burst() {
        let changes = (0..<30).map { (1 + Double($0) * 0.1, RecordChange.withdrawal) }
        #expect(simulate(changes, until: 60) == [1, 1.1, 1.2, 1.3, 1.4, 7])
    }

    @Test(
        "A record that was sent unrationed is never old for longer than the spacing",
        arguments: [UInt64(1), 2, 3, 4, 5])
    func unrationed(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var pacer = UpdatePacer()
        var now = start
        var isRationed = false
        var rationed = 0
        for _ in 0..<2000 {
            now = now + .milliseconds(Int(generator.next() % 14_000))
            // A change that waited was sent by its timer before this one came.
            while let deadline = pacer.deadline, deadline <= now,
                pacer.takeIfDue(now: deadline) != nil
            {
                isRationed = pacer.isRationed(now: deadline)
            }
            let isWithdrawal = generator.next() % 4 == 0
            pacer.change(isWithdrawal ? .withdrawal : .update)
            if !isRationed, let deadline = pacer.deadline {
                #expect(deadline <= now + .milliseconds(250), "seed \(seed), at \(now)")
            }
            if pacer.takeIfDue(now: now) != nil { isRationed = pacer.isRationed(now: now) }
            if isRationed { rationed += 1 }
        }
        #expect(rationed > 100 && rationed < 1900, "both are seen: \(rationed), seed \(seed)")
    }

    @Test("The ration ends with what has been earned")
    func rationEnds() {
        var pacer = UpdatePacer()
        #expect(!pacer.isRationed(now: start))
        for millisecond in 0..<5 {
            pacer.change(.withdrawal)
            let isSent = pacer.takeIfDue(now: start + .milliseconds(millisecond)) != nil
            #expect(isSent && pacer.isRationed(now: start + .milliseconds(millisecond)) == (millisecond > 2))
        }
        #expect(pacer.isRationed(now: start + .seconds(11)))
        #expect(!pacer.isRationed(now: start + .seconds(12)))
    }

    @Test("Only one version of a record is ever sent")
    func oneVersion() {
        for isRationed in [false, true] {
            var record = PublishedRecord(settled: [1], rationed: [2])
            let first = record.text(isRationed: isRationed)
            let again = record.text(isRationed: !isRationed)
            #expect(first == (isRationed ? [2] : [1]) && again == first)
        }
    }

    @Test(arguments: [UInt64(1), 2, 3, 4, 5])
    func neverMoreThanTheRationInAnyWindow(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let changes = (0..<400)
            .map { _ in Double(generator.next() % 300_000) / 1000 }.sorted()
            .map { ($0, generator.next() % 4 == 0 ? RecordChange.withdrawal : .update) }
        let sent = simulate(changes, until: 320)
        for (index, start) in sent.enumerated() {
            for (count, time) in sent[index...].enumerated() {
                #expect(Double(count + 1) <= 5 + (time - start) / 6 + 0.01, "seed \(seed)")
            }
        }
    }
}
