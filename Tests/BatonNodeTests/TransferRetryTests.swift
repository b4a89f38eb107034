// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonMessages
import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonNode

/// When a document that stopped coming goes on by itself, by a clock that the test keeps.
@Suite("Going on by itself", .timeLimit(.minutes(5)))
struct TransferRetryTests {
    private let start = Instant(nanoseconds: 5_000_000_000)

    private func error(_ code: HandoffError.Code) -> Setback { NodeWorld.setback(of: HandoffError(code, "a test")) }

    @Test("Of every failure it is known whether it passes by itself")
    func verdicts() {
        let away: Set<HandoffError.Code> = [.connectionLost, .peerUnreachable, .timedOut, .noSuchClaim, .nodeStopping]
        for code in HandoffError.Code.allCases {
            var retry = TransferRetry(now: start)
            retry.note(bytes: 1, now: start)
            let verdict = retry.verdict(on: error(code), now: start)
            switch code {
            case .documentChanged: #expect(verdict == .describeAgain(after: .milliseconds(500)))
            case .limitExceeded:
                #expect(verdict == .waitForPlace(after: .milliseconds(500), until: start + .seconds(600)))
            case _ where away.contains(code):
                #expect(verdict == .waitForDevice(until: start + .seconds(600)), "\(code)")
            default: #expect(verdict == .giveUp, "\(code)")
            }
            // While a device is waited for it may not offer the activity yet, or have no place.
            let passes = away.union([.noSuchActivity, .limitExceeded])
            #expect(error(code).isAway == passes.contains(code), "\(code)")
        }
    }

    @Test("Ten minutes after the last byte it is over, and each byte begins them anew")
    func patience() {
        var retry = TransferRetry(now: start)
        retry.note(bytes: 1000, now: start + .seconds(60))
        let (almost, end) = (start + .seconds(659), start + .seconds(660))
        for code in [HandoffError.Code.connectionLost, .limitExceeded] {
            var late = retry
            #expect(late.verdict(on: error(code), now: almost) != .giveUp, "\(code)")
            late = retry
            #expect(late.verdict(on: error(code), now: end) == .giveUp, "\(code)")
            // What is said again is no progress, and a byte is.
            late = retry
            late.note(bytes: 1000, now: almost)
            #expect(late.verdict(on: error(code), now: end) == .giveUp, "\(code)")
            late.note(bytes: 1001, now: almost)
            #expect(late.verdict(on: error(code), now: end) != .giveUp, "\(code)")
        }
    }

    @Test("A device that takes what it is told is there: it is waited for from then on, although no byte has come")
    func told() {
        for code in [HandoffError.Code.connectionLost, .timedOut] {
            var retry = TransferRetry(now: start)
            retry.note(bytes: 0, told: start + .seconds(620), now: start + .seconds(621))
            let verdict = retry.verdict(on: error(code), now: start + .seconds(621))
            #expect(verdict == .waitForDevice(until: start + .seconds(1220)), "\(code)")
            #expect(retry.verdict(on: error(code), now: start + .seconds(1220)) == .giveUp, "\(code)")
            // A message from before the first byte begins nothing anew.
            retry.note(bytes: 1, told: start + .seconds(620), now: start + .seconds(1300))
            #expect(retry.verdict(on: error(code), now: start + .seconds(1899)) != .giveUp, "\(code)")
            #expect(retry.verdict(on: error(code), now: start + .seconds(1900)) == .giveUp, "\(code)")
        }
    }

    @Test("After two attempts in a row that told of copies and brought no byte the next one does without copies")
    func copies() {
        var retry = TransferRetry(now: start)
        func attempt(_ seconds: Int, bringing bytes: UInt64) {
            retry.note(bytes: bytes, told: start + .seconds(seconds), now: start + .seconds(seconds))
        }
        attempt(1, bringing: 0)
        #expect(retry.usesCopies)
        attempt(2, bringing: 1000)
        #expect(retry.usesCopies)
        attempt(3, bringing: 1000)
        #expect(retry.usesCopies)
        attempt(4, bringing: 1000)
        #expect(!retry.usesCopies)
        retry.note(bytes: 2000, now: start + .seconds(5))
        #expect(retry.usesCopies)
    }

