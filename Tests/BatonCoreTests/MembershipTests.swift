// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonCore

/// Lists by revision: the upper half is the number.
private func revision(_ number: UInt64, _ hash: UInt64 = 1) -> UInt64 { number << 32 | hash }

/// A core with a clock of its own, which is at one revocation.
private final class MembershipScene {
    var core = Membership(revision: revision(1), storingPause: .seconds(15))
    private(set) var now = Instant(nanoseconds: 1_000_000_000)
    private(set) var effects: [Membership.Effect] = []

    @discardableResult
    func decide<Value>(_ event: (inout Membership) -> Value) -> Value {
        core.advance(to: now)
        let value = event(&core)
        effects += core.takeEffects()
        return value
    }

    func pass(_ time: Duration) {
        now = now + time
        decide { _ in }
    }

    /// The orders since this was called last.
    func news() -> [Membership.Effect] {
        defer { effects = [] }
        return effects
    }

    func meets(_ device: String, having revision: UInt64) -> Bool {
        decide { $0.meet(device, having: revision) }
    }

    func waits(_ device: String) -> Bool { decide { $0.isToWait(device) } }

    /// Carries out the order to tell a device, which must be the only one.
    func tells(_ device: String, isNews: Bool = false, isPresent: Bool = true) -> Bool {
        guard news() == [.tell(device, isNews: isNews)] else { return false }
        decide { $0.told(device, isPresent: isPresent) }
        return true
    }
}

@Suite("Membership")
struct MembershipTests {
    private let scene = MembershipScene()

    @Test("A device with more, or with other lists of the same number, is asked once; one with fewer is not asked")
    func meeting() {
        let all = [(revision(0), false), (revision(1), false), (revision(1, 2), true), (revision(2), true)]
        for (theirs, isAsked) in all {
            #expect(scene.meets("a", having: theirs) == isAsked)
            #expect(scene.news() == [.said("a", revision: theirs, isCurrent: theirs >= revision(1))])
            #expect(scene.meets("a", having: theirs) == false)
            scene.decide { $0.asked("a", isAnswered: true) }
            #expect(scene.news().count == 1)
            #expect(scene.core.nextDeadline == nil)
        }
        // Other lists here make it another question.
        scene.decide { $0.adopted(revision(2, 3)) }
        #expect(scene.meets("a", having: revision(2)))
    }

    @Test("A question that failed is put again by the next meeting, and by itself")
    func failed() {
        #expect(scene.meets("a", having: revision(2)))
        scene.decide { $0.asked("a", isAnswered: false) }
        #expect(scene.meets("a", having: revision(2)))
        _ = scene.news()
        scene.pass(.seconds(1))
        #expect(scene.news() == [.tell("a", isNews: false)])
    }

    @Test("A device that does not show that it has the lists is told again after 1 to 32 s, and then rests")
    func retries() {
        scene.decide { $0.inform("a") }
        for pause in [1, 2, 4, 8, 16, 32] {
            #expect(scene.tells("a"))
            // Announcements do not matter meanwhile.
            scene.decide { $0.inform("a") }
            scene.pass(.seconds(pause) - .milliseconds(1))
            #expect(scene.news().isEmpty)
            scene.pass(.milliseconds(1))
        }
        #expect(scene.tells("a"))
        #expect(scene.core.nextDeadline == nil)
        scene.decide { $0.inform("a") }
        #expect(scene.tells("a"))
        #expect(scene.core.nextDeadline == scene.now + .seconds(1))
        // It says that it has them.
        scene.decide { $0.say(revision(1), of: "a") }
        scene.pass(.seconds(60))
        #expect(scene.news() == [.said("a", revision: revision(1), isCurrent: true)])
    }

    @Test("A device that has gone is told no more until it is announced")
    func gone() {
        scene.decide { $0.inform("a") }
        #expect(scene.tells("a", isPresent: false))
        #expect(scene.core.nextDeadline == nil)
    }

    @Test("A device that announces again and again that it lacks lists is told once a second, whatever it said")
    func lacking() {
        scene.decide { $0.say(revision(1), of: "a") }
        _ = scene.news()
        scene.decide { $0.hear("a", lacksLists: false) }
        #expect(scene.news().isEmpty)
        var told = 0
        for _ in 0..<1000 {
            scene.decide { $0.hear("a", lacksLists: true) }
            if !scene.effects.isEmpty {
                told += 1
                #expect(scene.tells("a"))
            }
            scene.pass(.milliseconds(10))
        }
        #expect((9...11).contains(told))
    }

    @Test("A new list is told at once, also to a device that is being told of the one before")
    func news() {
        scene.decide { $0.inform("a") }
        scene.decide { $0.adopted(revision(2)) }
        scene.decide { $0.inform("a", isNews: true) }
        #expect(scene.tells("a"))
        #expect(scene.tells("a", isNews: true))
        scene.decide { $0.adopted(revision(3)) }
        scene.decide { $0.inform("a", isNews: true) }
        #expect(scene.tells("a", isNews: true))
    }

    @Test("A request of a device that is behind waits until it says that it has the lists")
    func requests() {
        #expect(scene.waits("a"))
        // Another request, while it is told: its word may come too late for the first one.
        #expect(scene.waits("a"))
        #expect(scene.tells("a"))
        #expect(scene.news() == [.tell("a", isNews: true)])
        scene.decide { $0.say(revision(1), of: "a") }
        #expect(scene.news() == [.said("a", revision: revision(1), isCurrent: true)])
        #expect(scene.waits("a") == false)
        // Lists that were signed apart keep nobody waiting.
        scene.decide { $0.say(revision(1, 7), of: "b") }
        #expect(scene.waits("b") == false)
    }

