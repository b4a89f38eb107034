// SPDX-License-Identifier: Apache-2.0

import SwiftProtobuf

@testable import BatonAccount
@testable import BatonMessages
@testable import BatonNode

/// A joiner in front of an invitation, an inviter in front of a joiner, and what an inviter hands over.
///
/// The first byte of an input chooses which, and the size of the pieces in which messages come.
enum PairingTarget: FuzzTarget {
    static let name = "pairing"
    static let maximumLength = 4000

    private static func secret(_ byte: UInt8) -> SecretBytes {
        [UInt8](repeating: byte, count: 32).withUnsafeBytes { SecretBytes(copying: $0) }
    }

    private static let device = {
        do { return try NewDevice(seed: secret(7)) } catch { fatalError("\(error)") }
    }()
    private static let wrapping = secret(8)

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        var input = Input(bytes)
        let kind = input.byte()
        switch kind % 3 {
        case 0: try invite(&input, Int(kind / 3))
        case 1: join(&input, Int(kind / 3))
        case _: takeOver(input.remainder())
        }
    }

    /// Reads one message as a socket does, and nothing behind it.
    private static func read(_ input: inout Input, _ piece: Int, _ expected: Set<PairingMessage.Kind>)
        -> PairingMessage?
    {
        var reader = PairingReader(expecting: expected)
        while !input.isEmpty {
            expect((1...65_535).contains(reader.missing), "a reader that wants \(reader.missing) bytes")
            let part = input.bytes(min(reader.missing, piece == 0 ? .max : piece))
            do {
                let message = try part.withUnsafeBytes { try reader.receive($0) }
                guard let message else { continue }
                expect(expected.contains(message.kind) || message.kind == .end, "a message that was not awaited")
                return message
            } catch {
                return nil
            }
        }
        return nil
    }

    /// Events in any order, from the joiner, the user and the clock.
    private static func invite(_ input: inout Input, _ piece: Int) throws {
        var invitation = Invitation()
        var joiner = PairingJoiner(deviceKey: device.publicKey)
        var key: PairingMessage?
        var keys: PairingKeys?
        var keyCount = 0
        var mayHandOver = false
        while !input.isEmpty {
            var event: Invitation.Event?
            mayHandOver = false
            func begin(_ commit: PairingMessage) {
                guard let sent = try? invitation.begin(commit) else { return }
                key = sent
                keyCount += 1
                expect(keyCount <= Invitation.maximumFailures, "a key more than there are tries")
            }
            switch input.byte() % 8 {
            case 0:
                guard let message = read(&input, piece, [.commit, .open, .done]) else { break }
                if message.kind == .commit { begin(message) } else { event = try? invitation.receive(message) }
            case 1:
                joiner = PairingJoiner(deviceKey: device.publicKey)
                begin(joiner.commit)
            case 2:
                guard let sent = key, let opened = try? joiner.receiveKey(sent) else { break }
                event = try? invitation.receive(opened.open)
                if event == .asked { keys = opened.keys }
            case 3:
                mayHandOver = true
                event = invitation.enter(keys?.digits ?? "")
            case 4: event = invitation.enter(keys?.digits == "000000" ? "000001" : "000000")
            case 5: event = invitation.lose()
            case 6: event = invitation.stop(.time)
            case _:
                guard let sealed = try keys?.seal(Array("desktop".utf8), .done) else { break }
                event = try? invitation.receive(PairingMessage(.done, sealed))
            }
            switch event {
            case .right:
                let isDevice = invitation.recipient?.deviceKey == device.publicKey
                expect(mayHandOver && isDevice, "a hand-over that nobody confirmed")
            case .wrong(let left), .lost(let left): expect((1...2).contains(left), "\(left) tries are left")
            case .asked, .joined, .unconfirmed, .over, .failed, nil: break
            }
        }
    }

    /// A key and a hand-over of an inviter that makes them up.
    private static func join(_ input: inout Input, _ piece: Int) {
        let joiner = PairingJoiner(deviceKey: device.publicKey)
        guard let key = read(&input, piece, [.key]), let (open, keys) = try? joiner.receiveKey(key) else { return }
        expect(open.encoded.count == 115 && Invitation.digits(in: keys.digits) == keys.digits, "an odd opening")
        guard let message = read(&input, piece, [.welcome]) else { return }
        expect(keys.open(message.body, .welcome) == nil, "a hand-over that nobody sealed was opened")
    }

    /// The content of a seal that is right.
    private static func takeOver(_ content: [UInt8]) {
        guard let message = try? WireHandOver(serializedBytes: content),
            let handedOver = try? message.read(for: device, name: "desktop", wrappedBy: wrapping)
        else { return }
        let account = handedOver.account
        expect(account.identity.publicKey == device.publicKey, "the certificate is another device's")
        expect((1...63).contains(handedOver.inviterName.utf8.count), "a name out of bounds")
        expect(!account.isRevoked(account.identity.id), "a device joins that is revoked")
    }

    static func seeds() throws -> [[UInt8]] {
        let zeros = [UInt8](repeating: 0, count: 32)
        let messages: [PairingMessage] = [
            PairingMessage(.commit, PairingMessage.version + zeros),
            PairingMessage(.open, zeros + zeros + zeros + zeros.prefix(16)),
            PairingMessage(.done, Array(zeros.prefix(23))), PairingMessage(.end, [2]),
        ]
        let base = PairingContribution(privateKey: secret(9), nonce: zeros)
        let key = PairingMessage(.key, base.publicKey + zeros)
        let fixture = AdvertisementTarget.Fixture.shared
        let account = Account(
            id: fixture.secrets.accountID, identity: fixture.identity, deviceName: "laptop", keys: [fixture.keys])
        let handOver: [UInt8] = try WireHandOver(account, fixture.secrets, to: device.publicKey, wrappedBy: wrapping)
            .serializedBytes()
        return messages.map { [0, 0] + $0.encoded } + [
            // The right digits, wrong ones three times, and joiners that go.
            [0, 1, 2, 3, 7], [0, 1, 2, 4, 4, 4, 3], [0, 1, 5, 1, 2, 5, 1, 5, 1], [0, 1, 2, 3, 5, 6],
            [1] + key.encoded + PairingMessage(.welcome, zeros).encoded,
            [13] + key.encoded + PairingMessage(.end, [3]).encoded,
            [2] + handOver,
        ]
    }
}
