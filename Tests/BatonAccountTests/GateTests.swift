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
    private let time: UInt64 = 1_760_000_000

    init() throws {
        account = try TestAccount()
        server = account.devices[0].id
        keys = account.devices[0].account.keys
    }

    private func gate() -> Gate {
        var gate = Gate(device: server, clockDelay: .zero)
        gate.beginPeriod(nonce: nonce, keys: keys[0], uptime: .seconds(100))
        return gate
    }

    private func verdict(
        _ gate: inout Gate, _ name: String?, uptime: Duration = .seconds(100), time: UInt64? = nil
    ) -> Result<UInt32, Gate.Refusal> {
        do throws(Gate.Refusal) {
            return .success(try gate.admit(name, uptime: uptime, unixTime: time ?? self.time))
        } catch {
            return .failure(error)
        }
    }

    @Test func aFreshTokenIsAdmittedOnce() {
        var gate = gate()
        for keys in keys {
            let name = GateToken.serverName(keys: keys, server: server, gateNonce: nonce)
            #expect(verdict(&gate, name) == .success(keys.generation))
            #expect(verdict(&gate, name) == .failure(.repeated))
            let timed = GateToken.serverName(keys: keys, server: server, unixTime: time)
            #expect(verdict(&gate, timed) == .success(keys.generation))
            #expect(verdict(&gate, timed) == .failure(.repeated))
            #expect(verdict(&gate, timed.uppercased().replacing("BATON.INVALID", with: "baton.invalid")) != .success(0))
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
        for name in bad { #expect(verdict(&gate, name) == .failure(.malformed), "\(name ?? "none")") }
        #expect(verdict(&gate, good) == .success(keys[0].generation))
    }

    @Test func aTokenForSomethingElseIsForged() throws {
        var gate = gate()
        let other = account.devices[1].id
        let strangers = try TestAccount()
        let forged = [
            GateToken.serverName(keys: keys[0], server: other, gateNonce: nonce),
            GateToken.serverName(keys: strangers.devices[0].account.keys[0], server: server, gateNonce: nonce),
            GateToken.serverName(keys: keys[0], server: server, gateNonce: [UInt8](repeating: 8, count: 16)),
            GateToken.serverName(keys: keys[0], server: server, unixTime: time + 2 * GateToken.stepSeconds),
            GateToken.serverName(keys: keys[0], server: server, unixTime: time - 2 * GateToken.stepSeconds),
            String(repeating: "a", count: 52) + GateToken.suffix,
        ]
        for name in forged { #expect(verdict(&gate, name) == .failure(.forged)) }
        // Every bit counts.
        let good = GateToken.serverName(keys: keys[0], server: server, gateNonce: nonce)
        let bytes = try #require(Base32.decode(String(good.prefix(52))))
        for bit in 0..<(bytes.count * 8) {
            var changed = bytes
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(verdict(&gate, Base32.encode(changed) + GateToken.suffix) == .failure(.forged))
        }
        #expect(verdict(&gate, good) == .success(keys[0].generation))
    }

    @Test func aStepMoreOrLessIsTolerated() {
        let step = GateToken.stepSeconds
        for skew in [-Int64(step), 0, Int64(step)] {
            var gate = gate()
            let theirs = UInt64(Int64(time) + skew)
            let name = GateToken.serverName(keys: keys[0], server: server, unixTime: theirs)
            #expect(verdict(&gate, name) == .success(keys[0].generation))
            // Used once, it stays used for as long as its step counts.
            #expect(verdict(&gate, name, time: theirs + step) == .failure(.repeated))
            #expect(verdict(&gate, name, time: theirs + 2 * step) == .failure(.forged))
        }
        var young = gate()
        let first = GateToken.serverName(keys: keys[0], server: server, unixTime: 0)
        #expect(verdict(&young, first, time: 0) == .success(keys[0].generation))
    }

    /// A server does not admit a token again after its restart, or after its clock went back.
    @Test func aTokenOfTheClockIsGoodOnceAlsoAfterARestart() {
        let step = Int64(GateToken.stepSeconds)
        for (age, skew) in [(0, 0), (0, step), (step, step), (2 * step, step), (3 * step - 1, step)] {
            // The token is used at the very end of a step, by a client whose clock is at most one step ahead.
            let used = GateToken.serverName(keys: keys[0], server: server, unixTime: UInt64(Int64(time) + skew))
            var before = gate()
            #expect(verdict(&before, used) == .success(keys[0].generation))
            var after = Gate(device: server)
            after.beginPeriod(nonce: nonce, keys: keys[0], uptime: .seconds(5))
            let verdict = verdict(&after, used, uptime: .seconds(5 + age), time: time + UInt64(age))
            #expect(verdict == .failure(.forgotten) || verdict == .failure(.forged), "\(age), \(skew)")
        }
        // A clock that runs behind since, which a token of before would fit.
        var slow = Gate(device: server)
        slow.beginPeriod(nonce: nonce, keys: keys[0], uptime: .zero)
        let fresh = GateToken.serverName(keys: keys[0], server: server, unixTime: time)
        #expect(verdict(&slow, fresh, uptime: Gate.clockDelay - .nanoseconds(1)) == .failure(.forgotten))
        // Those of an advertisement are good at once: its nonce is new.
        let known = GateToken.serverName(keys: keys[0], server: server, gateNonce: nonce)
        #expect(verdict(&slow, known, uptime: .seconds(1)) == .success(keys[0].generation))
        // Another period is no other gate.
        slow.beginPeriod(nonce: nonce.reversed(), keys: keys[0], uptime: .seconds(900))
        #expect(verdict(&slow, fresh, uptime: Gate.clockDelay) == .success(keys[0].generation))
    }

    @Test func aTokenOfTheClockIsGoodOnceAlsoWhenTheClockGoesBack() {
        var gate = gate()
        let used = GateToken.serverName(keys: keys[0], server: server, unixTime: time)
        #expect(verdict(&gate, used) == .success(keys[0].generation))
        // After a jump forward, used tokens are no longer remembered.
        #expect(verdict(&gate, used, time: time + 7200) == .failure(.forged))
        #expect(verdict(&gate, used) == .failure(.forgotten))
        let later = GateToken.serverName(keys: keys[0], server: server, unixTime: time + GateToken.stepSeconds)
        #expect(verdict(&gate, later) == .success(keys[0].generation))
        #expect(verdict(&gate, later) == .failure(.repeated))
    }

    @Test func aPeriodCountsForAWhileAfterItsEnd() {
        var gate = gate()
        let used = GateToken.serverName(keys: keys[0], server: server, gateNonce: nonce)
        #expect(verdict(&gate, used) == .success(keys[0].generation))
        let next = [UInt8](repeating: 9, count: GateToken.nonceCount)
        gate.beginPeriod(nonce: next, keys: keys[0], uptime: .seconds(200))
        let end = Duration.seconds(200) + Gate.periodGrace
        func name(_ nonce: [UInt8]) -> String { GateToken.serverName(keys: keys[0], server: server, gateNonce: nonce) }
        #expect(verdict(&gate, used, uptime: .seconds(201)) == .failure(.repeated))
        #expect(verdict(&gate, name(nonce), uptime: end - .nanoseconds(1)) == .success(keys[0].generation))
        #expect(verdict(&gate, name(nonce), uptime: end) == .failure(.forged))
        #expect(verdict(&gate, used, uptime: end) == .failure(.forged))
        #expect(verdict(&gate, name(next), uptime: end + .seconds(3600)) == .success(keys[0].generation))
    }

    @Test func periodsAreBounded() {
        var gate = Gate(device: server)
        let nonces = (0..<UInt8(Gate.periodBound + 1)).map { [UInt8](repeating: $0, count: GateToken.nonceCount) }
        for nonce in nonces { gate.beginPeriod(nonce: nonce, keys: keys[0], uptime: .zero) }
        for (index, nonce) in nonces.enumerated() {
            let name = GateToken.serverName(keys: keys[0], server: server, gateNonce: nonce)
            #expect(verdict(&gate, name, uptime: .zero) == (index == 0 ? .failure(.forged) : .success(0)))
        }
    }

    @Test func aFullPeriodAdmitsNobodyAndAsksForAnother() {
        var gate = gate()
        func name(_ nonce: [UInt8]) -> String { GateToken.serverName(keys: keys[0], server: server, gateNonce: nonce) }
        for _ in 0..<Gate.tokenBound {
            #expect(!gate.isCrowded)
            #expect(verdict(&gate, name(nonce)) == .success(0))
        }
        #expect(gate.isCrowded)
        #expect(verdict(&gate, name(nonce)) == .failure(.crowded))
        let next = [UInt8](repeating: 9, count: GateToken.nonceCount)
        gate.beginPeriod(nonce: next, keys: keys[0], uptime: .seconds(101))
        #expect(!gate.isCrowded)
        #expect(verdict(&gate, name(next)) == .success(0))
    }

    /// One device that dials again and again takes nothing from devices at other addresses.
    @Test func anAddressHasItsShareOfTheTokens() {
        for isTimed in [false, true] {
            var gate = gate()
            func admit(from origin: [UInt8]?) -> Result<UInt32, Gate.Refusal> {
                let name =
                    isTimed
                    ? GateToken.serverName(keys: keys[0], server: server, unixTime: time)
                    : GateToken.serverName(keys: keys[0], server: server, gateNonce: nonce)
                do throws(Gate.Refusal) {
                    return .success(try gate.admit(name, from: origin, uptime: .seconds(100), unixTime: time))
                } catch {
                    return .failure(error)
                }
            }
            for _ in 0..<Gate.tokenBoundPerOrigin { #expect(admit(from: [192, 0, 2, 1]) == .success(0)) }
            #expect(admit(from: [192, 0, 2, 1]) == .failure(.crowded))
            #expect(!gate.isCrowded)
            #expect(admit(from: [192, 0, 2, 2]) == .success(0) && admit(from: nil) == .success(0))
            let next = [UInt8](repeating: 9, count: GateToken.nonceCount)
            gate.beginPeriod(nonce: next, keys: keys[0], uptime: .seconds(101))
            let fresh = GateToken.serverName(keys: keys[0], server: server, gateNonce: next)
            let isGood = gate.wouldAdmit(fresh, from: [192, 0, 2, 1], uptime: .seconds(102), unixTime: time)
            #expect(isGood)
        }
    }

    /// Asking uses up no token, and is refused whenever admitting would be.
    @Test func askingUsesNothingUp() {
        var gate = gate()
        func isGood(_ name: String?) -> Bool { gate.wouldAdmit(name, uptime: .seconds(100), unixTime: time) }
        let name = GateToken.serverName(keys: keys[0], server: server, gateNonce: nonce)
        #expect(isGood(name) && isGood(name))
        #expect(verdict(&gate, name) == .success(keys[0].generation))
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
        #expect(verdict(&gate, name(old, nonce)) == .success(old.generation))
        #expect(verdict(&gate, name(old, next)) == .failure(.forged))
        #expect(verdict(&gate, name(new, nonce)) == .failure(.forged))
        #expect(verdict(&gate, name(new, next)) == .success(new.generation))
        #expect(verdict(&gate, name(old, nonce), uptime: end) == .failure(.forged))
        #expect(verdict(&gate, name(new, next), uptime: end) == .success(new.generation))
        let (oldTime, newTime) = (
            GateToken.serverName(keys: old, server: server, unixTime: time),
            GateToken.serverName(keys: new, server: server, unixTime: time)
        )
        #expect(verdict(&gate, oldTime) == .failure(.forged))
        #expect(verdict(&gate, newTime) == .success(new.generation))
    }
}
