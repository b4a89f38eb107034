// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonCore

/// The decisions of the continuing device, on a clock that the test keeps.
@Suite("Handoffs")
struct HandoffsTests {
    /// Handoffs whose steps wait for the test.
    private struct Table {
        var core = Handoffs<TestWorld>()
        var now = Instant(nanoseconds: 1_000_000_000)
        /// The orders, in words.
        var said: [String] = []
        var interrupted: [HandoffID] = []
        private var lastName: UInt64 = 0

        mutating func accept(_ ask: HandoffAsk = HandoffAsk(origin: "laptop", activity: name(1))) throws -> HandoffID {
            lastName += 1
            let id: HandoffID = name(lastName)
            if let failure = decide({ $0.accept(ask, as: id) }) { throw failure }
            return id
        }

        mutating func begin(_ ask: HandoffAsk = HandoffAsk(origin: "laptop", activity: name(1))) throws -> HandoffID {
            let id = try accept(ask)
            decide { $0.begin(id) }
            return id
        }

        mutating func end(_ id: HandoffID, _ outcomes: Handoffs<TestWorld>.Outcome...) {
            for outcome in outcomes { decide { $0.performed(id, outcome) } }
        }

        /// Goes on until what has come is known.
        mutating func prepare(_ id: HandoffID, _ content: HandoffContent) {
            end(id, .done, .done, .prepared(content))
        }

        mutating func wait(_ time: Duration) {
            now = now + time
            decide { _ in }
        }

        /// Returns the orders since this was called last.
        mutating func news() -> [String] {
            defer { said = [] }
            return said
        }

        @discardableResult
        mutating func decide<Value>(_ event: (inout Handoffs<TestWorld>) -> Value) -> Value {
            core.advance(to: now)
            let value = event(&core)
            for effect in core.takeEffects() {
                switch effect {
                case .perform(_, .fail(let failure)): said.append("fail: \(failure.text)")
                case .perform(_, .release(let failure)): said.append("release: \(failure?.text ?? "continued")")
                case .perform(_, .fetch(let fetching)): said.append(fetching.describesAnew ? "fetch anew" : "fetch")
                case .perform(_, .claim): said.append("claim")
                case .perform(_, .commit): said.append("commit")
                case .perform(_, .renew): said.append("renew")
                case .perform(_, .hold): said.append("hold")
                case .perform(_, .wait(let pause, _)): said.append("wait \(pause)")
                case .perform(_, let step): said.append("\(step)")
                case .interrupt(let id):
                    said.append("interrupt")
                    interrupted.append(id)
                case .paused(_, let failure, let waits, _): said.append("paused by \(failure.text) for \(waits)")
                case .continued: said.append("continued")
                case .ended: said.append("ended")
                }
            }
            return value
        }
    }

    private static func failure(_ setback: Setback) -> Handoffs<TestWorld>.Outcome {
        .failed(TestFailure(text: "\(setback)", setback: setback))
    }

    private static func cut(_ setback: Setback, bytes: UInt64 = 0) -> Handoffs<TestWorld>.Outcome {
        .cut(TestFailure(text: "\(setback)", setback: setback), TransferRetry.Attempt(bytes: bytes))
    }

    @Test("A connection that was dead before the payload came is replaced once")
    func claim() throws {
        var table = Table()
        let first = try table.begin()
        table.end(first, .done, Self.failure(.lost), .done)
        #expect(table.news() == ["announce", "claim", "claim", "prepare"])
        for setbacks in [[Setback.lost, .lost], [.away], [.unoffered], [.final]] {
            let other = try table.begin()
            table.end(other, .done)
            for setback in setbacks { table.end(other, Self.failure(setback)) }
            let last = setbacks.last.map { "\($0)" } ?? ""
            #expect(table.news().last == "fail: \(last)")
            table.end(other, .done, .done)
            #expect(table.news() == ["release: \(last)", "ended"])
        }
    }

