// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonTestSupport
import Testing

@testable import BatonAccount
@testable import BatonNode

/// Attacks on pairing by six digits, from somebody in the network or in between.
///
/// Vaudenay, "Secure Communications over Insecure Channels Based on Short Authenticated Strings", CRYPTO 2005, section
/// 4 (the order of commitment and keys); Bluetooth Core 5.4, volume 2, part H, section 7.2 (numeric comparison); von
/// Tschirschnitz, Peuckert, Franzen and Grossklags, "Method Confusion Attack on Bluetooth Pairing", IEEE S&P 2021 (a
/// confirmation that proves one side alone).
@Suite("Attacks on pairing", .timeLimit(.minutes(3)))
struct PairingAttacks {
    private static let deviceKey = [UInt8](repeating: 7, count: 32)
    private static let thief = [UInt8](repeating: 9, count: 32)

    /// A joiner whose digits stand on the user's screen, as the false inviter in front of it made them.
    private static func victim() throws -> PairingKeys {
        let joiner = PairingJoiner(deviceKey: deviceKey)
        return try joiner.receiveKey(try PairingInviter(commit: joiner.commit).key).keys
    }

    /// Three of six digits have to match, so that the attack takes a second and not twenty minutes.
    @Test("A middle that chooses its opening when it knows which digits it needs")
    func lateChoice() async throws {
        /// - Parameter commits: whether the inviter has the commitment before it shows its key.
        func attempt(commits: Bool) throws -> Outcome {
            let wanted = try Self.victim().digits.prefix(3)
            let privateKey = SecretBytes.random(count: 32)
            let inviterOwn = PairingContribution()
            func commitment(_ own: PairingContribution) -> [UInt8] {
                PairingContribution.commitment(publicKey: own.publicKey, nonce: own.nonce)
            }
            let early = commitment(PairingContribution(privateKey: privateKey))
            for _ in 0..<20_000 {
                let late = PairingContribution(privateKey: privateKey)
                let commit = PairingMessage(.commit, PairingMessage.version + (commits ? early : commitment(late)))
                let inviter = try PairingInviter(commit: commit, inviterOwn)
                let keys = try late.keys(
                    with: inviterOwn.publicKey,
                    transcript: PairingContribution.transcript(
                        commitment: commits ? early : commitment(late),
                        inviter: (inviterOwn.publicKey, inviterOwn.nonce), joiner: (late.publicKey, late.nonce)))
                guard keys.digits.hasPrefix(wanted) else { continue }
                let open = PairingMessage(.open, late.publicKey + late.nonce + (try keys.seal(Self.thief, .open)))
                return Outcome(succeeds: (try? inviter.receiveOpen(open))?.deviceKey == Self.thief)
            }
            return .refused
        }
        try await attack("a middle that makes its opening to measure") {
            try attempt(commits: true)
        } against: {
            try attempt(commits: false)
        }
    }

    /// The thief reconnects until its digits are those on the screen of the user's device, and only then lets the
    /// question come.
    @Test("A joiner that tries again until it has the right digits")
    func guessing() async throws {
        /// - Parameters:
        ///   - places: how many digits have to match.
        ///   - tries: how often the thief tries.
        ///   - counts: whether an attempt without an entry counts.
        func attempt(places: Int, tries: Int, counts: Bool) throws -> (outcome: Outcome, keys: Int) {
            let wanted = try Self.victim().digits.prefix(places)
            var invitation = Invitation()
            var keyCount = 0
            for _ in 0..<tries {
                if !counts { invitation = Invitation() }
                let joiner = PairingJoiner(deviceKey: Self.thief)
                guard let key = try? invitation.begin(joiner.commit) else { break }
                keyCount += 1
                let (open, keys) = try joiner.receiveKey(key)
                if keys.digits.hasPrefix(wanted) {
                    _ = try invitation.receive(open)
                    guard case .right = invitation.enter(keys.digits) else { break }
                    return (.succeeded, keyCount)
                }
                _ = invitation.lose()
            }
            return (.refused, keyCount)
        }
        try await attack("reconnecting until the digits match") {
            let (outcome, keys) = try attempt(places: 6, tries: 1000, counts: true)
            #expect(keys == Invitation.maximumFailures)
            return outcome
        } against: {
            // Two of six digits, so that it takes a second.
            try attempt(places: 2, tries: 5000, counts: false).outcome
        }
    }

    @Test("A middle that pairs with both sides, each under keys of its own")
    func middle() async throws {
        /// - Parameter compares: whether the user types what stands on the new device.
        func attempt(compares: Bool) throws -> Outcome {
            let victim = try Self.victim()
            var invitation = Invitation()
            let middle = PairingJoiner(deviceKey: Self.thief)
            let (open, keys) = try middle.receiveKey(invitation.begin(middle.commit))
            guard case .asked = try invitation.receive(open) else { return .refused }
            _ = invitation.enter(compares ? victim.digits : keys.digits)
            return Outcome(succeeds: invitation.recipient?.deviceKey == Self.thief)
        }
        try await attack("a middle on both sides") {
            try attempt(compares: true)
        } against: {
            try attempt(compares: false)
        }
    }

