// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonAccount

/// The raw TXT record of some strings.
func record(_ strings: [[UInt8]]) -> [UInt8] {
    strings.flatMap { [UInt8($0.count)] + $0 }
}

@Suite struct AdvertisementTests {
    private let account: TestAccount

    init() throws {
        self.account = try TestAccount(devices: 2)
    }

    private func content(
        name: String = "laptop", type: String = "com.example.note", title: String = "A note",
        addresses: [String] = ["192.168.1.7", "fd00::7"], flags: AdvertisedActivity.Flags = []
    ) -> AdvertisementContent {
        AdvertisementContent(
            port: 40000, addresses: addresses.compactMap { NetworkAddress($0) }, deviceName: name,
            current: AdvertisedActivity(
                id: [UInt8](repeating: 1, count: 16), type: type, teamTag: [UInt8](repeating: 2, count: 8), version: 3,
                flags: flags, title: title),
            otherActivities: 1)
    }

    private func passed(_ content: AdvertisementContent) throws -> Advertisement {
        var sealer = try account.devices[0].makeSealer()
        return try account.devices[1].makeOpener().open(record(try sealer.seal(content))).advertisement
    }

    @Test func everyFieldArrives() throws {
        var content = content(flags: [.document, .exclusive, .streams, .webPage])
        content.current?.documentSize = .max
        content.current?.age = .max
        content.current?.version = .max
        content.otherActivities = .max
        content.timeToLive = 1
        content.port = 1024
        var sealer = try account.devices[0].makeSealer(unixTime: 2_000_000_000)
        let nonce = sealer.gateNonce
        for sequence in 1...3 as ClosedRange<UInt64> {
            let (opened, keys) = try account.devices[1].makeOpener().open(record(try sealer.seal(content)))
            #expect(keys.generation == 0)
            #expect(opened.device == account.devices[0].id && opened.epoch == 2_000_000_000)
            #expect(opened.sequence == sequence && opened.gateNonce == nonce)
            #expect(opened.content == content)
        }
    }

    @Test func idleLooksTheSame() throws {
        let idle = AdvertisementContent(port: 65535, addresses: [], deviceName: "x")
        #expect(try passed(idle).content == idle)
        var sealer = try account.devices[0].makeSealer()
        let full = content(
            name: String(repeating: "n", count: 63), type: String(repeating: "t", count: 96),
            title: String(repeating: "ü", count: 4000), addresses: (1...9).map { "fd00::\($0)" })
        for each in [idle, content(), full, content(title: "")] {
            let strings = try sealer.seal(each)
            #expect(strings.map(\.count) == [3, 250, 250])
            #expect(record(strings).count == AdvertisementTXT.size && AdvertisementTXT.size == 506)
        }
    }

