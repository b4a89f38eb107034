// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Testing

@testable import BatonAccount

/// Both sides of one exchange, up to the digits.
struct PairingExchange {
    let joiner: PairingJoiner
    let inviter: PairingInviter
    let open: PairingMessage
    let joinerKeys: PairingKeys
    let inviterKeys: PairingKeys
    let deviceKey: [UInt8]

    init(
        deviceKey: [UInt8] = Array(repeating: 7, count: 32), joiner: PairingContribution = PairingContribution(),
        inviter: PairingContribution = PairingContribution()
    ) throws {
        self.joiner = PairingJoiner(deviceKey: deviceKey, joiner)
        self.inviter = try PairingInviter(commit: self.joiner.commit, inviter)
        (open, joinerKeys) = try self.joiner.receiveKey(self.inviter.key)
        (self.deviceKey, inviterKeys) = try self.inviter.receiveOpen(open)
    }
}

@Suite("The exchange of keys behind the six digits")
struct PairingExchangeTests {
    @Test("It computes the vectors")
    func vectors() throws {
        let vectors = try TestVectors.load()
        let expected = vectors.pairing
        let exchange = try PairingExchange(
            deviceKey: vectors.device.publicKey.bytes,
            joiner: PairingContribution(
                privateKey: expected.joinerPrivateKey.secret, nonce: expected.joinerNonce.bytes),
            inviter: PairingContribution(
                privateKey: expected.inviterPrivateKey.secret, nonce: expected.inviterNonce.bytes))
        #expect(exchange.joiner.commit.body == PairingMessage.version + expected.commitment.bytes)
        #expect(
            exchange.inviter.key
                == PairingMessage(.key, expected.inviterPublicKey.bytes + expected.inviterNonce.bytes))
        #expect(
            exchange.open
                == PairingMessage(
                    .open,
                    expected.joinerPublicKey.bytes + expected.joinerNonce.bytes + expected.sealedDeviceKey.bytes))
        #expect(
            PairingContribution.transcript(
                commitment: expected.commitment.bytes,
                inviter: (expected.inviterPublicKey.bytes, expected.inviterNonce.bytes),
                joiner: (expected.joinerPublicKey.bytes, expected.joinerNonce.bytes)) == expected.transcript.bytes)
        #expect(exchange.deviceKey == vectors.device.publicKey.bytes)
        for keys in [exchange.joinerKeys, exchange.inviterKeys] {
            #expect(keys.digits == expected.digits)
            #expect(keys.key(.open).revealed == expected.openKey.bytes)
            #expect(keys.wrapping.revealed == expected.wrapKey.bytes)
        }
    }

    @Test("What one side seals the other opens, for the same use alone")
    func sealing() throws {
        let exchange = try PairingExchange()
        let sealed = try exchange.inviterKeys.seal([1, 2, 3], .welcome)
        #expect(exchange.joinerKeys.open(sealed, .welcome) == [1, 2, 3])
        #expect(exchange.joinerKeys.open(sealed, .done) == nil)
        #expect(try PairingExchange().joinerKeys.open(sealed, .welcome) == nil)
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 1
            #expect(exchange.joinerKeys.open(changed, .welcome) == nil)
        }
        #expect(exchange.joinerKeys.open([], .welcome) == nil)
    }

    @Test("An opening of another commitment is refused, whichever byte differs")
    func otherOpening() throws {
        let exchange = try PairingExchange()
        let bytes = exchange.open.encoded
        for index in 3..<bytes.count {
            var changed = bytes
            changed[index] ^= 1
            let message = try #require(try Self.read(changed, as: .open))
            #expect(throws: PairingError.malformed) { try exchange.inviter.receiveOpen(message) }
        }
    }

    @Test("A middle that changes the inviter's key or nonce gets other digits, or none")
    func otherKey() throws {
        let exchange = try PairingExchange()
        for index in 3..<exchange.inviter.key.encoded.count {
            var changed = exchange.inviter.key.encoded
            changed[index] ^= 1
            let (open, keys) = try exchange.joiner.receiveKey(try #require(try Self.read(changed, as: .key)))
            #expect(throws: PairingError.malformed) { try exchange.inviter.receiveOpen(open) }
            #expect(keys.key(.open) != exchange.inviterKeys.key(.open))
        }
    }

    @Test(
        "A key of low order is refused by both sides",
        arguments: [
            [UInt8](repeating: 0, count: 32), [1] + [UInt8](repeating: 0, count: 31),
            // The points of order 8 (RFC 7748, section 7; cr.yp.to/ecdh.html), and p, which is 0.
            bytes("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
            bytes("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
            bytes("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
        ])
    func lowOrder(publicKey: [UInt8]) throws {
        let nonce = [UInt8](repeating: 1, count: 32)
        let joiner = PairingJoiner(deviceKey: nonce)
        #expect(throws: PairingError.malformed) { try joiner.receiveKey(PairingMessage(.key, publicKey + nonce)) }
        let commitment = PairingContribution.commitment(publicKey: publicKey, nonce: nonce)
        let inviter = try PairingInviter(commit: PairingMessage(.commit, PairingMessage.version + commitment))
        #expect(throws: PairingError.malformed) {
            try inviter.receiveOpen(
                PairingMessage(.open, publicKey + nonce + [UInt8](repeating: 0, count: 48)))
        }
    }

    @Test("The digits of random transcripts are uniform")
    func uniformDigits() {
        var counts = [[Int]](repeating: [Int](repeating: 0, count: 10), count: 6)
        let transcripts = 20_000
        let secret = SecretBytes.random(count: 32)
        for number in 0..<transcripts {
            let digits = PairingKeys(secret: secret, transcript: Array("\(number)".utf8)).digits
            #expect(Invitation.digits(in: digits) == digits)
            for (place, digit) in digits.utf8.enumerated() { counts[place][Int(digit) - 0x30] += 1 }
        }
        // Nine degrees of freedom: a fair digit exceeds 40 less than once in 100,000 runs.
        let expected = Double(transcripts) / 10
        for place in counts {
            let deviation = place.reduce(0) { $0 + (Double($1) - expected) * (Double($1) - expected) / expected }
            #expect(deviation < 40)
        }
    }

    static func read(_ bytes: [UInt8], as kind: PairingMessage.Kind) throws -> PairingMessage? {
        var reader = PairingReader(expecting: [kind])
        var message: PairingMessage?
        var rest = bytes[...]
        while !rest.isEmpty, message == nil {
            let part = rest.prefix(reader.missing)
            message = try part.withUnsafeBytes { try reader.receive($0) }
            rest = rest.dropFirst(part.count)
        }
        return message
    }

    private static func bytes(_ text: String) -> [UInt8] {
        stride(from: 0, to: text.utf8.count, by: 2).map { start in
            UInt8(text.dropFirst(start).prefix(2), radix: 16) ?? 0
        }
    }
}
