// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Testing

@testable import BatonCore

@Suite("Records that are tried with all keys")
struct FullKeyringRetriesTests {
    private static let start = Instant(nanoseconds: 5_000_000_000)

    /// Openings, told the time since the start.
    private final class Line {
        var openings = FullKeyringRetries()

        func admits(_ name: String, _ number: UInt8 = 0, after time: Duration) -> Bool {
            openings.admit(.init(instance: name, interface: 1, txt: [number]), at: FullKeyringRetriesTests.start + time)
        }

        /// The next one of those that wait.
        func next(after time: Duration) -> String? {
            openings.next(at: FullKeyringRetriesTests.start + time).map { "\($0.instance)\($0.txt[0])" }
        }
    }

    @Test("Twenty at once and then twenty a second, the one that came first before the others")
    func turns() {
        #expect(FullKeyringRetries.bound == 20)
        let line = Line()
        for number in 0..<FullKeyringRetries.bound { #expect(line.admits("a", UInt8(number), after: .zero)) }
        #expect(line.openings.nextTurn == nil)
        for name in ["late", "later"] { #expect(!line.admits(name, after: .milliseconds(49))) }
        #expect(line.openings.nextTurn == Self.start + .milliseconds(50))
        #expect(line.next(after: .milliseconds(49)) == nil)
        // An instance that comes then for the first time has no place before those that wait.
        #expect(!line.admits("last", after: .milliseconds(50)))
        #expect(line.next(after: .milliseconds(50)) == "late0" && line.next(after: .milliseconds(99)) == nil)
        #expect(line.next(after: .milliseconds(100)) == "later0")
        #expect(line.next(after: .milliseconds(150)) == "last0" && line.openings.nextTurn == nil)
        var tried = 0
        for moment in 0..<10_000 {
            let time = Duration.milliseconds(150 + moment)
            if line.next(after: time) != nil { tried += 1 }
            if line.admits("\(moment)", after: time) { tried += 1 }
        }
        #expect(abs(tried - 10 * FullKeyringRetries.bound) <= 1)
    }

    @Test("So many wait, of one name and in all, and none of them twice")
    func waiting() {
        #expect(FullKeyringRetries.waitingOfOne == 4 && FullKeyringRetries.waitingBound == 64)
        func waiting(_ comes: (Line) -> Void) -> [String] {
            let line = Line()
            for number in 0..<FullKeyringRetries.bound { _ = line.admits("first", UInt8(number), after: .zero) }
            comes(line)
            return (1...200).compactMap { line.next(after: .seconds($0)) }
        }
        let ofOne = waiting { line in
            for number in 0..<UInt8(10) { for _ in 0..<2 { _ = line.admits("a", number, after: .zero) } }
        }
        #expect(ofOne == ["a0", "a1", "a2", "a3"])
        let ofAll = waiting { line in
            for number in 0..<100 { for byte in 0..<UInt8(3) { _ = line.admits("\(number)", byte, after: .zero) } }
        }
        #expect(ofAll.count == FullKeyringRetries.waitingBound)
        let gone = waiting { line in
            for name in ["a", "b"] { for byte in 0..<UInt8(2) { _ = line.admits(name, byte, after: .zero) } }
            line.openings.forget("a")
        }
        #expect(gone == ["b0", "b1"])
    }
}
