// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonAccount

@Suite("The gate, the server's side") struct GateTests {
    private let account: TestAccount
    private let server: DeviceID
    private let keys: [GenerationKeys]
    private let nonce = [UInt8](repeating: 7, count: GateToken.nonceCount)

    init() throws {
        account = try TestAccount()
        server = account.devices[0].id
        keys = account.devices[0].account.keys
    }

    private func gate() -> Gate {
        var gate = Gate(device: server)
        gate.beginPeriod(nonce: nonce, keys: keys[0], uptime: .seconds(100))
        return gate
    }

    private func admit(_ gate: inout Gate, _ name: String?, uptime: Duration = .seconds(100)) -> UInt32? {
        gate.admit(name, uptime: uptime)
    }

    @Test func aFreshTokenIsAdmittedOnce() {
        var gate = gate()
        for keys in keys {
            let name = GateToken.serverName(keys: keys, server: server, gateNonce: nonce)
            #expect(admit(&gate, name) == keys.generation)
            #expect(admit(&gate, name) == nil)
            #expect(admit(&gate, name.uppercased().replacing("BATON.INVALID", with: "baton.invalid")) == nil)
        }
    }

    @Test func whatHasNotTheFormIsMalformed() {
        var gate = gate()
        let good = GateToken.serverName(keys: keys[0], server: server, gateNonce: nonce)
        let bad: [String?] = [
            nil, "", "example.org", String(good.dropFirst()), good + ".", "a" + good, String(good.dropLast()),
            String(repeating: "1", count: 52) + ".baton.invalid", String(repeating: "a", count: 66),
            "é" + good.dropFirst(2), String(repeating: "é", count: 26) + ".baton.invalid",
        ]
        for name in bad { #expect(admit(&gate, name) == nil, "\(name ?? "none")") }
        #expect(admit(&gate, good) == keys[0].generation)
    }

    @Test func aTokenForSomethingElseIsForged() throws {
        var gate = gate()
        let other = account.devices[1].id
        let strangers = try TestAccount()
        let forged = [
            GateToken.serverName(keys: keys[0], server: other, gateNonce: nonce),
            GateToken.serverName(keys: strangers.devices[0].account.keys[0], server: server, gateNonce: nonce),
            GateToken.serverName(keys: keys[0], server: server, gateNonce: [UInt8](repeating: 8, count: 16)),
            String(repeating: "a", count: 52) + GateToken.suffix,
        ]
        for name in forged { #expect(admit(&gate, name) == nil) }
        // Every bit counts.
        let good = GateToken.serverName(keys: keys[0], server: server, gateNonce: nonce)
        let bytes = try #require(Base32.decode(String(good.prefix(52))))
        for bit in 0..<(bytes.count * 8) {
            var changed = bytes
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(admit(&gate, Base32.encode(changed) + GateToken.suffix) == nil)
        }
        #expect(admit(&gate, good) == keys[0].generation)
    }

    @Test func aPeriodCountsForAWhileAfterItsEnd() {
        var gate = gate()
        let used = GateToken.serverName(keys: keys[0], server: server, gateNonce: nonce)
        #expect(admit(&gate, used) == keys[0].generation)
        let next = [UInt8](repeating: 9, count: GateToken.nonceCount)
        gate.beginPeriod(nonce: next, keys: keys[0], uptime: .seconds(200))
        let end = Duration.seconds(200) + Gate.periodGrace
        func name(_ nonce: [UInt8]) -> String { GateToken.serverName(keys: keys[0], server: server, gateNonce: nonce) }
        #expect(admit(&gate, used, uptime: .seconds(201)) == nil)
        #expect(admit(&gate, name(nonce), uptime: end - .nanoseconds(1)) == keys[0].generation)
        #expect(admit(&gate, name(nonce), uptime: end) == nil)
        #expect(admit(&gate, used, uptime: end) == nil)
        #expect(admit(&gate, name(next), uptime: end + .seconds(3600)) == keys[0].generation)
    }

    @Test func periodsAreBounded() {
        var gate = Gate(device: server)
        let nonces = (0..<UInt8(Gate.periodBound + 1)).map { [UInt8](repeating: $0, count: GateToken.nonceCount) }
        for nonce in nonces { gate.beginPeriod(nonce: nonce, keys: keys[0], uptime: .zero) }
        for (index, nonce) in nonces.enumerated() {
            let name = GateToken.serverName(keys: keys[0], server: server, gateNonce: nonce)
            #expect(admit(&gate, name, uptime: .zero) == (index == 0 ? nil : 0))
        }
    }

    @Test func aFullPeriodAdmitsNobodyAndAsksForAnother() {
        var gate = gate()
        func name(_ nonce: [UInt8]) -> String { GateToken.serverName(keys: keys[0], server: server, gateNonce: nonce) }
        for _ in 0..<Gate.tokenBound {
            #expect(!gate.isCrowded)
            #expect(admit(&gate, name(nonce)) == 0)
        }
        #expect(gate.isCrowded)
        #expect(admit(&gate, name(nonce)) == nil)
        let next = [UInt8](repeating: 9, count: GateToken.nonceCount)
        gate.beginPeriod(nonce: next, keys: keys[0], uptime: .seconds(101))
        #expect(!gate.isCrowded)
        #expect(admit(&gate, name(next)) == 0)
    }

    /// One device that dials again and again takes nothing from devices at other addresses.
    @Test func anAddressHasItsShareOfTheTokens() {
        var gate = gate()
        func admit(from origin: [UInt8]?) -> UInt32? {
            let name = GateToken.serverName(keys: keys[0], server: server, gateNonce: nonce)
            return gate.admit(name, from: origin, uptime: .seconds(100))
        }
        for _ in 0..<Gate.tokenBoundPerOrigin { #expect(admit(from: [192, 0, 2, 1]) == 0) }
        #expect(admit(from: [192, 0, 2, 1]) == nil)
        #expect(!gate.isCrowded)
        #expect(admit(from: [192, 0, 2, 2]) == 0 && admit(from: nil) == 0)
        let next = [UInt8](repeating: 9, count: GateToken.nonceCount)
        gate.beginPeriod(nonce: next, keys: keys[0], uptime: .seconds(101))
        let fresh = GateToken.serverName(keys: keys[0], server: server, gateNonce: next)
        let isGood = gate.wouldAdmit(fresh, from: [192, 0, 2, 1], uptime: .seconds(102))
        #expect(isGood)
    }

    /// Asking uses up no token, and is refused whenever admitting would be.
    @Test func askingUsesNothingUp() {
        var gate = gate()
        func isGood(_ name: String?) -> Bool { gate.wouldAdmit(name, uptime: .seconds(100)) }
        let name = GateToken.serverName(keys: keys[0], server: server, gateNonce: nonce)
        #expect(isGood(name) && isGood(name))
        #expect(admit(&gate, name) == keys[0].generation)
        #expect(!isGood(name) && !isGood(nil) && !isGood("example.org"))
        #expect(!isGood(String(repeating: "a", count: 52) + GateToken.suffix))
    }

    /// A revocation begins another generation: the keys of the last one are good for its own periods alone.
    @Test func otherKeysEndWhatWas() throws {
        var revoking = account.devices[0].account
        let old = revoking.currentKeys
        _ = try revoking.revoke([account.devices[1].id], with: AccountSecrets(account.key))
        let new = revoking.currentKeys
        #expect(new.id != old.id)
        var gate = gate()
        let next = [UInt8](repeating: 9, count: GateToken.nonceCount)
        gate.beginPeriod(nonce: next, keys: new, uptime: .seconds(101))
        let end = Duration.seconds(101) + Gate.periodGrace
        func name(_ keys: GenerationKeys, _ nonce: [UInt8]) -> String {
            GateToken.serverName(keys: keys, server: server, gateNonce: nonce)
        }
        #expect(admit(&gate, name(old, nonce)) == old.generation)
        #expect(admit(&gate, name(old, next)) == nil)
        #expect(admit(&gate, name(new, nonce)) == nil)
        #expect(admit(&gate, name(new, next)) == new.generation)
        #expect(admit(&gate, name(old, nonce), uptime: end) == nil)
        #expect(admit(&gate, name(new, next), uptime: end) == new.generation)
    }
}
