// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Testing

@testable import BatonCore

/// Applications and devices that do whatever they like, in any order.
@Suite("Random walks of own activities")
struct OwnActivitiesWalkTests {
    @Test("No walk breaks what always holds, and each comes to rest")
    func walks() {
        let seed = SeededGenerator.chosenSeed
        for number in 0..<60 {
            var walk = Walk(seed: seed &+ UInt64(number))
            for _ in 0..<200 {
                walk.step()
                if let violation = walk.violation() {
                    return record(violation, in: walk, number, seed)
                }
            }
            walk.rest()
            if let violation = walk.unrest() {
                return record(violation, in: walk, number, seed)
            }
        }
    }

    private func record(_ violation: String, in walk: Walk, _ number: Int, _ seed: UInt64) {
        let history = walk.history.joined(separator: "\n")
        Issue.record("walk \(number) of seed \(seed): \(violation)\n\(history)")
    }
}

private struct Walk {
    private var scene = Scene()
    private var random: SeededGenerator
    private(set) var history: [String] = []
    private var claims: [ClaimID] = []
    private var offers: [OfferID] = []
    /// Offers whose applications hear nothing more.
    private var ended: Set<Substring> = []
    /// How many lines of the scene were checked.
    private var checked = 0
    private let activities: [ActivityID] = (1...3).map { name($0) }
    private let devices: [PeerName] = ["a", "b", "c"]

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
    }

    /// A broken invariant, or nil.
    mutating func violation() -> String? {
        let claims = scene.core.claims
        guard claims.count <= ClaimBounds.claims else { return "there are \(claims.count) claims" }
        // The first activity is always offered as an exclusive one.
        let holders = Set(claims.filter { $0.kept == "activity 1" }.map(\.device))
        guard holders.count < 2 else { return "\(holders) hold the exclusive activity" }
        let news = scene.said[checked...]
        checked = scene.said.count
        for line in news {
            let words = line.split(separator: ": ", maxSplits: 1)
            guard words.count == 2, let offer = words.first, Int(offer) != nil else { continue }
            guard !ended.contains(offer) else { return "\(line), after its end" }
            if words[1] == "end" { ended.insert(offer) }
        }
        return nil
    }

    /// Something that is left when nobody acts any more, or nil.
    mutating func unrest() -> String? {
        if let violation = violation() { return violation }
        let open = self.claims.filter { scene.given[$0] == nil }
        guard open.isEmpty else { return "\(open) have no answer" }
        guard scene.core.claims.isEmpty else { return "claims are left" }
        guard scene.core.nextDeadline == nil else { return "a deadline is left" }
        return ended.count == offers.count ? nil : "\(offers.count) offers and \(ended.count) ends"
    }

    mutating func step() {
        let activity = activities.randomElement(using: &random) ?? name(1)
        let device = devices.randomElement(using: &random) ?? "a"
        let claim = claims.randomElement(using: &random) ?? name(0)
        let failure = TestFailure(text: "it broke")
        switch Int.random(in: 0..<20, using: &random) {
        case 0, 1, 2:
            note("offer \(activity.shortName)")
            let saving = activity == activities[2]
            let expires = Bool.random(using: &random) ? scene.time + 100 : nil
            let id = try? scene.offer(
                activity, from: activity.shortName, exclusively: activity == activities[0], saving: saving,
                until: expires)
            if let id { offers.append(id) }
        case 3, 4, 5, 6:
            note("claim \(activity.shortName) by \(device.name)")
            claims.append(scene.claim(activity, by: device))
        case 7:
            note("withdraw an offer")
            if let offer = offers.randomElement(using: &random) { scene.decide { $0.withdraw(offer) } }
        case 8:
            note("connections of \(device.name) end")
            scene.decide { $0.connectionEnded(of: device) }
        case 9:
            note("present \(claim.shortName)")
            _ = scene.decide { $0.present(claim, by: device) }
        case 10:
            note("release \(claim.shortName)")
            scene.decide { $0.release(claim, by: device, because: failure) }
        case 11:
            note("continued \(claim.shortName)")
            _ = scene.decide { $0.setContinued(claim, by: device) }
        case 12:
            note("fail \(claim.shortName)")
            scene.decide { $0.fail(claim, because: failure) }
        case 13:
            note("interrupt \(claim.shortName)")
            scene.decide { $0.interrupt(claim, because: failure) }
        case 14:
            note("go on with \(claim.shortName)")
            scene.decide { $0.goOn(claim) }
        case 15:
            note("cancel \(claim.shortName)")
            _ = scene.decide { $0.cancel(claim) }
        case 16:
            let isOn = Bool.random(using: &random)
            note("switch \(isOn ? "on" : "off")")
            scene.decide { $0.setSwitch(HandoffSwitch(isOn: isOn)) }
        case 17, 18:
            guard let offer = scene.questions.randomElement(using: &random) else { return }
            note("offer \(offer.shortName) is saved")
            scene.answer(offer, Bool.random(using: &random) ? .success("activity 3") : .failure(failure))
        default:
            let seconds = Double([0.05, 1, 40, 700].randomElement(using: &random) ?? 1)
            note("wait \(seconds) s")
            scene.wait(seconds)
        }
    }

    /// Applications answer and withdraw, devices go, and time passes.
    mutating func rest() {
        note("rest")
        for offer in offers { scene.decide { $0.withdraw(offer) } }
        while let offer = scene.questions.first { scene.answer(offer, .success("saved")) }
        for device in devices { scene.decide { $0.connectionEnded(of: device) } }
        scene.wait(700)
    }

    private mutating func note(_ line: String) { history.append("\(scene.time): \(line)") }
}
