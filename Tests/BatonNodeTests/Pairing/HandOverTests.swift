// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonMessages
import BatonProtocol
import BatonTestSupport
import FoundationEssentials
import SwiftProtobuf
import Testing

@testable import BatonNode

@Suite("The hand-over to a new device")
struct HandOverTests {
    private let inviting: TestAccount
    private let device: NewDevice
    private let key = SecretBytes.random(count: 32)

    init() throws {
        inviting = try TestAccount()
        device = try NewDevice()
    }

    private func content(of account: Account) throws -> WireHandOver {
        try WireHandOver(account, AccountSecrets(inviting.key), to: device.publicKey, wrappedBy: key)
    }

    @Test("It has the revocations of the inviter, and keys of the generation behind them")
    func revocations() throws {
        var account = inviting.devices[0].account
        let lost = inviting.devices[1].id
        _ = try account.revoke([lost], with: AccountSecrets(inviting.key))
        let handedOver = try content(of: account).read(for: device, name: "desktop", wrappedBy: key)
        #expect(handedOver.account.isRevoked(lost) && handedOver.account.keys == account.keys)
        #expect(handedOver.inviterName == account.deviceName)
    }

    @Test("A device that a list revokes does not take it")
    func revoked() throws {
        var account = inviting.devices[0].account
        _ = try account.revoke([DeviceID(ed25519PublicKey: device.publicKey)], with: AccountSecrets(inviting.key))
        let message = try content(of: account)
        #expect(throws: PairingError.malformed) {
            try message.read(for: device, name: "desktop", wrappedBy: key)
        }
    }

    @Test("A part that is missing, of another account or out of bounds is refused", arguments: 0..<9)
    func refusals(number: Int) throws {
        let stranger = try TestAccount(devices: 1)
        let other = try WireHandOver(
            stranger.devices[0].account, AccountSecrets(stranger.key), to: device.publicKey, wrappedBy: key)
        var message = try content(of: inviting.devices[0].account)
        switch number {
        case 0: message.certificate = Data()
        case 1: message.certificate = other.certificate
        case 2: message.authorityCertificate = other.authorityCertificate
        case 3: message.wrappedFirstKeys = Data(message.wrappedFirstKeys.dropLast())
        case 4: message.wrappedFirstKeys = Data(repeating: 0, count: 72)
        case 5: message.inviterName = ""
        case 6: message.inviterName = String(repeating: "x", count: 64)
        case 7: message.lists = Array(repeating: WireSignedList(), count: 17)
        case _: message.certificate += Data(repeating: 0, count: 1024)
        }
        #expect(throws: PairingError.malformed) {
            try message.read(for: device, name: "desktop", wrappedBy: key)
        }
    }

    @Test("Another pair's wrapping key opens nothing of it")
    func otherKey() throws {
        let message = try content(of: inviting.devices[0].account)
        #expect(throws: PairingError.malformed) {
            try message.read(
                for: device, name: "desktop", wrappedBy: SecretBytes.random(count: 32))
        }
    }
}
