// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Testing

@testable import BatonDiscovery

@Suite struct QueryBudgetTests {
    /// Drives a budget in simulated time and checks its bounds after every step.
    private struct Bench {
        var budget = QueryBudget()
        var now: Duration = .zero
        var open: Set<String> = []
        var opened: [String] = []

        mutating func settle() {
            while let action = budget.nextAction(now: now) {
                switch action {
                case .open(let name):
                    #expect(open.insert(name).inserted, "\(name) opened twice")
                    opened.append(name)
                case .close(let name): #expect(open.remove(name) != nil, "\(name) closed twice")
                }
            }
            let usage = budget.usage
            #expect(usage.probing <= 16)
            #expect(open.count == usage.probing)
        }

        mutating func appear(_ names: String...) {
            for name in names { _ = budget.appear(name) }
            settle()
        }

        // The owner closes the query of an instance that it has given a verdict on, or that has gone.
        mutating func hear(_ name: String, isKept: Bool) {
            budget.hear(name, isKept: isKept)
            open.remove(name)
        }

        mutating func reject(_ name: String) {
            budget.reject(name, now: now)
            open.remove(name)
        }

        mutating func disappear(_ name: String) {
            budget.disappear(name)
            open.remove(name)
        }

        /// Lets time pass from deadline to deadline.
        mutating func advance(to end: Duration) {
            var steps = 0
            while let deadline = budget.deadline, deadline <= end {
                now = max(now, deadline)
                settle()
                steps += 1
                #expect(steps < 100_000, "a deadline that never moves")
                if steps >= 100_000 { break }
            }
            now = end
            settle()
        }
    }

    @Test func aFewInstancesAreAllProbedAndStay() {
        var bench = Bench()
        bench.appear("a", "b", "c")
        bench.advance(to: .seconds(100))
        #expect(bench.open == ["a", "b", "c"])
        #expect(bench.opened.count == 3)
    }

    @Test func sixteenProbeAndTheNextTakesThePlaceAfterATurn() {
        var bench = Bench()
        for index in 0..<17 {
            bench.appear("n\(index)")
            bench.now += .milliseconds(1)
        }
        #expect(bench.open.count == 16 && !bench.open.contains("n16"))
        bench.advance(to: .milliseconds(74))
        #expect(!bench.open.contains("n16"))
        bench.advance(to: .milliseconds(75))
        #expect(bench.open.contains("n16") && !bench.open.contains("n0"))
    }

    @Test func whatIsNewGoesFirst() {
        var bench = Bench()
        for index in 0..<200 { bench.appear("silent\(index)") }
        bench.advance(to: .seconds(10))
        bench.appear("new")
        bench.advance(to: bench.now + .milliseconds(600))
        #expect(bench.opened.contains("new"))
    }

    @Test func whatLostItsPlaceGetsAnotherTurn() {
        var bench = Bench()
        for index in 0..<40 { bench.appear("n\(index)") }
        bench.advance(to: .seconds(30))
        for index in 0..<40 {
            #expect(bench.opened.filter { $0 == "n\(index)" }.count >= 2, "n\(index)")
        }
    }

    @Test func aFloodOfNewInstancesStarvesNobody() {
        var bench = Bench()
        bench.appear("patient")
        bench.budget.fail("patient", now: bench.now)
        bench.open.remove("patient")
        for index in 0..<1500 {
            bench.advance(to: bench.now + .milliseconds(20))
            bench.appear("flood\(index)")
        }
        #expect(bench.opened.filter { $0 == "patient" }.count >= 2)
    }

    /// The kind of flood that a node sees at once when it starts, or when its link comes up.
    enum Flood: CaseIterable {
        /// Each shows a record that nobody here can read.
        case rejected
        /// There is a name, and no record.
        case silent
    }

