// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Testing

@testable import BatonAccount

@Suite("An invitation")
struct InvitationTests {
    private static let deviceKey = [UInt8](repeating: 7, count: 32)
    private static let device = DeviceID(ed25519PublicKey: deviceKey)

    /// An invitation and the joiner that it talks to.
    private struct Scene {
        var invitation = Invitation()
        var keys: PairingKeys?

        /// A joiner comes, and shows its digits.
        mutating func attempt() throws {
            let joiner = PairingJoiner(deviceKey: InvitationTests.deviceKey)
            let (open, keys) = try joiner.receiveKey(invitation.begin(joiner.commit))
            #expect(try invitation.receive(open) == .asked)
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
        #expect(scene.invitation.recipient == nil)
        #expect(scene.invitation.enter(scene.digits) == .right(Self.device))
        let recipient = try #require(scene.invitation.recipient)
        #expect(recipient.deviceKey == Self.deviceKey && recipient.keys.digits == scene.digits)
        let done = PairingMessage(.done, try #require(try scene.keys?.seal(Array("desktop".utf8), .done)))
        #expect(try scene.invitation.receive(done) == .joined(name: "desktop", Self.device))
        try Self.expectOver(&scene.invitation)
    }

    @Test("A wrong entry leaves the attempt open, and the third one ends the invitation")
    func wrong() throws {
        var scene = Scene()
        try scene.attempt()
        for left in [2, 1] {
            #expect(scene.invitation.enter(scene.wrong) == .wrong(left: left))
        }
        #expect(scene.invitation.enter(scene.wrong) == .over(.digits))
        try Self.expectOver(&scene.invitation)
    }

    @Test("The right digits count after two wrong entries")
    func second() throws {
        var scene = Scene()
        try scene.attempt()
        _ = scene.invitation.enter(scene.wrong)
        _ = scene.invitation.enter(scene.wrong)
        #expect(scene.invitation.enter(scene.digits) == .right(Self.device))
    }

    @Test("An attempt is spent when the inviter has sent its key", arguments: [true, false])
    func reconnecting(asksTheUser: Bool) throws {
        var scene = Scene()
        for left in [2, 1] {
            if asksTheUser {
                try scene.attempt()
            } else {
                _ = try scene.invitation.begin(PairingJoiner(deviceKey: Self.deviceKey).commit)
            }
            #expect(scene.invitation.lose() == .lost(left: left))
            #expect(scene.invitation.isWaiting)
        }
        try scene.attempt()
        #expect(scene.invitation.lose() == .over(.digits))
        try Self.expectOver(&scene.invitation)
    }

    @Test("An attempt with a wrong entry is counted once")
    func wrongAndLost() throws {
        var scene = Scene()
        for left in [2, 1] {
            try scene.attempt()
            _ = scene.invitation.enter(scene.wrong)
            #expect(scene.invitation.lose() == .lost(left: left))
        }
        try scene.attempt()
        #expect(scene.invitation.enter(scene.wrong) == .over(.digits))
    }

    @Test("A message out of turn is refused, and changes nothing")
    func outOfTurn() throws {
        var scene = Scene()
        let done = PairingMessage(.done, [UInt8](repeating: 0, count: 20))
        #expect(throws: PairingError.malformed) { try scene.invitation.receive(done) }
        #expect(scene.invitation.isWaiting)
        try scene.attempt()
        let commit = PairingJoiner(deviceKey: Self.deviceKey).commit
        for message in [done, commit] {
            #expect(throws: PairingError.malformed) { try scene.invitation.receive(message) }
        }
        #expect(scene.invitation.enter(scene.digits) == .right(Self.device))
        #expect(throws: PairingError.malformed) { try scene.invitation.receive(done) }
        #expect(scene.invitation.lose() == .unconfirmed(Self.device))
        try Self.expectOver(&scene.invitation)
    }

    @Test("Digits while nobody is asked about are not taken for an entry")
    func early() throws {
        var scene = Scene()
        #expect(scene.invitation.enter("000000") == nil && scene.invitation.lose() == nil)
        try scene.attempt()
        #expect(scene.invitation.enter(scene.wrong) == .wrong(left: 2))
    }

    @Test("Time ends it, and after the hand-over it says that the device may be in")
    func time() throws {
        var scene = Scene()
        try scene.attempt()
        var other = scene
        #expect(scene.invitation.stop(.time) == .over(.time))
        try Self.expectOver(&scene.invitation)
        _ = other.invitation.enter(other.digits)
        #expect(other.invitation.stop(.time) == .unconfirmed(Self.device))
        try Self.expectOver(&other.invitation)
    }

    private static func expectOver(_ invitation: inout Invitation) throws {
        let commit = PairingJoiner(deviceKey: deviceKey).commit
        #expect(throws: PairingError.malformed) { try invitation.begin(commit) }
        #expect(try invitation.receive(commit) == nil && invitation.enter("000000") == nil)
        #expect(invitation.lose() == nil && invitation.stop(.time) == nil)
        #expect(!invitation.isWaiting && invitation.recipient == nil)
    }
}
