// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonCore

struct TestDocument: AnnouncedDocument, Equatable {
    let activity: ActivityID
    let device: String
    var isProved = true

    /// - Parameter number: names the activity.
    init(_ number: Int, of device: String, isProved: Bool = true) {
        activity = name(UInt64(number))
        (self.device, self.isProved) = (device, isProved)
    }
}

@Suite("Documents that rules accept")
final class AcceptanceTests {
    private static let rest = Duration.seconds(30)
    private var core = Acceptance<TestDocument>(bound: 8, rest: rest)
    private var time = Instant(nanoseconds: 1)

    /// Accepts documents of devices, each called by its first character: "a1" is the first of a.
    private func accept(_ names: String...) { core.accept(names.map(Self.document)) }

    private static func document(_ name: String) -> TestDocument {
        TestDocument(Int(name.dropFirst()) ?? 0, of: String(name.prefix(1)))
    }

    private func effects() -> [String] {
        core.takeEffects().map { effect in
            switch effect {
            case .fetch(let document): "fetch \(document.device)\(Self.number(document))"
            case .meet(let document): "meet \(document.device)"
            case .keep(let lines): "keep \(lines.count)"
            case .leaveToUser(let document): "leave \(document.device)\(Self.number(document))"
            }
        }
    }

    private static func number(_ document: TestDocument) -> Int {
        (0..<2000).first { name(UInt64($0)) == document.activity } ?? -1
    }

    private func start(_ device: String) -> Acceptance<TestDocument>.End? { core.start(device) }

    private func end(_ device: String, _ end: Acceptance<TestDocument>.End) { core.end(device, end) }

    private func look(_ documents: TestDocument...) -> Int { core.look(at: documents).count }

    private func wait(_ duration: Duration) {
        time = time + duration
        core.advance(to: time)
    }

    @Test("A few are fetched at once, one of each device, and half of those that wait are of one device")
    func turns() {
        accept("a1", "a2", "a3", "a4", "a5")
        #expect(effects() == ["leave a5", "fetch a1"])
        let others = "bcdefghij".map(String.init)
        for device in others {
            accept("\(device)1")
            #expect(effects() == ["fetch \(device)1"])
        }
        accept("k1", "k2", "l1", "m1", "n1", "o1")
        #expect(effects() == ["leave o1"])
        end("a", .done)
        #expect(effects() == ["fetch a2"])
        end("b", .done)
        #expect(effects() == ["fetch k1"])
        end("k", .done)
        end("c", .done)
        #expect(effects() == ["fetch k2", "fetch l1"])
        core.stop()
        end("a", .done)
        end("k", .done)
        accept("f1")
        #expect(effects().isEmpty)
    }

    @Test("A device whose document failed has no turn for a while, and keeps none from others")
    func rests() {
        accept("a1", "a2", "b1", "b2")
        #expect(effects() == ["fetch a1", "fetch b1"])
        end("a", .failed)
        accept("c1")
        #expect(effects() == ["fetch c1"])
        end("b", .done)
        #expect(effects() == ["fetch b2"])
        end("b", .done)
        #expect(effects().isEmpty && core.nextDeadline == Instant(nanoseconds: 0) + Self.rest)
        wait(Self.rest)
        #expect(effects() == ["fetch a2"] && core.nextDeadline == nil)
    }

    @Test("A document without a place, or whose folder opens late, has its turn again")
    func again() {
        accept("a1")
        for _ in 0..<5 {
            #expect(effects() == ["fetch a1"])
            end("a", .postponed)
            #expect(effects().isEmpty)
            wait(Self.rest)
        }
        #expect(effects() == ["fetch a1"])
    }

    @Test("Each document is looked at once; one of a device that nothing has proved once more when that is proved")
    func seen() {
        #expect(look(TestDocument(1, of: "a", isProved: false)) == 1)
        #expect(look(TestDocument(1, of: "a", isProved: false)) == 0)
        #expect(look(TestDocument(1, of: "a")) == 1)
        #expect(look(TestDocument(1, of: "a"), TestDocument(1, of: "b"), TestDocument(2, of: "a")) == 2)
        core.isOn = false
        #expect(look(TestDocument(3, of: "a")) == 0)
        core.isOn = true
        #expect(look(TestDocument(3, of: "a")) == 1)
        // What is announced no more makes room.
        for number in 0..<AcceptanceBounds.seen { _ = look(TestDocument(number, of: "c")) }
        #expect(look(TestDocument(1, of: "a")) == 1)
        core.accept([TestDocument(1, of: "a", isProved: false)])
        #expect(effects() == ["meet a"])
    }

