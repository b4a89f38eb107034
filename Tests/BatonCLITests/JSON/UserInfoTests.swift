// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages
import BatonTestSupport
import FoundationEssentials
import SwiftProtobuf
import Testing

@Suite("User info")
struct UserInfoTests {
    @Test("every type has a form")
    func forms() throws {
        let text = """
            {"n":null,"b":true,"i":1,"r":1.0,"u":18446744073709551615,"s":"x","d":{"$date":"2026-11-21T09:30:00.125Z"},
             "w":{"$url":"https://example.org/a?b"},"x":{"$data":"aGVsbG8="},
             "id":{"$uuid":"6BA7B810-9DAD-11D1-80B4-00C04FD430C8"},"set":{"$set":[1,2,1]},"a":[1,{"k":"v"}],
             "tag":{"$dictionary":{"$date":1}},"inf":{"$real":"-inf"}}
            """
        let info = try UserInfo(json: text.utf8)
        #expect(info["n"] == .null)
        #expect(info["b"] == .boolean(true))
        #expect(info["i"] == .integer(1))
        #expect(info["r"] == .real(1))
        #expect(info["u"] == .unsignedInteger(.max))
        #expect(info["d"] == .date(Date(timeIntervalSince1970: 1_795_253_400.125)))
        #expect(info["w"] == .url(try #require(URL(string: "https://example.org/a?b"))))
        #expect(info["x"] == .data(Data("hello".utf8)))
        #expect(info["set"] == .set([1, 2]))
        #expect(info["a"] == [1, ["k": "v"]])
        #expect(info["tag"] == ["$date": 1])
        #expect(info["inf"] == .real(-.infinity))
        #expect(try UserInfo(json: info.jsonText.utf8) == info)
    }

    @Test(
        "what is refused is named with its place",
        arguments: [
            ("[1]", "an array"), ("3", "a number"), ("{\"$date\":\"2026-11-21\"}", "names of its own"),
            ("{\"a\":{\"$foo\":1}}", "user info at a.$foo: there is no type $foo"),
            (
                "{\"a\":[0,{\"b\":{\"$date\":5}}]}",
                "user info at a[1].b.$date: $date does not take a number such as this one"
            ),
            ("{\"a\":{\"$date\":\"yesterday\"}}", "no date"), ("{\"a\":{\"$url\":\"no scheme\"}}", "no URL"),
            ("{\"a\":{\"$data\":\"***\"}}", "not Base64"), ("{\"a\":{\"$uuid\":\"1\"}}", "no UUID"),
            ("{\"a\":{\"$set\":{}}}", "does not take an object"), ("{\"a\":1,}", "line 1, column 8"),
        ])
    func refusals(_ text: String, _ part: String) {
        let error = #expect(throws: UserInfoError.self) { try UserInfo(json: text.utf8) }
        #expect(error?.description.contains(part) == true, "\(error?.description ?? "")")
    }

    @Test("a member that begins with $ beside others is a name like any other")
    func dollars() throws {
        #expect(try UserInfo(json: #"{"a":{"$date":1,"b":2}}"#.utf8)["a"] == ["$date": 1, "b": 2])
    }

    @Test("JSON and messages carry everything there and back", arguments: 0..<200 as Range<UInt64>)
    func roundTrip(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var info = UserInfo()
        for index in 0..<Int.random(in: 0...6, using: &generator) {
            info["\(index)" + RandomText.make(&generator)] = randomValue(&generator, depth: UserInfo.maximumDepth - 1)
        }
        #expect(try UserInfo(json: info.jsonText.utf8) == info, "\(generator)")
        let bytes: [UInt8] = try info.message.serializedBytes()
        #expect(try UserInfo(WireDictionaryValue(serializedBytes: bytes)) == info, "\(generator)")
    }

    @Test("the deepest user info fits a request, and one level more is refused before it is sent")
    func depth() throws {
        var dictionary: UserInfoValue = ["x": 1]
        for _ in 1..<UserInfo.maximumDepth - 1 { dictionary = ["x": dictionary] }
        let deepest: UserInfo = ["x": dictionary]
        try deepest.validate()
        var request = WireRequest()
        request.offer = WireOfferRequest.with { $0.userInfo = deepest.message }
        let bytes: [UInt8] = try request.serializedBytes()
        #expect(throws: Never.self) { try WireRequest.decode(bytes) }
        let event = WireAcceptEvent.with { $0.payload.userInfo = deepest.message }
        let record: [UInt8] = try event.serializedBytes()
        var options = BinaryDecodingOptions()
        options.messageDepthLimit = MessageLimits.depth
        #expect(throws: Never.self) { try WireAcceptEvent(serializedBytes: record, options: options) }
        #expect(throws: UserInfoError.self) { try (["y": dictionary, "x": ["x": dictionary]] as UserInfo).validate() }
    }

    @Test("48 KB are the most")
    func size() throws {
        let overhead = (["d": .data(Data(count: 40_000))] as UserInfo).encodedSize - 40_000
        let most = UserInfo.maximumSize - overhead
        #expect((["d": .data(Data(count: most))] as UserInfo).encodedSize == UserInfo.maximumSize)
        try (["d": .data(Data(count: most))] as UserInfo).validate()
        #expect(throws: UserInfoError.self) { try (["d": .data(Data(count: most + 1))] as UserInfo).validate() }
    }

    @Test("malformed values of a peer are refused")
    func malformed() {
        var uuid = WireValue()
        uuid.uuid = Data(count: 15)
        var date = WireValue()
        date.date = .nan
        for value in [WireValue(), uuid, date] {
            var message = WireDictionaryValue()
            message.entries["x"] = value
            #expect(throws: UserInfoError.self) { try UserInfo(message) }
        }
    }

