// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Testing

@testable import BatonProtocol

@Suite struct ValueTests {
    @Test func instantsSaturate() {
        let instant = Instant(nanoseconds: 100)
        #expect(instant + .nanoseconds(50) == Instant(nanoseconds: 150))
        #expect(instant + .nanoseconds(-50) == Instant(nanoseconds: 50))
        #expect(instant + .seconds(-1) == Instant(nanoseconds: 0))
        #expect(Instant(nanoseconds: .max) + .seconds(1) == Instant(nanoseconds: .max))
        #expect(instant + .seconds(Int64.max) > instant)
        #expect(instant - Instant(nanoseconds: 30) == .nanoseconds(70))
        #expect(Instant(nanoseconds: 30) - instant == .nanoseconds(-70))
        #expect(Instant(nanoseconds: 30) < instant)
    }

    @Test func buffersTakeWhatFits() {
        let buffer = Buffer(capacity: 5)
        #expect(buffer.bytes.isEmpty)
        [1, 2, 3].withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
            let three = UnsafeRawBufferPointer(rebasing: bytes[..<3])
            #expect(buffer.append(three) == 3)
            #expect(buffer.append(three) == 2)
            #expect(buffer.append(three) == 0)
        }
        #expect(buffer.count == 5)
        buffer.count = 1
        #expect(buffer.bytes.count == 1)
        #expect(Buffer(copying: [9, 8]).withBytes { Array($0) } == [9, 8])
        #expect(Buffer(copying: []).withBytes { $0.isEmpty })
    }

    @Test(arguments: UInt64(1)...10) func queueBehavesAsAnArray(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var queue = Queue<Int>()
        var model: [Int] = []
        for step in 0..<2000 {
            switch Int.random(in: 0..<10, using: &generator) {
            case 0...5:
                queue.append(step)
                model.append(step)
            case 6...8:
                #expect(queue.popFirst() == (model.isEmpty ? nil : model.removeFirst()))
            default:
                queue.keep { $0 % 3 != 0 }
                model.removeAll { $0 % 3 == 0 }
            }
            #expect(queue.count == model.count && queue.first == model.first)
        }
    }

    @Test func sendWindowNeverFalls() {
        var window = SendWindow(limit: 10)
        window.send(10)
        #expect(window.available == 0)
        #expect(window.raise(to: 10) == false)
        #expect(window.raise(to: 3) == false)
        #expect(window.raise(to: 11) == true)
        #expect(window.available == 1)
    }

    @Test(arguments: UInt64(1)...50) func receiveWindowKeepsItsInvariants(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let maximum = Int.random(in: 1...100_000, using: &generator)
        var window = ReceiveWindow(size: .random(in: 1...maximum, using: &generator), parts: 4)
        for _ in 0..<3000 {
            let before = window
            switch Int.random(in: 0..<3, using: &generator) {
            case 0:
                let count = Int.random(in: 0...2 * maximum, using: &generator)
                let fits = UInt64(count) <= window.granted - window.received
                #expect(window.receive(count) == fits, "seed \(seed)")
            case 1:
                let count = Int.random(in: 0...window.unconsumed, using: &generator)
                window.consume(count)
                window.grow(to: .random(in: 0...maximum, using: &generator))
            default:
                if window.isCreditDue { #expect(window.grant() == window.granted, "seed \(seed)") }
            }
            #expect(window.consumed <= window.received && window.received <= window.granted, "seed \(seed)")
            #expect(window.granted <= window.consumed + UInt64(window.size), "seed \(seed)")
            #expect(window.granted >= before.granted && window.size >= before.size, "seed \(seed)")
            #expect(window.size <= maximum, "seed \(seed)")
            // A peer that has used all its credit gets more when all of it is consumed, so no stream is stuck.
            if window.consumed == window.granted { #expect(window.isCreditDue, "seed \(seed)") }
        }
    }

    @Test func bucketsRefillAndOverflowIsHarmless() {
        var bucket = TokenBucket(Budget(burst: 2, perSecond: 1), now: Instant(nanoseconds: 0))
        let start = Instant(nanoseconds: 0)
        #expect(bucket.spend(now: start) == true)
        #expect(bucket.spend(now: start) == true)
        #expect(bucket.spend(now: start) == false)
        #expect(bucket.spend(now: start + .milliseconds(999)) == false)
        #expect(bucket.spend(now: start + .seconds(1)) == true)
        #expect(bucket.spend(now: start) == false)
        #expect(bucket.spend(now: Instant(nanoseconds: .max)) == true)
        #expect(bucket.spend(now: Instant(nanoseconds: .max)) == true)
        #expect(bucket.spend(now: Instant(nanoseconds: .max)) == false)
        bucket.refund(5)
        #expect(bucket.spend(now: start) == true)
        #expect(bucket.spend(now: start) == true)
        #expect(bucket.spend(now: start) == false)
    }

    @Test func unknownCodesSurvive() {
        #expect(ApplicationErrorCode(rawValue: 7) == .sourceChanged)
        #expect(ApplicationErrorCode(rawValue: 12_345).description == "code 12345")
    }
}
