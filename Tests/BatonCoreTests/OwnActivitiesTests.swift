// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Testing

@testable import BatonCore

@Suite("Own activities and the claims on them, in simulated time")
struct OwnActivitiesTests {
    private let note: ActivityID = name(1)

    @Test("Several devices may claim one activity, and each presents its own claim only")
    func shared() throws {
        var scene = Scene()
        _ = try scene.offer(note)
        let (first, second) = (scene.claim(note, by: "a"), scene.claim(note, by: "b"))
        #expect(scene.given[first] == "activity 1" && scene.given[second] == "activity 1")
        let presented = scene.decide { core in
            [("a", first), ("b", second), ("b", first)].map { (try? core.present($1, by: $0).get()) != nil }
        }
        #expect(presented == [true, true, false])
    }

    @Test("An exclusive activity is refused to a second device, with the holder's name, until it is let go")
    func exclusive() throws {
        var scene = Scene()
        _ = try scene.offer(note, exclusively: true)
        let first = scene.claim(note, by: "a")
        let refused = scene.claim(note, by: "b")
        #expect(scene.given[refused]?.contains("held") == true)
        scene.decide { $0.release(first, by: "b") }
        #expect(scene.core.holdsClaim("a") && !scene.core.holdsClaim("b"))
        scene.decide { $0.release(first, by: "a") }
        let second = scene.claim(note, by: "b")
        #expect(scene.given[second] == "activity 1")
    }

    @Test("An exclusive activity moves once: its offer serves the holder until the claim ends, and nobody else")
    func moved() throws {
        var scene = Scene()
        let offer = try scene.offer(note, exclusively: true)
        let (first, second) = (scene.claim(note, by: "a"), scene.claim(note, by: "a"))
        for _ in 0..<2 {
            _ = try scene.decide { $0.setContinued(first, by: "a") }.get()
            #expect(scene.core.visible.isEmpty && scene.core.claims.map(\.id) == [first])
            #expect(throws: TestFailure.self) { try scene.decide { $0.setContinued(second, by: "a") }.get() }
            #expect(scene.given[scene.claim(note, by: "b")] == "notOffered")
        }
        #expect(scene.core.claims.first.flatMap { scene.core.offer(of: $0) }?.id == offer)
        #expect(scene.said.count { $0.contains("a has activity 1") } == 1)
        #expect(!scene.said.contains { $0.hasSuffix("end") })
        scene.decide { $0.connectionEnded(of: "a") }
        scene.wait(30)
        #expect(scene.said.suffix(2) == ["withdrawn (0)", "end"].map { "\(offer.shortName): \($0)" })
        // A claim that was not committed leaves the activity to others.
        _ = try scene.offer(note, exclusively: true)
        let lapsing = scene.claim(note, by: "a")
        scene.decide { $0.connectionEnded(of: "a") }
        scene.wait(30)
        #expect(scene.given[scene.claim(note, by: "b")] == "activity 1")
        #expect(throws: TestFailure.self) { try scene.decide { $0.setContinued(lapsing, by: "a") }.get() }
    }

    @Test("A claim lapses 30 s after the connection ended, and not when it was presented again")
    func lapse() throws {
        var scene = Scene()
        let offer = try scene.offer(note)
        let claim = scene.claim(note, by: "a")
        scene.decide { $0.connectionEnded(of: "a") }
        scene.wait(29.9)
        _ = try scene.decide { $0.present(claim, by: "a") }.get()
        scene.wait(3600)
        #expect(scene.core.holdsClaim("a"))
        scene.decide { $0.connectionEnded(of: "a") }
        scene.wait(30)
        #expect(!scene.core.holdsClaim("a"))
        let lost = "a has it not: lapsed(wasInterrupted: false) (1)"
        #expect(scene.said.filter { $0 == "\(offer.shortName): \(lost)" }.count == 1)
    }

    @Test("A claim belongs to the connection on which it was presented last")
    func connections() throws {
        var scene = Scene()
        _ = try scene.offer(note)
        func holder(_ connection: UInt) -> PeerName { PeerName(id: "a", name: "a", connection: connection) }
        let claim = scene.claim(note, by: holder(1))
        _ = try scene.decide { $0.present(claim, by: holder(2)) }.get()
        scene.decide { $0.connectionEnded(of: holder(1)) }
        scene.wait(3600)
        #expect(scene.core.holdsClaim("a"))
        // The device has restarted: it opens a third connection before the second one counts as lost.
        scene.decide { $0.connectionEnded(of: holder(2)) }
        scene.wait(30)
        #expect(!scene.core.holdsClaim("a"))
    }