    @Test("Each activity is taken once, also after a start, and the memory of it is bounded")
    func taken() {
        func take(_ number: Int, of device: String) -> Acceptance<TestDocument>.End? {
            core.accept([TestDocument(number, of: device)])
            _ = core.takeEffects()
            defer { core.end(device, .done) }
            return core.start(device)
        }
        #expect(take(1, of: "a") == nil)
        #expect(take(1, of: "a") == .begunBefore)
        #expect(take(1, of: "b") == nil)
        for number in 0...AcceptanceBounds.takenOfOneDevice { #expect(take(number, of: "c") == nil) }
        // A device makes its own forgotten, and no other's.
        #expect(take(0, of: "c") == nil && take(1, of: "a") == .begunBefore)
        var next = Acceptance<TestDocument>(bound: 8, rest: Self.rest)
        next.remember(["a \(name(1) as ActivityID)"])
        core = next
        #expect(take(1, of: "a") == .begunBefore && take(1, of: "b") == nil)
        for number in 0..<AcceptanceBounds.taken { #expect(take(number, of: "d\(number / 50)") == nil) }
        #expect(take(1, of: "a") == nil)
    }

    @Test("A document waits while Handoff is off, and is fetched once it is on; one on its way is left to the user")
    func left() {
        let (first, second) = (TestDocument(1, of: "a"), TestDocument(1, of: "b"))
        #expect(look(first, second) == 2)
        accept("a1", "b1")
        #expect(effects() == ["fetch a1", "fetch b1"])
        #expect(start("a") == nil && effects() == ["keep 1"])
        core.isOn = false
        #expect(start("b") == .postponed)
        end("a", .failed)
        end("b", .postponed)
        accept("c1")
        #expect(effects().isEmpty)
        // Nothing but the switch is waited for once the rest is over.
        wait(Self.rest)
        #expect(effects().isEmpty && core.nextDeadline == nil)
        core.isOn = true
        #expect(effects() == ["fetch b1", "fetch c1"])
        #expect(start("b") == nil && effects() == ["keep 2"])
        #expect(look(first, second) == 0)
        accept("a1")
        #expect(effects() == ["fetch a1"] && start("a") == .begunBefore)
        core.stop()
        end("a", .done)
        #expect(start("a") == .stopped)
    }
}

/// Devices and users that do whatever they like, in any order.
@Suite("Random walks of documents that rules accept")
struct AcceptanceWalkTests {
    @Test("No walk breaks what always holds, and each comes to rest")
    func walks() {
        let seed = SeededGenerator.chosenSeed
        for number in 0..<100 {
            var walk = Walk(seed: seed &+ UInt64(number))
            for _ in 0..<300 { walk.step() }
            walk.rest()
            if let violation = walk.violation {
                let history = walk.history.joined(separator: "\n")
                Issue.record("walk \(number) of seed \(seed): \(violation)\n\(history)")
                return
            }
        }
    }

    private struct Walk {
        var core = Acceptance<TestDocument>(bound: 6, rest: .seconds(30))
        var random: SeededGenerator
        var history: [String] = []
        var violation: String?
        var time = Instant(nanoseconds: 1)
        var isOn = true
        /// Documents whose turn it is, by device, and whether each is begun with.
        var turns: [String: (document: TestDocument, isBegun: Bool)] = [:]
        var taken: Set<String> = []
        let devices = (0..<12).map(String.init)

        init(seed: UInt64) { random = SeededGenerator(seed: seed) }

        @discardableResult
        mutating func decide<Value>(_ line: String, _ event: (inout Acceptance<TestDocument>) -> Value) -> Value {
            history.append("\(time.nanoseconds / 1_000_000_000) s: \(line)")
            core.isOn = isOn
            core.advance(to: time)
            let value = event(&core)
            for effect in core.takeEffects() {
                switch effect {
                case .fetch(let document):
                    if turns[document.device] != nil { violation = "two turns of \(document.device)" }
                    if !isOn { violation = "\(document.device) has its turn while Handoff is off" }
                    turns[document.device] = (document, false)
                case .keep(let lines):
                    taken = Set(lines)
                    if taken.count != lines.count { violation = "an activity is noted twice" }
                case .meet(let document) where document.isProved: violation = "\(document.device) is met again"
                case .meet, .leaveToUser: break
                }
            }
            if turns.count > AcceptanceBounds.concurrency { violation = "\(turns.count) turns" }
            return value
        }

        mutating func look(at documents: [TestDocument]) {
            let present = documents.map(\.device)
            let new = decide("look at \(present)") { $0.look(at: documents) }
            decide("accept \(new.count)") { $0.accept(new) }
        }

        mutating func end(_ device: String, _ end: Acceptance<TestDocument>.End) {
            turns[device] = nil
            decide("end \(device): \(end)") { $0.end(device, end) }
        }

        mutating func step() {
            guard violation == nil else { return }
            let device = devices.randomElement(using: &random) ?? "a"
            switch Int.random(in: 0..<10, using: &random) {
            case 0, 1, 2:
                look(
                    at: devices.filter { _ in Bool.random(using: &random) }.map {
                        TestDocument(
                            Int.random(in: 0..<40, using: &random), of: $0,
                            isProved: Int.random(in: 0..<4, using: &random) > 0)
                    })
            case 3, 4, 5:
                guard let turn = turns[device], !turn.isBegun else { return }
                let line = "\(device) \(turn.document.activity)"
                let wasTaken = taken.contains(line)
                let start = decide("start \(device)") { $0.start(device) }
                switch start {
                case nil:
                    if wasTaken || !isOn || !taken.contains(line) { violation = "\(line) is begun" }
                    turns[device]?.isBegun = true
                case .begunBefore:
                    if !wasTaken { violation = "\(line) was not begun before" }
                    end(device, .begunBefore)
                case let reason?:
                    if isOn { violation = "\(line) is postponed" }
                    end(device, reason)
                }
            case 6, 7:
                guard let turn = turns[device] else { return }
                let ends: [Acceptance<TestDocument>.End] =
                    turn.isBegun ? [.done, .failed] : [.done, .failed, .postponed]
                end(device, ends.randomElement(using: &random) ?? .done)
            case 8:
                isOn = Bool.random(using: &random)
                look(at: [])
            default:
                time = time + .seconds([1, 31].randomElement(using: &random) ?? 1)
                decide("time") { _ in }
            }
        }

        /// Everything ends well, and time passes.
        mutating func rest() {
            isOn = true
            look(at: devices.map { TestDocument(99, of: $0) })
            for _ in 0..<200 where violation == nil {
                if let device = turns.keys.min() {
                    end(device, .done)
                } else if let deadline = core.nextDeadline {
                    time = max(time, deadline)
                    decide("time") { _ in }
                }
            }
            if violation == nil, !turns.isEmpty || core.nextDeadline != nil { violation = "no rest" }
        }
    }
}