    @Test func titlesAreCutBetweenCharacters() throws {
        let narrow = content(
            name: String(repeating: "n", count: 63), type: String(repeating: "t", count: 96),
            title: String(repeating: "👩‍👩‍👧‍👦", count: 10),
            addresses: (1...4).map { "fd00::\($0)" })
        let cut = try #require(try passed(narrow).content.current)
        // 388 - 71 - 64 - 1 - 68 - 43 - 96 = 45 bytes are left; a family has 25.
        #expect(cut.title == "👩‍👩‍👧‍👦" && cut.flags == .titleCut)
        let exact = try #require(try passed(content(title: String(repeating: "x", count: 200))).content.current)
        #expect(exact.title.utf8.count == 200 && exact.flags == [])
        let long = try #require(
            try passed(content(name: "n", type: "t", title: String(repeating: "x", count: 300), addresses: []))
                .content.current)
        #expect(long.title.utf8.count == AdvertisedActivity.maximumTitleCount)
        #expect(long.flags == .titleCut)
        let control = try #require(try passed(content(title: "a\nb\u{1b}[2J", flags: .titleCut)).content.current)
        #expect(control.title == "a b [2J" && control.flags == [])
    }

    @Test func aTitleAlwaysHasRoom() throws {
        // The most that addresses can cost is 4 * 5 + 3 * 17 = 71 bytes.
        let worst = content(
            name: String(repeating: "n", count: 63), type: String(repeating: "t", count: 96),
            title: String(repeating: "x", count: 300),
            addresses: ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "fd00::1", "fd00::2", "fd00::3"])
        let opened = try passed(worst).content
        #expect(opened.addresses.count == 7)
        #expect(opened.current?.title.utf8.count == 42)
    }

    @Test func boundsAreKeptWhenSealing() throws {
        var sealer = try account.devices[0].makeSealer()
        func expectRefusal(_ change: (inout AdvertisementContent) -> Void) {
            var content = content()
            change(&content)
            #expect(throws: AdvertisementError.malformed) { try sealer.seal(content) }
        }
        expectRefusal { $0.timeToLive = 0 }
        expectRefusal { $0.timeToLive = 121 }
        expectRefusal { ($0.timeToLive, $0.current) = (601, nil) }
        expectRefusal { $0.port = 1023 }
        expectRefusal { $0.deviceName = "" }
        expectRefusal { $0.deviceName = String(repeating: "x", count: 64) }
        expectRefusal { $0.deviceName = "a\tb" }
        expectRefusal { $0.deviceName = " a" }
        expectRefusal { $0.current?.id = [1] }
        expectRefusal { $0.current?.teamTag = [UInt8](repeating: 0, count: 9) }
        expectRefusal { $0.current?.type = "" }
        expectRefusal { $0.current?.type = String(repeating: "x", count: 97) }
        expectRefusal { $0.current?.type = "a\nb" }
        expectRefusal { $0.current?.documentSize = 1 }
        // A refused one takes no number.
        let opened = try account.devices[1].makeOpener().open(record(try sealer.seal(content()))).advertisement
        #expect(opened.sequence == 1)
    }

    /// A member of the account can seal anything, so the receiver checks the bounds as well.
    @Test func boundsAreKeptWhenOpening() throws {
        let identity = account.devices[0].account.identity
        let key = account.devices[0].account.currentKeys.advertisement
        let good = try AdvertisementCodec.encode(
            Advertisement(
                device: identity.id, publicKey: identity.publicKey, epoch: 9, sequence: 9,
                gateNonce: [UInt8](repeating: 0, count: 16), content: content()))
        let opener = account.devices[1].makeOpener()
        func open(_ plain: [UInt8], signature: [UInt8]? = nil) throws -> Advertisement {
            let salt = [UInt8](repeating: 7, count: 16)
            let signature = try signature ?? identity.sign(AdvertisementSeal.signedMessage(salt: salt, plain: plain))
            let blob = try AdvertisementSeal.seal(plain: plain, signature: signature, salt: salt, key: key)
            return try opener.open(record(AdvertisementTXT.strings(of: blob))).advertisement
        }
        func changed(_ edits: [Int: UInt8]) -> [UInt8] {
            var plain = good
            for (index, value) in edits { plain[index] = value }
            return plain
        }
        #expect(try open(good).content == content())
        #expect(try open(changed([387: 1])).content == content(), "what follows the fields is ignored")
        let nameEnd = 71 + 1 + 6
        let activity = nameEnd + 1 + 5 + 17
        let cases: [([Int: UInt8], AdvertisementError)] = [
            ([0: 2], .unknownFormat(2)), ([33: 0x80], .malformed), ([50: 0], .malformed),
            ([50: 121], .malformed), ([49: 1], .malformed),
            ([51: 3, 52: 255], .malformed), ([70: 2], .malformed), ([71: 0], .malformed),
            ([71: 64], .malformed), ([72: 0xff], .malformed),
            ([72: 10], .malformed), ([72: 0x20], .malformed),
            ([nameEnd - 1: 0x20], .malformed), ([nameEnd: 9], .malformed),
            ([nameEnd + 1: 5], .malformed), ([nameEnd + 2: 0], .malformed),
            ([nameEnd + 2: 255], .malformed), ([activity + 28: 1], .malformed),
            ([activity + 41: 0], .malformed), ([activity + 41: 97], .malformed),
            ([activity + 42: 0], .malformed), ([activity + 43 + 16: 0x80], .malformed),
        ]
        for (edits, rejection) in cases {
            #expect(throws: rejection, "\(edits)") {
                if edits.keys.contains(activity + 43 + 16) {
                    _ = try open(changed([activity + 42 + 16: 1, activity + 43 + 16: 0x80]))
                } else {
                    _ = try open(changed(edits))
                }
            }
        }
        #expect(throws: AdvertisementError.badSignature) {
            try open(good, signature: [UInt8](repeating: 0, count: 64))
        }
        // Another device's key in it: the signature is not that device's.
        let other = account.devices[1].account.identity.publicKey
        #expect(throws: AdvertisementError.badSignature) { try open([1] + other + good[33...]) }
        // Signed for another period.
        #expect(throws: AdvertisementError.badSignature) {
            let salt = [UInt8](repeating: 8, count: 16)
            return try open(good, signature: identity.sign(AdvertisementSeal.signedMessage(salt: salt, plain: good)))
        }
    }

    @Test func aRepeatedAddressIsRefused() throws {
        let identity = account.devices[0].account.identity
        var plain = try AdvertisementCodec.encode(
            Advertisement(
                device: identity.id, publicKey: identity.publicKey, epoch: 9, sequence: 9,
                gateNonce: [UInt8](repeating: 0, count: 16),
                content: content(addresses: ["10.0.0.1", "10.0.0.2"])))
        plain[71 + 7 + 1 + 5 + 4] = 1
        #expect(throws: AdvertisementError.malformed) { try AdvertisementCodec.decode(plain) }
    }

    @Test(arguments: [
        // The most addresses, and the most bytes: 71, since one more address costs 5.
        (1...8).map { "10.0.0.\($0)" }, (1...3).map { "fd00::\($0)" } + (1...4).map { "10.0.0.\($0)" },
    ])
    func oneAddressMoreIsRefused(_ addresses: [String]) throws {
        let identity = account.devices[0].account.identity
        let most = try AdvertisementCodec.encode(
            Advertisement(
                device: identity.id, publicKey: identity.publicKey, epoch: 9, sequence: 9,
                gateNonce: [UInt8](repeating: 0, count: 16), content: content(addresses: addresses)))
        #expect(
            try AdvertisementCodec.decode(most).content.addresses == addresses.map { try #require(NetworkAddress($0)) })
        let count = 71 + 7
        var more = most
        more[count] += 1
        more.insert(contentsOf: [4, 10, 0, 0, 99], at: count + 1)
        #expect(throws: AdvertisementError.malformed) {
            try AdvertisementCodec.decode(Array(more.dropLast(5)))
        }
        let all = try (addresses + ["10.0.0.99"]).map { try #require(NetworkAddress($0)) }
        #expect(AdvertisementContent.fitting(all) == all.dropLast())
    }

    @Test func strangersAndOneselfAreRejected() throws {
        var sealer = try account.devices[0].makeSealer(unixTime: 1_760_000_123)
        let raw = record(try sealer.seal(content()))
        #expect(throws: AdvertisementError.own(epoch: 1_760_000_123)) {
            try account.devices[0].makeOpener().open(raw)
        }
        let stranger = try TestAccount(devices: 1)
        #expect(throws: AdvertisementError.unopenable) { try stranger.devices[0].makeOpener().open(raw) }
        let nobody = AdvertisementOpener(keys: [], ownDevice: account.devices[1].id)
        #expect(throws: AdvertisementError.unopenable) { try nobody.open(raw) }
    }

    @Test func theGenerationsAreTried() throws {
        let secrets = AccountSecrets(account.key)
        let keys = (0...3).map { secrets.keys(generation: $0) }
        let identity = account.devices[0].account.identity
        let opener = AdvertisementOpener(keys: Array(keys[...2].reversed()), ownDevice: account.devices[1].id)
        for generation in 0...3 {
            var sealer = AdvertisementSealer(identity: identity, keys: keys[generation], epoch: 1)
            let raw = record(try sealer.seal(content()))
            if generation < 3 {
                #expect(try opener.open(raw).keys.generation == UInt32(generation))
            } else {
                #expect(throws: AdvertisementError.unopenable) { try opener.open(raw) }
            }
        }
    }

    @Test func aPeriodCannotBeLinkedToTheNext() throws {
        var sealer = try account.devices[0].makeSealer()
        let first = try sealer.seal(content())[1]
        let second = try sealer.seal(content())[1]
        let nonce = sealer.gateNonce
        sealer.beginPeriod()
        #expect(sealer.gateNonce != nonce)
        let third = try sealer.seal(content())[1]
        #expect(first[2..<18] == second[2..<18] && first[18..<30] != second[18..<30])
        #expect(third[2..<18] != first[2..<18])
        #expect(try account.devices[1].makeOpener().open(record(sealer.seal(content()))).advertisement.sequence == 4)
    }
}
