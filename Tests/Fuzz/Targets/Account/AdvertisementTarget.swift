// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

@testable import BatonAccount

/// An advertisement from the TXT record to the replay guard.
///
/// The first byte of an input chooses the meaning of the rest. It is a raw record from a stranger, the plain text
/// behind the seal, or such a plain text that a malicious device of the account has sealed and signed.
enum AdvertisementTarget: FuzzTarget {
    static let name = "advertisement"
    static let maximumLength = 1300

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        var input = Input(bytes)
        let kind = input.byte()
        let content = input.remainder()
        switch kind % 3 {
        case 0: openAsStranger(content)
        case 1: if let advertisement = try? AdvertisementCodec.decode(content) { try check(advertisement) }
        case _: try openAsMember(content)
        }
    }

    private static func openAsStranger(_ record: [UInt8]) {
        do throws(AdvertisementError) {
            _ = try Fixture.shared.opener.open(record)
            fatalError("a record that nobody sealed was opened")
        } catch {
            expect(!error.isByMember, "\(error)")
        }
    }

    private static func openAsMember(_ content: [UInt8]) throws {
        let fixture = Fixture.shared
        let padded = content + [UInt8](repeating: 0, count: AdvertisementCodec.size)
        var plain = Array(padded.prefix(AdvertisementCodec.size))
        plain.replaceSubrange(1..<33, with: fixture.identity.publicKey)
        let salt = [UInt8](repeating: 5, count: AdvertisementSeal.saltCount)
        let blob = try AdvertisementSeal.seal(
            plain: plain, signature: fixture.identity.sign(AdvertisementSeal.signedMessage(salt: salt, plain: plain)),
            salt: salt, key: fixture.keys.advertisement)
        do throws(AdvertisementError) {
            let opened = try fixture.opener.open(record(AdvertisementTXT.strings(of: blob))).advertisement
            expect(opened.device == fixture.identity.id, "the advertisement is taken for another device's")
            try? check(opened)
            var replays = ReplayGuard()
            let verdicts = (0..<2).map { _ in replays.judge(opened, unixTime: 1000) }
            expect(verdicts == [.accepted, .duplicate], "judged wrongly")
        } catch {
            expect(error.isByMember, "what a member sealed was taken for a stranger's: \(error)")
        }
    }

    /// What is shown, dialled and kept lies within the bounds, and is what a sender may write.
    private static func check(_ advertisement: Advertisement) throws {
        let content = advertisement.content
        let lives = 1...content.maximumTimeToLive
        expect(lives.contains(content.timeToLive) && content.port >= 1024, "a number is out of bounds")
        expect(content.addresses.count <= AdvertisementContent.maximumAddressCount, "too many addresses")
        expect(content.addresses.allSatisfy { $0.scope != .invalid }, "an address that names no host")
        let texts = [content.deviceName, content.current?.type ?? "t", content.current?.title ?? ""]
        expect(!texts.joined().unicodeScalars.contains(where: DeviceName.isControl), "a control character")
        let again = try AdvertisementCodec.decode(AdvertisementCodec.encode(advertisement))
        var (left, right) = (again.content, content)
        // A sender sets this flag by itself.
        left.current?.flags.remove(.titleCut)
        right.current?.flags.remove(.titleCut)
        expect(left == right && again.epoch == advertisement.epoch, "the advertisement changed on its way")
    }

    static func record(_ strings: [[UInt8]]) -> [UInt8] { strings.flatMap { [UInt8($0.count)] + $0 } }

    static func seeds() throws -> [[UInt8]] {
        // Not the fixture's sealer: keys and salts differ from run to run, and seeds must not.
        var plains: [[UInt8]] = []
        for content in Fixture.contents {
            plains.append(
                try AdvertisementCodec.encode(
                    Advertisement(
                        device: DeviceID(ed25519PublicKey: [UInt8](repeating: 3, count: 32)),
                        publicKey: [UInt8](repeating: 3, count: 32), epoch: 1_760_000_000, sequence: 7,
                        gateNonce: [UInt8](repeating: 4, count: 16), content: content)))
        }
        let blob = [UInt8](repeating: 9, count: AdvertisementSeal.size)
        let strings = AdvertisementTXT.strings(of: blob)
        let records = [
            record(strings), record(strings.reversed()), record(strings + [Array("x=1".utf8)]),
            record([Array("v=2".utf8)] + strings.dropFirst()), record(strings.dropLast()), [255, 1], [0],
        ]
        return records.map { [0] + $0 } + plains.map { [1] + $0 } + plains.map { [2] + $0 }
    }
}

extension AdvertisementTarget {
    /// A device of an account, and one that listens.
    struct Fixture: Sendable {
        static let shared = {
            do { return try Fixture() } catch { fatalError("\(error)") }
        }()

        let secrets: AccountSecrets
        let identity: DeviceIdentity
        let other: DeviceIdentity
        let keys: GenerationKeys
        let opener: AdvertisementOpener

        private init() throws {
            // Always the same account: what was found of tokens and seals counts in the next run too.
            let secret = [UInt8](repeating: 11, count: AccountKey.secretCount).withUnsafeBytes {
                SecretBytes(copying: $0)
            }
            guard let key = AccountKey(secret: secret) else { throw FuzzError("a key without secret") }
            let secrets = AccountSecrets(key)
            self.secrets = secrets
            identity = try DeviceIdentity(issuedBy: secrets)
            other = try DeviceIdentity(issuedBy: secrets)
            keys = secrets.keys(generation: 0)
            opener = AdvertisementOpener(
                keys: [keys, secrets.keys(generation: 1)],
                ownDevice: DeviceID(ed25519PublicKey: [UInt8](repeating: 1, count: 32)))
        }

        /// Idle, usual, and with every field at its limit.
        static let contents: [AdvertisementContent] = {
            let note = AdvertisedActivity(
                id: [UInt8](repeating: 1, count: 16), type: "org.example.note",
                teamTag: [UInt8](repeating: 2, count: 8), version: 3, flags: [.webPage, .streams], age: 60,
                title: "Märchen 👩‍👩‍👧‍👦")
            var full = note
            full.type = String(repeating: "t", count: 96)
            full.title = String(repeating: "ü", count: 300)
            full.flags = [.document, .exclusive]
            full.documentSize = .max
            return [
                AdvertisementContent(port: 40_000, addresses: [], deviceName: "d"),
                AdvertisementContent(
                    port: 40_000,
                    addresses: [[192, 168, 1, 7], [UInt8](repeating: 0xFD, count: 16)].compactMap {
                        NetworkAddress(bytes: $0)
                    },
                    deviceName: "laptop", current: note, otherActivities: 1),
                AdvertisementContent(
                    timeToLive: 1, port: 1024,
                    addresses: (1...4).compactMap {
                        NetworkAddress(bytes: [0xFE, 0x80] + [UInt8](repeating: $0, count: 14))
                    },
                    deviceName: String(repeating: "n", count: 63), current: full, otherActivities: 255),
            ]
        }()
    }
}