    @Test("One of 1,500 that come at once is found within 10 s", arguments: [16, 100, 450, 800, 1000], Flood.allCases)
    func burst(place: Int, flood: Flood) {
        var bench = Bench()
        for index in 0..<1502 { _ = bench.budget.appear(index == place ? "real" : "n\(index)") }
        bench.settle()
        // The responder knows its record.
        let answer = Duration.milliseconds(30)
        var since: [String: Duration] = [:]
        while bench.now < .seconds(10) {
            since = since.filter { bench.open.contains($0.key) }
            for name in bench.open where since[name] == nil { since[name] = bench.now }
            let heard = since.filter { $0.value + answer <= bench.now }.keys
            if heard.contains("real") { break }
            if flood == .rejected { for name in heard { bench.reject(name) } }
            bench.advance(to: bench.now + .milliseconds(15))
        }
        #expect(bench.now < .seconds(9), "\(bench.now)")
    }

    @Test func aSecondTurnIsAWholeOneHoweverManyWait() {
        var bench = Bench()
        bench.appear("patient")
        bench.budget.fail("patient", now: bench.now)
        bench.open.remove("patient")
        for index in 0..<100 { _ = bench.budget.appear("n\(index)") }
        bench.settle()
        var turn: [Duration] = []
        while bench.now < .seconds(3) {
            if bench.open.contains("patient") { turn.append(bench.now) }
            bench.advance(to: bench.now + .milliseconds(5))
        }
        #expect(turn.last.map { $0 - turn[0] } ?? .zero >= .milliseconds(290))
    }

    @Test func whatWasLookedAtInVainIsForgottenFirst() {
        let bound = QueryBudget.tracked
        var bench = Bench()
        bench.appear("rejected")
        for index in 0..<(bound - 1) { _ = bench.budget.appear("n\(index)") }
        bench.settle()
        bench.reject("rejected")
        bench.settle()
        #expect(bench.budget.appear("late") == "rejected")
        // No query is open for the next one.
        let forgotten = bench.budget.appear("later")
        #expect(forgotten.map { !bench.open.contains($0) && !bench.budget.isTracking($0) } == true)
    }

    @Test func trackedInstancesAreBoundedAndKnownOnesStay() {
        var bench = Bench()
        bench.appear("friend")
        bench.hear("friend", isKept: true)
        let bound = QueryBudget.tracked
        for index in 0..<(bound + 76) { _ = bench.budget.appear("n\(index)") }
        bench.settle()
        #expect((0..<(bound + 76)).count { bench.budget.isTracking("n\($0)") } == bound - 1)
        #expect(bench.budget.isHeard("friend"))
    }

    @Test func aKeptInstanceNeedsNoQuery() {
        var bench = Bench()
        for index in 0..<100 {
            bench.appear("n\(index)")
            bench.hear("n\(index)", isKept: true)
            bench.settle()
        }
        #expect(bench.budget.usage == (100, 0) && bench.opened.count == 100)
        bench.advance(to: .seconds(3600))
        #expect(bench.opened.count == 100)
    }

    @Test func aKeptInstanceIsNotQueriedAgainInAFlood() {
        var bench = Bench()
        bench.appear("friend")
        bench.hear("friend", isKept: true)
        for index in 0..<200 { bench.appear("n\(index)") }
        bench.advance(to: .seconds(60))
        #expect(bench.budget.isHeard("friend"))
        #expect(bench.opened.filter { $0 == "friend" } == ["friend"])
    }

    @Test func aVerdictAfterTheTurnStillCounts() {
        var bench = Bench()
        for index in 0..<17 { bench.appear("n\(index)") }
        bench.advance(to: .milliseconds(300))
        let late = "n0"
        #expect(!bench.open.contains(late) || bench.open.count == 16)
        bench.hear(late, isKept: true)
        bench.settle()
        #expect(bench.budget.isHeard(late))
        #expect(bench.budget.usage.kept == 1)
    }