    @Test("dates keep all of their precision, as text where that has digits enough")
    func precision() throws {
        let text = #"{"d":{"$date":"2026-11-21T09:30:00.123456Z"}}"#
        #expect(try UserInfo(json: text.utf8).jsonText == text)
        let seed = SeededGenerator.chosenSeed
        var generator = SeededGenerator(seed: seed)
        var texts = 0
        for _ in 0..<20_000 {
            // Times around 2001 and in other centuries, with all bits of a double.
            let spread: Double = [1e3, 1e6, 1e8, 1e9, 1e10].randomElement(using: &generator) ?? 1
            let seconds = Double.random(in: -spread...spread, using: &generator)
            let date = Date(timeIntervalSinceReferenceDate: seconds)
            let info: UserInfo = ["d": .date(date)]
            let text = info.jsonText
            #expect(try UserInfo(json: text.utf8) == info, "seed \(seed): \(text)")
            guard abs(seconds) > 1e7 else { continue }
            texts += 1
            #expect(text.hasSuffix(#"Z"}}"#), "seed \(seed): \(text)")
        }
        #expect(texts > 5000)
        let now: UserInfo = ["d": .date(Date())]
        #expect(try UserInfo(json: now.jsonText.utf8) == now)
    }

    @Test("dates beyond ISO 8601 survive")
    func farDates() throws {
        let info: UserInfo = ["far": .date(Date(timeIntervalSinceReferenceDate: 1e300))]
        #expect(try UserInfo(json: info.jsonText.utf8) == info)
    }

    private func randomValue(_ generator: inout SeededGenerator, depth: Int) -> UserInfoValue {
        let count = Int.random(in: 0...3, using: &generator)
        switch Int.random(in: 0..<(depth > 1 ? 13 : 10), using: &generator) {
        case 0: return .null
        case 1: return .boolean(Bool.random(using: &generator))
        case 2: return .integer(Int64(bitPattern: generator.next()))
        case 3: return .unsignedInteger(generator.next() | 1 << 63)
        case 4:
            let value = Double(bitPattern: generator.next())
            return .real(value.isNaN ? -.infinity : value)
        case 5: return .string(RandomText.make(&generator))
        case 6: return .data(Data(generator.bytes(count * 5)))
        case 7:
            // The text carries milliseconds. A double has these halves exactly.
            return .date(Date(timeIntervalSince1970: Double(Int32(truncatingIfNeeded: generator.next())) + 0.5))
        case 8: return .url(URL(string: "https://example.org/\(generator.next())") ?? URL(filePath: "/"))
        case 9:
            return .uuid(UUID())
        case 10: return .array((0..<count).map { _ in randomValue(&generator, depth: depth - 1) })
        case 11: return .set(Set((0..<count).map { _ in randomValue(&generator, depth: depth - 1) }))
        case _:
            var entries: [String: UserInfoValue] = [:]
            for _ in 0..<count {
                let name = ["$date", "$", "a", RandomText.make(&generator)].randomElement(using: &generator) ?? ""
                entries[name] = randomValue(&generator, depth: depth - 1)
            }
            return .dictionary(entries)
        }
    }
}

@Suite("ISO 8601")
struct ISO8601Tests {
    @Test(
        "dates and their seconds",
        arguments: [
            ("1970-01-01T00:00:00.000Z", 0.0), ("2026-11-21T09:30:00.125Z", 1_795_253_400.125),
            ("2024-02-29T23:59:59.000Z", 1_709_251_199), ("0001-01-01T00:00:00.000Z", -62_135_596_800),
            ("9999-12-31T23:59:59.999Z", 253_402_300_799.999), ("1969-12-31T23:59:59.500Z", -0.5),
        ])
    func both(_ text: String, _ seconds: Double) {
        #expect(ISO8601.format(milliseconds: seconds) == text)
        #expect(ISO8601.parse(text).map { abs($0 - seconds) < 0.0005 } == true)
    }

    @Test(
        "what is no date",
        arguments: [
            "", "2026", "2026-13-01", "2026-02-30", "2100-02-29", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00",
            "2026-01-01T00:00:00+1", "0000-01-01", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00Zx", "２０２６-01-01",
        ])
    func refusals(_ text: String) {
        #expect(ISO8601.parse(text) == nil)
    }

    @Test("offsets, and a date alone")
    func offsets() {
        #expect(ISO8601.parse("1970-01-01T01:30:00+01:30") == 0)
        #expect(ISO8601.parse("1969-12-31T16:00:00-08:00") == 0)
        #expect(ISO8601.parse("1970-01-02") == 86_400)
        #expect(ISO8601.format(milliseconds: .nan) == nil)
        #expect(ISO8601.format(milliseconds: 1e300) == nil)
        #expect(ISO8601.format(seconds: .max) == nil)
    }

    @Test("every day of some years reads back", arguments: [1, 4, 100, 400, 1600, 1900, 1970, 2000, 2026, 9999])
    func days(_ year: Int) throws {
        var text = String(year)
        while text.count < 4 { text = "0" + text }
        let first = try #require(ISO8601.parse(text + "-01-01"))
        for day in 0..<365 {
            let shown = try #require(ISO8601.format(milliseconds: first + Double(day) * 86_400))
            #expect(ISO8601.parse(shown) == first + Double(day) * 86_400)
            #expect(shown.hasPrefix(text))
        }
    }
}
