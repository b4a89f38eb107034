// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonAccount

@Suite struct AdvertisementMutationTests {
    private let account: TestAccount
    private let strings: [[UInt8]]
    private let opener: AdvertisementOpener

    init() throws {
        self.account = try TestAccount(devices: 2)
        var sealer = try account.devices[0].makeSealer()
        self.strings = try sealer.seal(
            AdvertisementContent(
                port: 40000, addresses: [], deviceName: "laptop",
                current: AdvertisedActivity(
                    id: [UInt8](repeating: 1, count: 16), type: "com.example.note",
                    teamTag: [UInt8](repeating: 2, count: 8), version: 1, title: "A note")))
        self.opener = account.devices[1].makeOpener()
    }

    private var raw: [UInt8] { record(strings) }

    @Test func noMutationIsAccepted() throws {
        var random = SeededGenerator()
        let seed = random.description
        let good = try opener.open(raw).advertisement
        var replays = ReplayGuard()
        _ = replays.judge(good, unixTime: 1000)
        let before = replays
        for round in 0..<20_000 {
            var bytes = raw
            switch round % 5 {
            case 0:
                bytes[Int.random(in: bytes.indices, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 1:
                for _ in 0..<Int.random(in: 1...20, using: &random) {
                    bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
            case 2:
                bytes.removeSubrange(Int.random(in: bytes.indices, using: &random)...)
            case 3:
                let at = Int.random(in: bytes.indices, using: &random)
                bytes.insert(UInt8.random(in: 0...255, using: &random), at: at)
            case _:
                bytes.swapAt(
                    Int.random(in: bytes.indices, using: &random), Int.random(in: bytes.indices, using: &random))
            }
            // Nothing was changed after all, or only the case of a key, which RFC 6763 says does not matter.
            do {
                let opened = try opener.open(bytes)
                #expect(opened.advertisement == good, "\(seed), round \(round)")
                #expect(replays.judge(opened.advertisement, unixTime: 1000) == .duplicate)
                #expect(differsOnlyOutsideTheSeal(bytes), "\(seed), round \(round)")
            } catch {
                #expect(!error.isByMember, "\(seed), round \(round): \(error)")
            }
        }
        #expect(replays == before, "\(seed)")
    }

    /// Whether the sealed bytes are the very same.
    private func differsOnlyOutsideTheSeal(_ bytes: [UInt8]) -> Bool {
        guard let blob = try? AdvertisementTXT.blob(in: bytes) else { return false }
        return blob == Array(strings[1].dropFirst(2) + strings[2].dropFirst(2))
    }

    @Test func everyBitOfTheSealCounts() {
        for position in 0..<AdvertisementSeal.size {
            var changed = strings
            changed[1 + position / 248][2 + position % 248] ^= 1 << UInt8(position % 8)
            #expect(throws: AdvertisementError.unopenable) { try opener.open(record(changed)) }
        }
    }

    @Test func recordsAreReadAsTheRFCAsks() throws {
        let good = try opener.open(raw).advertisement
        func opens(_ strings: [[UInt8]]) -> Bool { (try? opener.open(record(strings)).advertisement) == good }
        #expect(opens(strings.reversed()))
        #expect(opens([[], Array("x".utf8), Array("note=1".utf8), Array("=".utf8)] + strings))
        #expect(opens(strings + [Array("a=other".utf8), Array("v=2".utf8)]), "the first of equal keys counts")
        #expect(opens([strings[0], [UInt8(ascii: "A")] + strings[1].dropFirst(), strings[2]]))
    }

    @Test func recordsThatAreNone() {
        func expect(_ rejection: AdvertisementError, _ raw: [UInt8]) {
            #expect(throws: rejection) { try opener.open(raw) }
        }
        expect(.malformedRecord, [])
        expect(.malformedRecord, [0])
        expect(.malformedRecord, [5, 1])
        expect(.malformedRecord, record([strings[1], strings[2]]))
        expect(.malformedRecord, record([strings[0], strings[1]]))
        expect(.unsupportedVersion, record([Array("v=2".utf8), strings[1], strings[2]]))
        expect(.unsupportedVersion, record([Array("v=".utf8), strings[1], strings[2]]))
        expect(.malformedRecord, record([strings[0], strings[1], Array(strings[2].dropLast())]))
        expect(.malformedRecord, record([strings[0], strings[1], strings[2] + [0]]))
        expect(.malformedRecord, record([strings[0], Array("a=".utf8), Array("b=".utf8)]))
        // The hard cap, at it and one above.
        let filler = record([[UInt8](repeating: 120, count: 255), [UInt8](repeating: 120, count: 255)])
        let rest = TextRecord.maximumLength - raw.count - filler.count - 1
        #expect(throws: Never.self) { try opener.open(raw + filler + record([[UInt8](repeating: 120, count: rest)])) }
        expect(.malformedRecord, raw + filler + record([[UInt8](repeating: 120, count: rest + 1)]))
    }
}