    @Test func aFollowedInstanceNeedsNoQueryAndIsNotKept() {
        var bench = Bench()
        for index in 0..<10 {
            bench.appear("n\(index)")
            bench.hear("n\(index)", isKept: false)
            bench.settle()
        }
        #expect(bench.budget.usage == (0, 0) && bench.budget.isHeard("n0"))
        bench.hear("n0", isKept: true)
        bench.settle()
        #expect(bench.budget.usage == (1, 0))
        bench.hear("n0", isKept: false)
        bench.settle()
        #expect(bench.budget.usage == (0, 0) && bench.budget.isHeard("n0"))
    }

    @Test func whoWasHeardAndIsFollowedMakesRoomAtOnce() throws {
        var bench = Bench()
        for index in 0..<1000 { bench.appear("n\(index)") }
        #expect(bench.budget.isBehind)
        var heard: Set<String> = []
        // No time passes.
        for _ in 0..<1000 {
            guard let name = bench.open.subtracting(heard).first else { break }
            heard.insert(name)
            bench.hear(name, isKept: false)
            bench.settle()
        }
        #expect(heard.count == 1000)
        #expect(bench.open.isEmpty)
        #expect(!bench.budget.isBehind)
    }

    @Test func whatWasForgottenUnseenIsNotCaughtUpWith() {
        let bound = QueryBudget.tracked
        for surplus in 0...1 {
            var bench = Bench()
            for index in 0..<(bound - 2 + 3 * surplus) { _ = bench.budget.appear("n\(index)") }
            bench.settle()
            while let name = bench.open.first {
                bench.reject(name)
                bench.settle()
            }
            #expect(bench.budget.isBehind == (surplus > 0))
            // An instance that was queried makes room.
            bench.appear("late")
            bench.reject("late")
            #expect(bench.budget.isBehind == (surplus > 0))
            bench.budget.reset()
            #expect(!bench.budget.isBehind)
        }
    }

    @Test func aRejectedInstanceIsLeftAloneForTenMinutes() {
        var bench = Bench()
        bench.appear("stranger")
        bench.reject("stranger")
        bench.settle()
        #expect(bench.open.isEmpty)
        bench.advance(to: .seconds(599))
        #expect(bench.open.isEmpty)
        bench.advance(to: .seconds(600))
        #expect(bench.open == ["stranger"])
    }

    @Test func failuresWaitLongerEachTime() {
        var bench = Bench()
        var times: [Double] = []
        bench.appear("n")
        for _ in 0..<9 {
            bench.open.remove("n")
            bench.budget.fail("n", now: bench.now)
            let before = bench.now
            let deadline = bench.budget.deadline ?? .zero
            times.append((deadline - before) / .seconds(1))
            bench.advance(to: deadline)
            #expect(bench.open == ["n"])
        }
        #expect(times == [1, 2, 4, 8, 16, 32, 60, 60, 60])
    }

    @Test func whatWasRejectedIsReconsideredAtOnce() {
        var bench = Bench()
        bench.appear("friend", "a", "b")
        bench.hear("friend", isKept: true)
        for name in ["a", "b"] { bench.reject(name) }
        bench.settle()
        bench.advance(to: .seconds(100))
        #expect(bench.open.isEmpty)
        bench.budget.reconsider()
        bench.settle()
        #expect(bench.open == ["a", "b"] && bench.budget.usage == (1, 2))
    }

    @Test(arguments: [UInt64(11), 12, 13, 14])
    func anySequenceStaysWithinTheBounds(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var bench = Bench()
        for _ in 0..<1500 {
            let name = "n\(generator.next() % 120)"
            switch generator.next() % 9 {
            case 0...2: _ = bench.budget.appear(name)
            case 3: bench.disappear(name)
            case 4, 5: bench.hear(name, isKept: true)
            case 6: bench.reject(name)
            case 7: bench.hear(name, isKept: false)
            default:
                if bench.open.remove(name) != nil { bench.budget.fail(name, now: bench.now) }
            }
            bench.settle()
            bench.advance(to: bench.now + .milliseconds(Int64(generator.next() % 200)))
        }
    }
}