    @Test("A device whose transfer was cut may come back for 10 minutes, in whatever order that was seen")
    func interrupted() throws {
        for isSeenFirst in [true, false] {
            var scene = Scene()
            _ = try scene.offer(note)
            let claim = scene.claim(note, by: "a")
            if isSeenFirst { scene.decide { $0.connectionEnded(of: "a") } }
            scene.decide { $0.interrupt(claim, because: TestFailure(text: "cut")) }
            if !isSeenFirst { scene.decide { $0.connectionEnded(of: "a") } }
            scene.wait(599)
            #expect(scene.core.holdsClaim("a"))
            scene.wait(1)
            #expect(!scene.core.holdsClaim("a"))
        }
    }

    @Test("There are at most 32 claims of one device, of which its oldest makes room, and 128 in all")
    func bounds() throws {
        var scene = Scene()
        _ = try scene.offer(note)
        let other = scene.claim(note, by: "b")
        var own = (0..<ClaimBounds.ofOneDevice).map { _ in scene.claim(note, by: "a") }
        try scene.decide { $0.setContinued(own[1], by: "a") }.get()
        own += [scene.claim(note, by: "a"), scene.claim(note, by: "a")]
        #expect(scene.core[own[0]] == nil && scene.core[own[1]] == nil && scene.core[own[2]] != nil)
        #expect(scene.core[other] != nil)
        // The application knew what became of the claim that was continued.
        #expect(scene.said.count { $0.contains("displaced") } == 1)
        for number in scene.core.claims.count..<ClaimBounds.claims {
            _ = scene.claim(note, by: PeerName(id: "\(number)", name: "\(number)"))
        }
        let tooMany = scene.claim(note, by: "one more")
        #expect(scene.given[tooMany] == "tooManyClaims")
    }

    @Test("What failed or was cut can go on, and what was cancelled or continued stays so")
    func outcomes() throws {
        var scene = Scene()
        let offer = try scene.offer(note)
        let id = scene.claim(note, by: "a")
        let cut = TestFailure(text: "cut")
        scene.said = []
        for _ in 0..<2 { scene.decide { $0.interrupt(id, because: cut) } }
        scene.decide { $0.goOn(id) }
        for _ in 0..<2 { scene.decide { $0.fail(id, because: cut) } }
        scene.decide { $0.report(1, of: id) }
        scene.decide { $0.goOn(id) }
        scene.decide { $0.report(2, of: id) }
        let cancelled = (1...2).map { _ in scene.decide { $0.cancel(id) } != nil }
        #expect(cancelled == [true, false])
        scene.decide { $0.goOn(id) }
        #expect(scene.core[id]?.state == .cancelled)
        let refused = scene.decide { $0.setContinued(id, by: "a") }
        #expect(throws: TestFailure(text: "cancelled")) { try refused.get() }
        let told = ["a is cut: cut", "a has it not: cut", "2", "a has it not: cancelled"]
        #expect(scene.said == told.map { "\(offer.shortName): \($0) (1)" })
    }

    @Test("What was withdrawn while a device takes it over hears what becomes of that, and ends then")
    func departure() throws {
        var scene = Scene()
        let offer = try scene.offer(note)
        let id = scene.claim(note, by: "a")
        scene.decide { $0.withdraw(offer) }
        scene.said = []
        for _ in 1...2 { try scene.decide { $0.setContinued(id, by: "a") }.get() }
        #expect(scene.said == ["\(offer.shortName): a has activity 1 (1)", "\(offer.shortName): end"])
        // For the streams of whoever holds a claim.
        #expect(scene.core[id].flatMap { scene.core.offer(of: $0) }?.application == 1)
        scene.decide { $0.release(id, by: "a") }
        #expect(scene.core.offers.isEmpty)
    }

