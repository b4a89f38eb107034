// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Testing

@testable import BatonDocuments

@Suite("Transfer progress")
struct TransferProgressTests {
    let start = Instant(nanoseconds: 5_000_000_000)

    func at(_ milliseconds: Int) -> Instant { start + .milliseconds(milliseconds) }

    @Test func steadyTransfer() throws {
        var progress = TransferProgress(total: 1 << 30, now: start)
        #expect(progress.rate(now: start) == nil)
        #expect(progress.timeLeft(now: start) == nil)
        for tick in 1...20 { progress.update(bytes: UInt64(tick) * 10_000_000, now: at(tick * 100)) }
        #expect(progress.rate(now: at(2000)) == 100_000_000)
        let left = try #require(progress.timeLeft(now: at(2000)))
        #expect(left > .seconds(8) && left < .seconds(9))
        #expect(progress.summary(now: at(2000)) == "191 MiB of 1.0 GiB, 95 MiB/s, 9 s left")
    }

    @Test func rateFollowsTheLastSeconds() throws {
        var progress = TransferProgress(total: 1 << 40, now: start)
        var bytes: UInt64 = 0
        for tick in 1...200 {
            bytes += tick <= 100 ? 1000 : 50_000
            progress.update(bytes: bytes, now: at(tick * 100))
        }
        #expect(progress.rate(now: at(20_000)) == 500_000)
    }

    @Test func rateFallsWhileStalled() throws {
        var progress = TransferProgress(total: 1 << 30, now: start)
        for tick in 1...40 { progress.update(bytes: UInt64(tick) * 1_000_000, now: at(tick * 100)) }
        let moving = try #require(progress.rate(now: at(4000)))
        let later = try #require(progress.rate(now: at(6000)))
        #expect(later < moving)
        progress.update(bytes: 40_000_000, now: at(8000))
        progress.update(bytes: 40_000_000, now: at(12_000))
        #expect(progress.rate(now: at(12_000)) == 0)
        #expect(progress.timeLeft(now: at(12_000)) == nil)
        #expect(progress.summary(now: at(12_000)) == "38 MiB of 1.0 GiB, stalled")
    }

    @Test func resumedBytesAreNoRate() throws {
        var progress = TransferProgress(total: 1000, bytes: 900, now: start)
        progress.update(bytes: 950, now: at(1000))
        #expect(progress.rate(now: at(1000)) == 50)
        #expect(progress.fraction == 0.95)
    }

    @Test func countsAreHeldToWhatCanBe() {
        var progress = TransferProgress(total: 100, now: start)
        progress.update(bytes: 60, now: at(100))
        progress.update(bytes: .max, now: at(300))
        #expect(progress.isComplete)
        #expect(progress.timeLeft(now: at(300)) == .zero)
        #expect(progress.summary(now: at(300)) == "100 bytes")
        #expect(TransferProgress(total: 0, now: start).fraction == 1)
    }

    @Test("Fewer bytes than before are another version of the document, of which nothing is known yet")
    func beginsAnew() {
        var progress = TransferProgress(total: 1000, now: start)
        progress.update(bytes: 700, now: at(1000))
        #expect(progress.rate(now: at(1000)) == 700)
        progress.update(bytes: 100, now: at(2000))
        #expect(progress.bytes == 100 && progress.start == at(2000))
        #expect(progress.rate(now: at(2000)) == nil)
        // The rate leaves out earlier bytes and the time that they took.
        progress.update(bytes: 200, now: at(3000))
        #expect(progress.rate(now: at(3000)) == 100)
    }

    @Test func samplesAreBounded() {
        var progress = TransferProgress(total: .max, now: start)
        for tick in 0..<100_000 { progress.update(bytes: UInt64(tick), now: start + .microseconds(tick * 50)) }
        #expect(progress.samples.count <= TransferProgress.sampleLimit)
        #expect(progress.samples.count > 20)
    }

    @Test(
        arguments: [
            (0, "0 bytes"), (1, "1 byte"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (1536, "1.5 KiB"),
            (10 * 1024, "10 KiB"), (10 * 1024 - 1, "10 KiB"), (412 << 20, "412 MiB"), (1 << 30, "1.0 GiB"),
            ((1 << 30) - 1, "1.0 GiB"), ((1 << 20) - 512, "1.0 MiB"), ((1 << 20) - 513, "1023 KiB"),
            (1 << 40, "1.0 TiB"), (.max, "16 EiB"),
        ] as [(UInt64, String)])
    func sizes(_ count: UInt64, _ text: String) {
        #expect(HumanUnits.bytes(count) == text)
    }

    @Test func rates() {
        #expect(HumanUnits.rate(610 * 1_048_576) == "610 MiB/s")
        #expect(HumanUnits.rate(0) == "0 bytes/s")
        for odd in [Double.infinity, .nan, -1] { #expect(HumanUnits.rate(odd) == "? bytes/s") }
        #expect(HumanUnits.rate(1e300) == "888 PiB/s")
    }

    @Test(arguments: [
        (Duration.zero, "0 s"), (.milliseconds(1), "1 s"), (.seconds(59), "59 s"), (.milliseconds(59_001), "1 min"),
        (.seconds(125), "2 min 5 s"), (.seconds(3600), "1 h"), (.seconds(3780), "1 h 3 min"),
        (.seconds(51 * 3600), "2 d 3 h"), (.seconds(-5), "0 s"),
    ])
    func durations(_ duration: Duration, _ text: String) {
        #expect(HumanUnits.duration(duration) == text)
    }
}
