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
            var retry = TransferRetry()
            let verdict = retry.note(1, code, start)
            switch code {
            case .documentChanged: #expect(verdict == .describeAgain(after: .milliseconds(500)))
            case .limitExceeded: #expect(verdict == .waitForPlace(until: start + .seconds(600)))
            case _ where away.contains(code):
                #expect(verdict == .waitForDevice(until: start + .seconds(600)), "\(code)")
            default: #expect(verdict == .giveUp, "\(code)")
            }
            // While a device is waited for it may not offer the activity yet, or have no place.
            let passes = away.union([.noSuchActivity, .limitExceeded])
            #expect(error(code).isAway == passes.contains(code), "\(code)")
        }
    }

    @Test("Ten minutes after the first failure since the last byte it is over, and each byte begins them anew")
    func patience() {
        for code in [HandoffError.Code.connectionLost, .limitExceeded] {
            var retry = TransferRetry()
            #expect(retry.note(1000, code, start) != .giveUp)
            var late = retry
            #expect(late.note(1000, code, start + .seconds(599)) != .giveUp, "\(code)")
            // What is said again is no progress, and a byte is.
            #expect(late.note(1000, code, start + .seconds(600)) == .giveUp, "\(code)")
            late = retry
            #expect(late.note(1001, code, start + .seconds(700)) != .giveUp, "\(code)")
        }
        // Reading older copies may take longer than that, and no byte comes meanwhile.
        var slow = TransferRetry()
        #expect(slow.note(0, .connectionLost, start + .seconds(900)) == .waitForDevice(until: start + .seconds(1500)))
        // So does the next attempt, if it tells of them as well.
        #expect(slow.note(0, hasTold: true, .connectionLost, start + .seconds(1800)) != .giveUp)
    }

    @Test("After two attempts in a row that told of copies and brought no byte the next one does without copies")
    func copies() {
        var retry = TransferRetry()
        for (second, bytes, usesCopies) in [(1, 0, true), (2, 1000, true), (33, 1000, true), (64, 1000, false)] {
            _ = retry.note(UInt64(bytes), hasTold: true, .connectionLost, start + .seconds(second))
            #expect(retry.usesCopies == usesCopies, "\(second)")
        }
        _ = retry.note(2000, .connectionLost, start + .seconds(65))
        #expect(retry.usesCopies)
        for number in 0..<4 { _ = retry.note(2000, .connectionLost, start + .seconds(66 + number)) }
        #expect(retry.usesCopies)
    }

    @Test("A device that can be reached and fails at once is given up; one that is busy is not")
    func failuresInARow() {
        var retry = TransferRetry()
        for number in 0..<TransferRetry.failureLimit {
            #expect(retry.note(1, .timedOut, start + .seconds(number)) != .giveUp)
        }
        var again = retry
        #expect(retry.note(1, .timedOut, start + .seconds(6)) == .giveUp)
        // A device that was away in between begins anew.
        #expect(again.note(1, .timedOut, start + .seconds(60)) != .giveUp)

        var busy = TransferRetry()
        #expect(busy.note(0, .limitExceeded, start) == .giveUp, "nothing has come: it is one too many")
        for tries in 0..<1000 {
            #expect(busy.note(1, .limitExceeded, start + .milliseconds(500 * tries)) != .giveUp)
        }
    }

    @Test("A document that changes all the time is given up, and has time to come to rest before")
    func changes() {
        var retry = TransferRetry()
        for _ in 0..<TransferRetry.changeLimit {
            guard case .describeAgain(let pause) = retry.note(0, .documentChanged, start) else {
                Issue.record("it was given up")
                return
            }
            #expect(pause >= .milliseconds(500) && pause <= TransferRetry.longestRest)
        }
        #expect(retry.note(0, .documentChanged, start) == .giveUp)
    }

    @Test("Only more than ever before is a reason to hope that a document comes to rest")
    func changesThatLose() {
        // Of each version a little comes, and each begins with less or more than the one before had.
        var retry = TransferRetry()
        var verdicts = [retry.note(1000, .documentChanged, start)]
        for number in 1...TransferRetry.changeLimit {
            let bytes: UInt64 = number.isMultiple(of: 2) ? 400 : 900
            verdicts.append(retry.note(bytes, .documentChanged, start + .seconds(number)))
        }
        #expect(verdicts.dropLast().allSatisfy { $0 != .giveUp } && verdicts.last == .giveUp)
        // A growing document may change for as long as it is followed.
        var growing = TransferRetry()
        for number in 0..<100 {
            let verdict = growing.note(UInt64(1000 + number), .documentChanged, start)
            #expect(verdict == .describeAgain(after: .milliseconds(500)))
        }
        // The bytes of a smaller version still keep the wait for its device from ending.
        var smaller = TransferRetry()
        _ = smaller.note(1000, .connectionLost, start)
        #expect(smaller.note(10, .connectionLost, start + .seconds(700)) != .giveUp)
    }

    @Test("A wait ends when its key is woken, and not with another")
    func woken() async throws {
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
    /// An attempt has ended with so many bytes, for a reason.
    fileprivate mutating func note(
        _ bytes: UInt64, hasTold: Bool = false, _ code: HandoffError.Code, _ now: Instant
    ) -> Verdict {
        note(Attempt(bytes: bytes, hasTold: hasTold), NodeWorld.setback(of: HandoffError(code, "a test")), now: now)
    }
}