    @Test("An exclusive activity does not move if its application would not hear of it")
    func unheard() throws {
        for isStopping in [true, false] {
            var scene = Scene()
            let offer = try scene.offer(note, exclusively: true)
            let id = scene.claim(note, by: "a")
            if isStopping {
                scene.decide { $0.stop() }
            } else {
                scene.decide { $0.fail(id, because: TestFailure(text: "changed")) }
                scene.decide { $0.withdraw(offer) }
                scene.decide { $0.goOn(id) }
            }
            #expect(throws: TestFailure(text: isStopping ? "stopping" : "notOffered")) {
                try scene.decide { $0.setContinued(id, by: "a") }.get()
            }
        }
    }

    @Test("What becomes of an activity that one device takes over twice is told by the claim")
    func twice() throws {
        var scene = Scene()
        let offer = try scene.offer(note)
        let (first, second) = (scene.claim(note, by: "a"), scene.claim(note, by: "a"))
        try scene.decide { $0.setContinued(second, by: "a") }.get()
        scene.decide { $0.report(5, of: first) }
        scene.decide { $0.release(first, by: "a") }
        let told = ["taken by a (1)", "taken by a (2)", "a has activity 1 (2)", "5 (1)", "a has it not: givenUp (1)"]
        #expect(scene.said.filter { $0.hasPrefix("\(offer.shortName): ") } == told.map { "\(offer.shortName): \($0)" })
    }

    @Test("What is offered again hears what becomes of a device that took it over before")
    func offeredAgain() throws {
        var scene = Scene()
        let first = try scene.offer(note, exclusively: true)
        let id = scene.claim(note, by: "a")
        scene.decide { $0.withdraw(first) }
        let again = try scene.offer(note, from: 2, exclusively: true)
        #expect(scene.said.last == "\(first.shortName): end")
        let refused = scene.claim(note, by: "b")
        #expect(scene.given[refused]?.contains("held") == true)
        scene.decide { $0.release(id, by: "a") }
        #expect(scene.said.last == "\(again.shortName): a has it not: givenUp (1)")
        _ = scene.claim(note, by: "b")
        scene.decide { $0.stop() }
        let told = ["nobody has it not: stopping (0)", "withdrawn (0)", "end"].map { "\(again.shortName): \($0)" }
        #expect(scene.said.suffix(4).filter { $0 != "changed" } == told)
        #expect(throws: TestFailure(text: "stopping")) { _ = try scene.offer(name(2)) }
    }

    @Test("Nobody gets what was withdrawn, switched off or cancelled while its application saves")
    func hidden() throws {
        for number in 0..<3 {
            var scene = Scene()
            let offer = try scene.offer(note, saving: true)
            let (first, second) = (scene.claim(note, by: "a"), scene.claim(note, by: "b"))
            switch number {
            case 0: scene.decide { $0.withdraw(offer) }
            case 1: scene.decide { $0.setSwitch(HandoffSwitch(isOn: false)) }
            default: for id in [first, second] { _ = scene.decide { $0.cancel(id) } }
            }
            let refusal = number == 2 ? "cancelled" : "notOffered"
            #expect(scene.given[second] == refusal)
            // The application may say better why the first device gets nothing.
            #expect(scene.given[first] == (number == 2 ? refusal : nil))
            scene.answer(offer, .success("late"))
            #expect(scene.given[first] == refusal)
            #expect(scene.core.claims.isEmpty && scene.questions.isEmpty)
        }
    }

    @Test("A device hears why its application did not save, also if the offer ended with that")
    func endedWhileAsked() throws {
        var scene = Scene()
        let offer = try scene.offer(note, saving: true)
        let id = scene.claim(note, by: "a")
        scene.decide { $0.withdraw(offer) }
        // An answer to this offer is none to the next.
        _ = try scene.offer(note, from: 2)
        scene.answer(offer, .failure(TestFailure(text: "it ended")))
        #expect(scene.given[id] == "it ended" && scene.core.claims.isEmpty)
    }

    @Test("An expiry is kept by a clock that can be set, and a replacement ends the wait for one")
    func expiry() throws {
        var scene = Scene()
        _ = try scene.offer(note, until: 3600)
        #expect(scene.core.nextDeadline == scene.now.instant + .seconds(30))
        scene.wait(3599)
        #expect(scene.core.visible.count == 1)
        scene.wait(1)
        #expect(scene.core.visible.isEmpty && scene.core.isAwaitingReplacement)
        _ = try scene.offer(name(2))
        #expect(scene.said.suffix(2) == ["replaced", "changed"] && !scene.core.isAwaitingReplacement)
    }

    @Test("What is switched off is kept and given to nobody")
    func switchedOff() throws {
        var scene = Scene()
        _ = try scene.offer(note)
        scene.decide { $0.setSwitch(HandoffSwitch(isOn: false)) }
        let refused = scene.claim(note, by: "a")
        #expect(scene.given[refused] == "notOffered")
        #expect(scene.core.offered.map { scene.core.isOn($0) } == [false])
        scene.decide { $0.setSwitch(HandoffSwitch()) }
        #expect(scene.core.visible.count == 1)
    }
}
