// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonDocuments

/// Simulated time. The link, the content and the noise are made up from a seed.
@Suite("Compression policy")
struct CompressionPolicyTests {
    @Test func fastLinkIsLeftAlone() {
        for rate in [600e6, 1e9, 3e9] {
            var simulation = LinkSimulation(rate: { _ in rate }, ratio: { _ in 0.3 })
            simulation.run(seconds: 60)
            #expect(simulation.compressedShare(from: 0, to: 60) < 0.01, "\(rate): \(simulation)")
            #expect(simulation.timeCompressing(from: 0, to: 60) < 0.02 * 60, "\(rate): \(simulation)")
            #expect(!simulation.policy.isCompressing)
        }
    }

    @Test func slowLinkCompressesWhatShrinks() {
        for rate in [125e3, 1.25e6, 12.5e6, 60e6, 125e6] {
            for ratio in [0.05, 0.3, 0.5] {
                var simulation = LinkSimulation(rate: { _ in rate }, ratio: { _ in ratio })
                simulation.run(seconds: 300)
                let share = simulation.compressedShare(from: 60, to: 300)
                #expect(share > 0.9, "\(rate), \(ratio): \(share), \(simulation)")
                #expect(simulation.changes <= 1 + 2 * 300 / 5, "\(rate), \(ratio): \(simulation)")
                // The whole point: against a link that carries plain chunks all the time.
                let gain = simulation.contentRate(from: 60, to: 300) / rate
                #expect(gain > 1.5, "\(rate), \(ratio): \(gain), \(simulation)")
            }
        }
    }

    @Test func whatDoesNotShrinkCostsNextToNothing() {
        for rate in [1.25e6, 12.5e6, 125e6, 1e9] {
            var simulation = LinkSimulation(rate: { _ in rate }, ratio: { _ in 1 })
            simulation.run(seconds: 120)
            #expect(simulation.timeCompressing(from: 0, to: 120) < 0.02 * 120, "\(rate): \(simulation)")
            #expect(simulation.changes == 0, "\(rate): \(simulation)")
            // Still a try now and then.
            #expect(rate > 500e6 || simulation.tries > 5, "\(rate): \(simulation)")
        }
    }

    @Test func contentThatNoLongerShrinksIsPlainWithinASecond() {
        for (rate, ratio) in [
            (1.25e6, 0.3), (3e6, 0.3), (6e6, 0.3), (12.5e6, 0.3), (60e6, 0.3), (100e6, 0.3),
            // Content that shrank to almost nothing weighs more.
            (3e6, 0.05), (6e6, 0.05), (12.5e6, 0.05),
        ] {
            var simulation = LinkSimulation(rate: { _ in rate }, ratio: { $0 < 20 ? ratio : 1 })
            simulation.run(seconds: 20)
            // A link that is idle is measured now and then, perhaps at this moment.
            #expect(simulation.compressedShare(from: 10, to: 20) > 0.9, "\(rate), \(ratio): \(simulation)")
            simulation.run(seconds: 1)
            #expect(!simulation.policy.isCompressing, "\(rate), \(ratio): \(simulation)")
        }
    }

    @Test func contentThatBeginsToShrinkIsFoundWithinASecond() {
        for rate in [12.5e6, 60e6] {
            var simulation = LinkSimulation(rate: { _ in rate }, ratio: { $0 < 20 ? 1 : 0.3 })
            simulation.run(seconds: 21)
            #expect(simulation.policy.isCompressing, "\(rate): \(simulation)")
        }
    }

    @Test func linkThatBecomesFastIsNoticed() {
        var simulation = LinkSimulation(rate: { $0 < 30 ? 12.5e6 : 2e9 }, ratio: { _ in 0.3 })
        simulation.run(seconds: 30)
        #expect(simulation.policy.isCompressing)
        simulation.run(seconds: 1)
        #expect(!simulation.policy.isCompressing, "\(simulation)")
        simulation.run(seconds: 30)
        #expect(simulation.compressedShare(from: 31, to: 60) < 0.01, "\(simulation)")
    }

    @Test func linkThatBecomesSlowIsNoticed() {
        var simulation = LinkSimulation(rate: { $0 < 30 ? 2e9 : 12.5e6 }, ratio: { _ in 0.3 })
        simulation.run(seconds: 30)
        #expect(!simulation.policy.isCompressing)
        simulation.run(seconds: 6)
        #expect(simulation.policy.isCompressing, "\(simulation)")
    }

    /// Content that alternates, and links at the border of what pays.
    @Test func alternationAndBordersCostNextToNothing() {
        for (rate, period, gain) in [
            (12.5e6, 3.0, 1.4), (12.5e6, 0.5, 1.2), (60e6, 3, 1.4), (60e6, 0.5, 1.3), (60e6, 8, 1.4),
            (250e6, 1000, 0.97), (300e6, 1000, 0.97), (350e6, 1000, 0.97),
        ] {
            var simulation = LinkSimulation(
                rate: { _ in rate }, ratio: { Int($0 / period).isMultiple(of: 2) ? 0.45 : 1 })
            simulation.run(seconds: 300)
            let reached = simulation.contentRate(from: 10, to: 300) / rate
            #expect(reached > gain, "\(rate), \(period): \(reached), \(simulation)")
        }
    }

    @Test func noiseDoesNotMislead() {
        for round in 0..<10 {
            let seed = SeededGenerator.chosenSeed
            var slow = LinkSimulation(rate: { _ in 12.5e6 }, ratio: { _ in 0.4 }, noise: 0.6, seed: seed)
            slow.run(seconds: 120)
            #expect(slow.compressedShare(from: 10, to: 120) > 0.95, "round \(round): \(slow)")
            #expect(slow.changes <= 5, "round \(round): \(slow)")
            var fast = LinkSimulation(rate: { _ in 1.5e9 }, ratio: { _ in 0.4 }, noise: 0.6, seed: seed)
            fast.run(seconds: 60)
            #expect(fast.compressedShare(from: 1, to: 60) < 0.02, "round \(round): \(fast)")
        }
    }

    /// A stream that was reset never tells what became of its try.
    @Test func tryWithoutAnOutcomeIsAskedForAgain() {
        var now = Instant(nanoseconds: 0)
        var policy = CompressionPolicy(now: now)
        let untried = policy.shouldCompress(now: now)
        #expect(!untried)
        now = now + .milliseconds(100)
        policy.record(
            .init(contentSize: 1 << 20, wireSize: 1 << 20, compressing: nil, waiting: .milliseconds(90)), now: now)
        var answers: [Bool] = []
        for seconds in [0.0, 0, 0.2, 0.25, 0.3] { answers.append(policy.shouldCompress(now: now + .seconds(seconds))) }
        #expect(answers == [true, false, false, true, false])
    }
}