    @Test("Recorded messages, sent again to another inviter and another joiner")
    func replay() async throws {
        let recordedOwn = (joiner: PairingContribution(), inviter: PairingContribution())
        let joiner = PairingJoiner(deviceKey: Self.deviceKey, recordedOwn.joiner)
        let inviter = try PairingInviter(commit: joiner.commit, recordedOwn.inviter)
        let (open, joinerKeys) = try joiner.receiveKey(inviter.key)
        let welcome = try inviter.receiveOpen(open).keys.seal([1, 2, 3], .welcome)

        func replayToInviter(_ own: PairingContribution) throws -> Outcome {
            let next = try PairingInviter(commit: joiner.commit, own)
            return Outcome(succeeds: (try? next.receiveOpen(open)) != nil)
        }
        try await attack("commitment and opening of another day") {
            try replayToInviter(PairingContribution())
        } against: {
            try replayToInviter(recordedOwn.inviter)
        }
        func replayToJoiner(_ own: PairingContribution) throws -> Outcome {
            let next = try PairingJoiner(deviceKey: Self.deviceKey, own).receiveKey(inviter.key).keys
            return Outcome(succeeds: next.open(welcome, .welcome) != nil)
        }
        try await attack("key and hand-over of another day") {
            try replayToJoiner(PairingContribution())
        } against: {
            try replayToJoiner(recordedOwn.joiner)
        }
        #expect(joinerKeys.open(welcome, .welcome) == [1, 2, 3])
    }

    /// The joiner's commitment reaches two inviters, and one of them answers it.
    @Test("The opening and the digits of a joiner, relayed to a second inviter")
    func relay() async throws {
        /// - Parameter isAnswering: whether the inviter is the one whose key the joiner has.
        func attempt(isAnswering: Bool) throws -> Outcome {
            let joiner = PairingJoiner(deviceKey: Self.deviceKey)
            var (first, second) = (Invitation(), Invitation())
            let (key, other) = (try first.begin(joiner.commit), try second.begin(joiner.commit))
            let (open, keys) = try joiner.receiveKey(isAnswering ? other : key)
            guard case .asked? = try? second.receive(open), case .right = second.enter(keys.digits) else {
                return .refused
            }
            return .succeeded
        }
        try await attack("one joiner in front of two inviters") {
            try attempt(isAnswering: false)
        } against: {
            try attempt(isAnswering: true)
        }
    }

    /// The inviter has to know the digits, and says that they are right without anybody having typed them.
    @Test("A false inviter that says that the digits are right")
    func falseInviter() async throws {
        let liar = try TestAccount(devices: 1)
        struct No: Error {}
        /// - Parameter asks: whether the joiner asks its user, who sees no word of it on the real inviter's screen.
        func attempt(asks: Bool) async throws -> Outcome {
            let server = try InvitationServer(
                for: liar.devices[0].account, with: AccountSecrets(liar.key))
            await server.start()
            let (shown, digits) = AsyncStream<String>.makeStream()
            let answering = Task {
                for await event in server.events {
                    guard case .asked = event else { continue }
                    for await digits in shown {
                        await server.enter(digits)
                        break
                    }
                }
            }
            defer { answering.cancel() }
            var stored = false
            try? await PairingJoin(name: "desktop").run(
                at: [.ip(.ipv4Loopback, port: server.port)],
                show: { digits.yield($0) },
                store: { _ in
                    if asks { throw No() }
                    stored = true
                })
            await server.stop(.turnedAway)
            return Outcome(succeeds: stored)
        }
        try await attack("a false inviter") {
            try await attempt(asks: true)
        } against: {
            try await attempt(asks: false)
        }
    }

    /// A member of the account may not choose whose key the new device gets a certificate for.
    @Test("A hand-over with the certificate of another device")
    func foreignCertificate() async throws {
        let account = try TestAccount(devices: 1)
        let (device, other) = (try NewDevice(), try NewDevice())
        let key = SecretBytes.random(count: 32)
        func attempt(_ certified: NewDevice) throws -> Outcome {
            let content = try WireHandOver(
                account.devices[0].account, AccountSecrets(account.key), to: other.publicKey, wrappedBy: key)
            return Outcome(
                succeeds: (try? content.read(for: certified, name: "desktop", wrappedBy: key)) != nil)
        }
        try await attack("the certificate of another device") {
            try attempt(device)
        } against: {
            // The device that it is for.
            try attempt(other)
        }
    }
}
