// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import BatonAccount

@Suite("An invitation")
struct InvitationTests {
    private static let deviceKey = [UInt8](repeating: 7, count: 32)

    /// An invitation and the joiner that it talks to.
    private struct Scene {
        var invitation = Invitation()
        var keys: PairingKeys?

        /// A joiner comes, and shows its digits.
        mutating func attempt() throws {
            let joiner = PairingJoiner(deviceKey: InvitationTests.deviceKey)
            guard case .send(let key) = try invitation.receive(joiner.commit) else {
                Issue.record("the inviter did not send its key")
                return
            }
            let (open, keys) = try joiner.receiveKey(key)
            guard case .ask = try invitation.receive(open) else {
                Issue.record("the user was not asked")
                return
            }
            self.keys = keys
        }

        var digits: String { keys?.digits ?? "" }
        /// Six digits that the joiner does not show.
        var wrong: String { digits == "000000" ? "000001" : "000000" }
    }

    @Test("The right digits hand the account over to the device that showed them")
    func right() throws {
        var scene = Scene()
        #expect(scene.invitation.isWaiting)
        try scene.attempt()
        #expect(!scene.invitation.isWaiting)
        guard case .handOver(let deviceKey, let keys) = scene.invitation.enter(scene.digits) else {
            Issue.record("no hand-over")
            return
        }
        #expect(deviceKey == Self.deviceKey && keys.digits == scene.digits)
        let done = PairingMessage.done(try #require(try scene.keys?.seal(Array("desktop".utf8), .done)))
        guard case .joined("desktop") = try scene.invitation.receive(done) else {
            Issue.record("no joined device")
            return
        }
        try Self.expectOver(&scene.invitation)
    }

    @Test("A wrong entry leaves the attempt open, and the third one ends the invitation")
    func wrong() throws {
        var scene = Scene()
        try scene.attempt()
        for left in [2, 1] {
            guard case .wrong(left) = scene.invitation.enter(scene.wrong) else {
                Issue.record("\(left) tries should be left")
                return
            }
        }
        guard case .over(.digits) = scene.invitation.enter(scene.wrong) else {
            Issue.record("a fourth try")
            return
        }
        try Self.expectOver(&scene.invitation)
    }

    @Test("The right digits count after two wrong entries")
    func second() throws {
        var scene = Scene()
        try scene.attempt()
        _ = scene.invitation.enter(scene.wrong)
        _ = scene.invitation.enter(scene.wrong)
        guard case .handOver = scene.invitation.enter(scene.digits) else {
            Issue.record("no hand-over")
            return
        }
    }

    @Test("An attempt is spent when the inviter has sent its key", arguments: [true, false])
    func reconnecting(asksTheUser: Bool) throws {
        var scene = Scene()
        for left in [2, 1] {
            if asksTheUser {
                try scene.attempt()
            } else {
                _ = try scene.invitation.receive(PairingJoiner(deviceKey: Self.deviceKey).commit)
            }
            guard case .lost(left) = scene.invitation.lose() else {
                Issue.record("\(left) tries should be left")
                return
            }
            #expect(scene.invitation.isWaiting)
        }
        try scene.attempt()
        guard case .over(.digits) = scene.invitation.lose() else {
            Issue.record("a fourth attempt")
            return
        }
        try Self.expectOver(&scene.invitation)
    }

    @Test("An attempt with a wrong entry is counted once")
    func wrongAndLost() throws {
        var scene = Scene()
        for left in [2, 1] {
            try scene.attempt()
            _ = scene.invitation.enter(scene.wrong)
            guard case .lost(left) = scene.invitation.lose() else {
                Issue.record("\(left) tries should be left")
                return
            }
        }
        try scene.attempt()
        guard case .over(.digits) = scene.invitation.enter(scene.wrong) else {
            Issue.record("a fourth attempt")
            return
        }
    }

    @Test("A message out of turn is refused, and changes nothing")
    func outOfTurn() throws {
        var scene = Scene()
        let done = PairingMessage.done([UInt8](repeating: 0, count: 20))
        #expect(throws: PairingError.malformed) { try scene.invitation.receive(done) }
        #expect(scene.invitation.isWaiting)
        try scene.attempt()
        let commit = PairingJoiner(deviceKey: Self.deviceKey).commit
        for message in [done, commit] {
            #expect(throws: PairingError.malformed) { try scene.invitation.receive(message) }
        }
        guard case .handOver = scene.invitation.enter(scene.digits) else {
            Issue.record("no hand-over")
            return
        }
        #expect(throws: PairingError.malformed) { try scene.invitation.receive(done) }
        guard case .unconfirmed = scene.invitation.lose() else {
            Issue.record("the device may have the account")
            return
        }
        try Self.expectOver(&scene.invitation)
    }

    @Test("Digits while nobody is asked about are not taken for an entry")
    func early() throws {
        var scene = Scene()
        guard case .ignore = scene.invitation.enter("000000"), case .ignore = scene.invitation.lose() else {
            Issue.record("an event without a joiner counted")
            return
        }
        try scene.attempt()
        guard case .wrong(2) = scene.invitation.enter(scene.wrong) else {
            Issue.record("an early entry counted")
            return
        }
    }

    @Test("Time ends it, and after the hand-over it says that the device may be in")
    func time() throws {
        var scene = Scene()
        try scene.attempt()
        var other = scene
        guard case .over(.time) = scene.invitation.stop(.time) else {
            Issue.record("still open")
            return
        }
        try Self.expectOver(&scene.invitation)
        _ = other.invitation.enter(other.digits)
        guard case .unconfirmed = other.invitation.stop(.time) else {
            Issue.record("the device may have the account")
            return
        }
        try Self.expectOver(&other.invitation)
    }

    private static func expectOver(_ invitation: inout Invitation) throws {
        let commit = PairingJoiner(deviceKey: deviceKey).commit
        guard case .ignore = try invitation.receive(commit), case .ignore = invitation.enter("000000"),
            case .ignore = invitation.lose(), case .ignore = invitation.stop(.time)
        else {
            Issue.record("an invitation that is over goes on")
            return
        }
        #expect(!invitation.isWaiting)
    }
}