    @Test("An activity is delivered, its document fetched, and then its origin told, in that order")
    func order() throws {
        var table = Table()
        let plain = try table.begin()
        table.prepare(plain, [])
        table.end(plain, .delivered(to: nil), .done, .done)
        #expect(
            table.news().suffix(6) == ["prepare", "deliver", "commit", "continued", "release: continued", "ended"])
        let look = try table.begin()
        table.prepare(look, .look)
        table.end(look, .delivered(to: nil))
        #expect(table.news().suffix(3) == ["deliver", "continued", "release: continued"])
        let document = try table.begin()
        table.prepare(document, .document)
        table.end(document, .delivered(to: nil), .done)
        #expect(table.news().suffix(4) == ["deliver", "fetch", "continued", "commit"])
    }

    @Test("An exclusive activity is delivered after the commit, which is asked for again while the claim may live")
    func exclusive() throws {
        var table = Table()
        let id = try table.begin()
        table.prepare(id, .exclusive)
        #expect(table.news().last == "commit")
        table.end(id, Self.failure(.away))
        #expect(table.news() == ["wait 0.5 seconds"])
        table.end(id, .done, .done)
        #expect(table.news() == ["commit", "deliver"])
        table.end(id, .delivered(to: "app"))
        #expect(table.news() == ["continued", "hold"])

        // It is not known whether the answer was lost, so it may have moved.
        let lost = try table.begin()
        table.prepare(lost, .exclusive)
        table.end(lost, Self.failure(.lost), .done)
        table.wait(.seconds(30))
        table.end(lost, Self.failure(.away))
        #expect(table.news().last == "fail: \(Refusal.mayHaveMoved(from: "laptop"))")
        for setback in [Setback.final, .unclaimed] {
            let forgotten = try table.begin()
            table.prepare(forgotten, .exclusive)
            table.end(forgotten, Self.failure(setback))
            #expect(table.news().last == "fail: \(setback)")
        }
    }

    @Test("An origin that cannot be told takes nothing from whoever has the activity here")
    func untold() throws {
        var table = Table()
        let given = try table.begin()
        table.prepare(given, [])
        table.end(given, .delivered(to: "app"), Self.failure(.away))
        #expect(table.news().suffix(3) == ["commit", "continued", "hold"])
        let asked = try table.begin()
        table.prepare(asked, [])
        table.end(asked, .delivered(to: nil), Self.failure(.away))
        #expect(table.news().last == "fail: away")
    }

    @Test("A document goes on after a cut, and its device is waited for")
    func cut() throws {
        var table = Table()
        let id = try table.begin()
        table.prepare(id, .document)
        table.end(id, .delivered(to: nil))
        _ = table.news()
        table.end(id, Self.cut(.lost, bytes: 1))
        #expect(table.news() == ["paused by lost for 600.0 seconds", "renew"])
        table.end(id, Self.failure(.unoffered), .done, .done)
        #expect(table.news() == ["wait 0.1 seconds", "renew", "fetch"])
        // A place is asked for again and again, and that is told once.
        table.end(id, Self.cut(.noPlace, bytes: 2), .done, Self.cut(.noPlace, bytes: 2), .done)
        #expect(
            table.news() == [
                "paused by noPlace for 600.0 seconds", "wait 0.5 seconds", "fetch", "wait 0.5 seconds", "fetch",
            ])
        table.end(id, Self.cut(.changed, bytes: 2), .done)
        #expect(
            table.news() == [
                "paused by changed for 0.0 seconds", "wait 0.5 seconds",
                "fetch anew",
            ])
        table.end(id, Self.cut(.lost, bytes: 2))
        table.wait(.seconds(600))
        table.end(id, Self.failure(.away))
        #expect(table.news().last == "fail: lost")
    }

    @Test("A cancelled handoff ends with its step, and after 10 s in any case")
    func cancelled() throws {
        var table = Table()
        let failure = TestFailure(text: "cancelled")
        let id = try table.begin()
        table.decide { $0.cancel(id, because: failure) }
        #expect(table.news() == ["announce", "interrupt"])
        table.wait(.seconds(9))
        #expect(table.news() == [])
        table.wait(.seconds(1))
        #expect(table.news() == ["fail: cancelled"] && table.core.nextDeadline == nil)
        let early = try table.accept()
        table.decide { $0.cancel(early, because: failure) }
        table.decide { $0.begin(early) }
        #expect(table.news() == ["fail: cancelled"])
        // What is in place is continued, and an answer to a commit is waited for.
        let fetching = try table.begin()
        table.prepare(fetching, .document)
        table.end(fetching, .delivered(to: nil))
        table.decide { $0.cancel(fetching, because: failure) }
        table.end(fetching, .done)
        #expect(table.news().suffix(3) == ["interrupt", "continued", "commit"])
        let committing = try table.begin()
        table.prepare(committing, .exclusive)
        table.decide { $0.cancel(committing, because: failure) }
        #expect(table.news().last == "commit")
        table.wait(.seconds(20))
        table.end(committing, .done)
        #expect(table.news() == ["deliver"])
    }

    @Test("So many handoffs are under way, and applications hold so many activities: the oldest is let go")
    func bounds() throws {
        var table = Table()
        typealias Core = Handoffs<TestWorld>
        #expect(Core.bound == 32 && Core.boundHeldByOne == 32 && Core.boundHeld == 128)
        func hold(by application: String) throws -> HandoffID {
            let id = try table.begin()
            table.prepare(id, [])
            table.end(id, .delivered(to: application), .done)
            return id
        }
        let first = try (0..<32).map { _ in try hold(by: "0") }
        #expect(table.interrupted == [])
        _ = try hold(by: "0")
        #expect(table.interrupted == [first[0]])
        table.end(first[0], .done, .done)
        for number in 1..<4 { for _ in 0..<32 { _ = try hold(by: "\(number)") } }
        #expect(table.interrupted == [first[0]])
        _ = try hold(by: "4")
        #expect(table.interrupted == [first[0], first[1]])

        let entered = try (0..<Core.bound).map { _ in try table.accept() }
        #expect(throws: TestFailure.self) { try table.accept() }
        table.decide { $0.forget(entered[0]) }
        _ = try table.accept()
        table.decide { $0.stop(because: TestFailure(text: "stopping")) }
        #expect(throws: TestFailure(text: "stopping")) { try table.accept() }
        #expect(table.interrupted.count >= 128)
        _ = table.news()
        table.decide { $0.begin(entered[1]) }
        #expect(table.news() == ["fail: stopping"])
    }

    @Test("A claim of whoever asked is kept until they go")
    func kept() throws {
        var table = Table()
        let id = try table.begin(HandoffAsk(origin: "laptop", activity: name(1), keepsClaim: true))
        table.prepare(id, [])
        table.end(id, .delivered(to: nil), .done)
        #expect(table.news().last == "hold")
        table.decide { $0.cancel(id, because: TestFailure(text: "gone")) }
        #expect(table.news() == ["interrupt"])
        table.end(id, .done, .done)
        #expect(table.news() == ["release: continued", "ended"] && table.core.isIdle)
    }

    @Test("No walk ends a handoff twice, and each comes to rest")
    func walks() throws {
        let seed = SeededGenerator.chosenSeed
        for number in 0..<200 {
            var random = SeededGenerator(seed: seed &+ UInt64(number))
            var table = Table()
            var ids: [HandoffID] = []
            var history: [String] = []
            func step(_ outcome: Handoffs<TestWorld>.Outcome?) throws {
                guard let id = ids.randomElement(using: &random) else { return }
                history.append("\(id.shortName) \(outcome.map { "\($0)" } ?? "cancel")")
                if let outcome { return table.end(id, outcome) }
                table.decide { $0.cancel(id, because: TestFailure(text: "cancelled")) }
            }
            let setbacks: [Setback] = [.final, .lost, .away, .unclaimed, .unoffered, .noPlace, .changed]
            for _ in 0..<300 {
                let setback = setbacks.randomElement(using: &random) ?? .final
                switch Int.random(in: 0..<12, using: &random) {
                case 0: if let id = try? table.begin() { ids.append(id) }
                case 1: try step(nil)
                case 2: try step(Self.failure(setback))
                case 3: try step(Self.cut(setback, bytes: 1))
                case 4: try step(.delivered(to: "app"))
                case 5:
                    try step(.prepared(HandoffContent(rawValue: UInt8.random(in: 0...3, using: &random))))
                case 6: table.wait(.milliseconds(Int.random(in: 0...5000, using: &random)))
                default: try step(.done)
                }
            }
            let ends = table.said.count { $0 == "continued" || $0.hasPrefix("fail: ") }
            #expect(ends <= ids.count, "walk \(number) of seed \(seed): \(history)")
            table.decide { $0.stop(because: TestFailure(text: "stopping")) }
            table.decide { $0.cancelAll(because: TestFailure(text: "stopping")) }
            table.wait(.seconds(10))
            for _ in 0..<4 { for id in ids { table.end(id, .delivered(to: nil), .done) } }
            #expect(table.core.isIdle && table.core.nextDeadline == nil, "walk \(number) of seed \(seed): \(history)")
            let all = table.said.count { $0 == "continued" || $0.hasPrefix("fail: ") }
            #expect(all == ids.count, "walk \(number) of seed \(seed): \(history)")
        }
    }
}