    @Test("A device that can be reached and fails at once is given up; one that is busy is not")
    func failuresInARow() {
        var retry = TransferRetry(now: start)
        retry.note(bytes: 1, now: start)
        for number in 0..<TransferRetry.failureLimit {
            #expect(retry.verdict(on: error(.timedOut), now: start + .seconds(number)) != .giveUp)
        }
        var again = retry
        #expect(retry.verdict(on: error(.timedOut), now: start + .seconds(6)) == .giveUp)
        // A device that was away in between begins anew.
        #expect(again.verdict(on: error(.timedOut), now: start + .seconds(60)) != .giveUp)

        var busy = TransferRetry(now: start)
        #expect(busy.verdict(on: error(.limitExceeded), now: start) == .giveUp, "nothing has come: it is one too many")
        busy.note(bytes: 1, now: start)
        for tries in 0..<1000 {
            #expect(busy.verdict(on: error(.limitExceeded), now: start + .milliseconds(500 * tries)) != .giveUp)
        }
    }

    @Test("A document that changes all the time is given up, and has time to come to rest before")
    func changes() {
        var retry = TransferRetry(now: start)
        for _ in 0..<TransferRetry.changeLimit {
            guard case .describeAgain(let pause) = retry.verdict(on: error(.documentChanged), now: start) else {
                Issue.record("it was given up")
                return
            }
            #expect(pause >= .milliseconds(500) && pause <= TransferRetry.longestRest)
        }
        #expect(retry.verdict(on: error(.documentChanged), now: start) == .giveUp)
    }

    @Test("Only more than ever before is a reason to hope that a document comes to rest")
    func changesThatLose() {
        // Of each version a little comes, and each begins with less or more than the one before had.
        var retry = TransferRetry(now: start)
        retry.note(bytes: 1000, now: start)
        var verdicts: [TransferRetry.Verdict] = []
        for number in 0...TransferRetry.changeLimit {
            retry.note(bytes: number.isMultiple(of: 2) ? 400 : 900, now: start + .seconds(number))
            verdicts.append(retry.verdict(on: error(.documentChanged), now: start + .seconds(number)))
        }
        #expect(verdicts.dropLast().allSatisfy { $0 != .giveUp } && verdicts.last == .giveUp)
        // A growing document may change for as long as it is followed.
        var growing = TransferRetry(now: start)
        for number in 0..<100 {
            growing.note(bytes: UInt64(1000 + number), now: start)
            #expect(
                growing.verdict(on: error(.documentChanged), now: start) == .describeAgain(after: .milliseconds(500)))
        }
        // The bytes of a smaller version still keep the wait for its device from ending.
        var smaller = TransferRetry(now: start)
        smaller.note(bytes: 1000, now: start)
        smaller.note(bytes: 10, now: start + .seconds(500))
        #expect(smaller.verdict(on: error(.connectionLost), now: start + .seconds(700)) != .giveUp)
    }

    @Test("No pause of a wait is longer than a second, and the wait ends when it should")
    func pauses() {
        let end = start + TransferRetry.patience
        var wait = TransferRetry.Wait(until: end)
        var now = start
        var count = 0
        while let pause = wait.pause(now: now) {
            #expect(pause > .zero && pause + TransferRetry.shortestGap <= .seconds(1))
            #expect(now + pause < end)
            now = now + pause
            count += 1
        }
        #expect(now + .seconds(1) > end && now < end)
        #expect(count < 1300)
    }

    @Test("A device that is heard ends the pause at once, another does not")
    func heard() async throws {
        let waits = WaitList<String>(bound: 2, boundPerKey: 1)
        let waiting = Task { await waits.wait(for: "laptop", atMost: .seconds(3600)) }
        let other = Task { await waits.wait(for: "phone", atMost: .seconds(3600)) }
        let hearing = Task {
            while !Task.isCancelled {
                await waits.wake("laptop")
                try? await Task.sleep(for: .milliseconds(1))
            }
        }
        #expect(await waiting.value == .woken)
        hearing.cancel()
        // A wait ends with its task as well, and when its time is over.
        other.cancel()
        #expect(await other.value == .ended)
        #expect(await waits.wait(for: "laptop", atMost: .milliseconds(1)) == .ended)
    }
}

extension TransferRetry {
    fileprivate mutating func note(bytes: UInt64, told: Instant? = nil, now: Instant) {
        note(Attempt(bytes: bytes, told: told), now: now)
    }
}
