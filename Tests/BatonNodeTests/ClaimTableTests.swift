// SPDX-License-Identifier: Apache-2.0

import BatonMessages
import BatonProtocol
import Testing

@testable import BatonNode

@Suite("Claims, in simulated time")
struct ClaimTableTests {
    private let start = Instant(nanoseconds: 1_000_000_000)

    private func activity(exclusive: Bool = false) throws -> OfferedActivity {
        var request = WireOfferRequest()
        request.type = "org.example.note"
        request.exclusive = exclusive
        return try OfferedActivity(request, document: nil)
    }

    @Test("Several devices may claim one activity")
    func shared() throws {
        var table = ClaimTable()
        let activity = try activity()
        let first = try table.claim(activity, by: "a", now: start)
        let second = try table.claim(activity, by: "b", now: start)
        let own = table.present(first, by: "a", now: start)
        #expect(own?.activity.id == activity.id)
        let other = table.present(second, by: "b", now: start)
        #expect(other?.device.id == "b")
        let stolen = table.present(first, by: "b", now: start)
        #expect(stolen == nil)
    }

    @Test("An exclusive activity is refused to a second device, with the holder's name, until it is let go")
    func exclusive() throws {
        var table = ClaimTable()
        let activity = try activity(exclusive: true)
        let claim = try table.claim(activity, by: "a", now: start)
        #expect(throws: ClaimTable.Refusal.held(by: "a")) {
            _ = try table.claim(activity, by: "b", now: start)
        }
        let byStranger = table.release(claim, by: "b")
        #expect(byStranger == nil)
        #expect(table.isHolder("a", now: start) && !table.isHolder("b", now: start))
        let byHolder = table.release(claim, by: "a")
        #expect(byHolder != nil)
        #expect(!table.isHolder("a", now: start))
        _ = try table.claim(activity, by: "b", now: start)
    }

    @Test("A claim lapses 30 s after the connection ended, and not when it was presented again")
    func lapse() throws {
        var table = ClaimTable()
        let claim = try table.claim(try activity(), by: "a", now: start)
        table.connectionsEnded(of: "a", now: start)
        let last = start + ClaimTable.lapse + .nanoseconds(-1)
        let inTime = table.present(claim, by: "a", now: last)
        #expect(inTime != nil)
        let connected = table.present(claim, by: "a", now: start + .seconds(3600))
        #expect(connected != nil)
        table.connectionsEnded(of: "a", now: start)
        let lapsed = table.present(claim, by: "a", now: start + ClaimTable.lapse)
        #expect(lapsed == nil)
    }

    @Test("A device whose transfer was cut may come back for as long as it tries to, in whatever order that was seen")
    func interrupted() throws {
        for isSeenFirst in [true, false] {
            var table = ClaimTable()
            let claim = try table.claim(try activity(), by: "a", now: start)
            if isSeenFirst { table.connectionsEnded(of: "a", now: start) }
            let interrupted = table.setInterrupted(claim, by: "a", now: start)
            #expect(interrupted != nil)
            if !isSeenFirst { table.connectionsEnded(of: "a", now: start) }
            let inTime = table.present(claim, by: "a", now: start + TransferRetry.patience + .nanoseconds(-1))
            #expect(inTime != nil)
            table.connectionsEnded(of: "a", now: start)
            let late = table.present(claim, by: "a", now: start + TransferRetry.patience)
            #expect(late == nil)
        }
    }

    @Test("What lapses or makes room is told once, unless its holder has said what became of it")
    func losses() throws {
        var table = ClaimTable()
        let activity = try activity()
        var claims: [ClaimID] = []
        for _ in 0..<ClaimTable.boundPerDevice { claims.append(try table.claim(activity, by: "a", now: start)) }
        let other = try table.claim(activity, by: "b", now: start)
        table.setContinued(claims[1])
        _ = table.setFailed(claims[2], by: "a")
        for _ in 0..<3 { _ = try table.claim(activity, by: "a", now: start) }
        // The oldest; the two after it are settled.
        let evicted = table.takeLosses()
        #expect(evicted.map(\.error.code) == [.limitExceeded] && evicted.first?.error.device == "a")
        #expect(evicted.first?.activity == activity.id)

        table.connectionsEnded(of: "a", now: start)
        table.connectionsEnded(of: "b", now: start)
        let kept = table.present(other, by: "b", now: start)
        #expect(kept != nil)
        table.expire(now: start + ClaimTable.lapse)
        let lost = table.takeLosses()
        #expect(lost.count == ClaimTable.boundPerDevice)
        #expect(lost.allSatisfy { $0.error.code == .connectionLost && $0.error.device == "a" })
        table.expire(now: start + .seconds(3600))
        let nothing = table.takeLosses()
        #expect(nothing.isEmpty)
    }

    @Test("There are at most so many claims")
    func bound() throws {
        var table = ClaimTable()
        let activity = try activity()
        for number in 0..<ClaimTable.bound {
            _ = try table.claim(activity, by: PeerName(id: "\(number)", name: ""), now: start)
        }
        #expect(throws: ClaimTable.Refusal.tooManyClaims) { try table.claim(activity, by: "one more", now: start) }
    }

    @Test("A device that claims too much loses its own oldest claim, and nobody else's")
    func boundPerDevice() throws {
        var table = ClaimTable()
        let activity = try activity()
        let other = try table.claim(activity, by: "b", now: start)
        let oldest = try table.claim(activity, by: "a", now: start)
        let next = try table.claim(activity, by: "a", now: start)
        for _ in 2...ClaimTable.boundPerDevice { _ = try table.claim(activity, by: "a", now: start) }
        let gone = table.present(oldest, by: "a", now: start)
        #expect(gone == nil)
        let kept = table.present(next, by: "a", now: start)
        #expect(kept != nil)
        let untouched = table.present(other, by: "b", now: start)
        #expect(untouched != nil)
    }
}

extension PeerName: ExpressibleByStringLiteral {
    package init(stringLiteral id: String) {
        self.init(id: id, name: id)
    }
}