    @Test("Lists that could not be stored are stored again after a pause, until that is done")
    func storing() {
        scene.decide { $0.adopted(revision(2)) }
        #expect(!scene.core.isStored)
        for _ in 0..<3 {
            for _ in 0..<2 { scene.decide { $0.stored(nil) } }
            scene.pass(.seconds(15))
            #expect(scene.news() == [.store])
        }
        scene.decide { $0.stored(nil) }
        scene.decide { $0.stored(revision(2)) }
        scene.pass(.seconds(15))
        #expect(scene.core.isStored && scene.core.nextDeadline == nil)
        #expect(scene.news().isEmpty)
    }

    @Test("So many devices are remembered; those that never said anything are forgotten first")
    func bound() {
        #expect(Membership.bound == 256)
        for number in 1..<Membership.bound { scene.decide { $0.say(revision(1), of: "member \(number)") } }
        for number in 0..<100 { scene.decide { $0.inform("invented \(number)") } }
        #expect((1..<Membership.bound).allSatisfy { !scene.core.lacksWord(of: "member \($0)") })
        for number in 0..<2 { scene.decide { $0.say(revision(1), of: "newcomer \(number)") } }
        let known = (1..<Membership.bound).count { !scene.core.lacksWord(of: "member \($0)") }
        #expect(known == Membership.bound - 2 && !scene.core.lacksWord(of: "newcomer 1"))
    }
}

/// Devices and users that do whatever they like, in any order.
@Suite("Random walks of membership")
struct MembershipWalkTests {
    @Test("In no walk is a device told twice at once, and each device learns the lists once it is there")
    func walks() {
        let seed = SeededGenerator.chosenSeed
        for number in 0..<60 {
            var walk = Walk(seed: seed &+ UInt64(number))
            for _ in 0..<200 where walk.violation == nil { walk.step() }
            walk.rest()
            if let violation = walk.violation {
                let history = walk.history.joined(separator: "\n")
                Issue.record("walk \(number) of seed \(seed): \(violation)\n\(history)")
                return
            }
        }
    }
}

private struct Walk {
    private let scene = MembershipScene()
    private var random: SeededGenerator
    private var number: UInt64 = 1
    private var told: Set<String> = []
    private(set) var history: [String] = []
    private(set) var violation: String?
    private let devices = ["a", "b", "c"]

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
    }

    mutating func step() {
        let device = devices.randomElement(using: &random) ?? "a"
        let chance = Bool.random(using: &random)
        let theirs = revision(UInt64.random(in: 0...number + 1, using: &random))
        switch Int.random(in: 0..<10, using: &random) {
        case 0: act("\(device) is met with \(theirs >> 32)") { _ = $0.meet(device, having: theirs) }
        case 1: act("\(device) is announced, lacking: \(chance)") { $0.hear(device, lacksLists: chance) }
        case 2: act("\(device) is asked, answered: \(chance)") { $0.asked(device, isAnswered: chance) }
        case 3: act("\(device) asks for something") { _ = $0.isToWait(device) }
        case 4:
            number += 1
            act("list \(number)") { [number] in $0.adopted(revision(number)) }
            for device in devices { act("\(device) is near") { $0.inform(device, isNews: true) } }
        case 5: act("forget \(device)") { $0.forget(device) }
        case 6: act("stored: \(chance)") { [number] in $0.stored(chance ? revision(number) : nil) }
        case 7, 8: end(device, isPresent: chance)
        default:
            let time = Duration.milliseconds([1, 500, 3000, 40_000].randomElement(using: &random) ?? 1)
            scene.pass(time)
            act("\(time) pass") { _ in }
        }
    }

    /// All devices are there, and take the lists over when they are told.
    mutating func rest() {
        for device in devices { act("\(device) is there") { $0.inform(device) } }
        for _ in 0..<100 {
            for device in told {
                act("\(device) has the lists") { [number] in $0.say(revision(number), of: device) }
                end(device, isPresent: true)
            }
            scene.pass(.seconds(1))
            act("a second passes") { _ in }
        }
        for device in devices where scene.core.lacksWord(of: device) { violation = "\(device) was not told" }
        act("stored") { [number] in $0.stored(revision(number)) }
        scene.pass(.seconds(15))
        if scene.core.nextDeadline != nil { violation = "a deadline is left" }
    }

    private mutating func end(_ device: String, isPresent: Bool) {
        guard told.remove(device) != nil else { return }
        act("\(device) was told, present: \(isPresent)") { $0.told(device, isPresent: isPresent) }
    }

    private mutating func act(_ line: String, _ event: (inout Membership) -> Void) {
        history.append(line)
        // A device that was forgotten is a new one.
        if line.hasPrefix("forget") { told.remove(String(line.suffix(1))) }
        scene.decide(event)
        for effect in scene.news() {
            guard case .tell(let device, _) = effect else { continue }
            if !told.insert(device).inserted { violation = "\(device) is told twice at once" }
        }
        if let deadline = scene.core.nextDeadline, deadline <= scene.now { violation = "a deadline has passed" }
    }
}
