// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonFoundation
import BatonTestSupport
import Foundation
import SwiftProtobuf
import Testing

@Suite("User info as dictionaries")
struct UserInfoTests {
    @Test("Swift's types and Foundation's classes of all ten types become user info")
    func types() throws {
        let date = Date(timeIntervalSinceReferenceDate: 812_345_678.123_456_7)
        let (url, uuid) = (try #require(URL(string: "https://example.org/a?b#c")), UUID())
        let expected: UserInfo = [
            "array": [1, "two", nil], "data": .data(Data([1, 2])), "date": .date(date), "dictionary": ["k": ["v"]],
            "null": .null, "number": 5, "set": .set(["a", 1]), "string": "text", "url": .url(url), "uuid": .uuid(uuid),
        ]
        let swift: [String: Any] = [
            "array": [1, "two", NSNull()] as [Any], "data": Data([1, 2]), "date": date, "dictionary": ["k": ["v"]],
            "null": NSNull(), "number": 5, "set": ["a", 1] as Set<AnyHashable>, "string": "text", "url": url,
            "uuid": uuid,
        ]
        #expect(try UserInfo(swift) == expected)
        let classes: [String: Any] = [
            "array": NSArray(array: [NSNumber(value: 1), NSString("two"), NSNull()]),
            "data": NSData(data: Data([1, 2])), "date": NSDate(timeIntervalSinceReferenceDate: 812_345_678.123_456_7),
            "dictionary": NSDictionary(dictionary: ["k": NSArray(array: ["v"])]), "null": NSNull(),
            "number": NSNumber(value: 5), "set": NSSet(array: ["a", NSNumber(value: 1)]), "string": NSString("text"),
            "url": try #require(NSURL(string: "https://example.org/a?b#c")),
            "uuid": try #require(NSUUID(uuidString: uuid.uuidString)),
        ]
        #expect(try UserInfo(classes) == expected)
        #expect(try UserInfo(expected.dictionary) == expected)
    }

    @Test("1, true and 1.0 stay three different things, as themselves and in an NSNumber")
    func numbers() throws {
        let values: [(any Sendable, UserInfoValue)] = [
            (true, .boolean(true)), (false, .boolean(false)), (1, .integer(1)), (1.0, .real(1)),
            (Float(1.5), .real(1.5)),
            (Int8.min, .integer(-128)), (Int16.min, .integer(-32768)), (Int32.max, .integer(2_147_483_647)),
            (Int64.min, .integer(.min)), (UInt8.max, .integer(255)), (UInt16(1), .integer(1)), (UInt32(1), .integer(1)),
            (UInt64(1), .integer(1)), (UInt64.max, .unsignedInteger(.max)), (UInt.max, .unsignedInteger(.max)),
        ]
        for (value, expected) in values {
            #expect(try UserInfo(["v": value])["v"] == expected, "\(type(of: value))")
        }
        let numbers: [(NSNumber, UserInfoValue)] = [
            (NSNumber(value: true), .boolean(true)), (NSNumber(value: false), .boolean(false)),
            (NSNumber(value: 1), .integer(1)), (NSNumber(value: 0), .integer(0)), (NSNumber(value: 1.0), .real(1)),
            (NSNumber(value: Float(0.5)), .real(0.5)), (NSNumber(value: Int8(1)), .integer(1)),
            (NSNumber(value: UInt8(0)), .integer(0)), (NSNumber(value: Int64.min), .integer(.min)),
            (NSNumber(value: UInt64.max), .unsignedInteger(.max)), (NSNumber(value: UInt64(7)), .integer(7)),
        ]
        for (number, expected) in numbers {
            #expect(try UserInfo(["v": number])["v"] == expected, "\(number)")
        }
        let info: UserInfo = ["t": true, "i": 1, "r": 1.0]
        let back = info.dictionary
        #expect(back["t"] is Bool && back["i"] is Int && back["r"] is Double)
    }

    @Test("Sets keep what Swift's AnyHashable takes for the same")
    func sets() throws {
        let info: UserInfo = ["s": .set([.integer(1), .real(1), .boolean(true), [1], [1.0], .set([1]), ["k": 1]])]
        #expect(try UserInfo(info.dictionary) == info)
        #expect((info.dictionary["s"] as? Set<AnyHashable>)?.count == 7)
    }

    @Test("Everything else is refused at its key")
    func refusals() throws {
        struct Other: Hashable {}
        let deep: [String: Any] = ["a": [0, ["b": Other()] as [String: Any]] as [Any]]
        let refused: [([String: Any], String, String)] = [
            (["x": Other()], "x", "Other is none of the types"), (deep, "a[1].b", "Other"),
            (["x": Optional<Int>.none as Any], "x", "Optional<Int>"), (["x": Character("a")], "x", "Character"),
            (["x": NSDecimalNumber(string: "1.1")], "x", "NSDecimalNumber"), (["x": Decimal(1)], "x", "Decimal"),
            (["x": NSObject()], "x", "NSObject"), (["x": { 1 } as () -> Int], "x", "() -> Int"),
            (["x": [1: "one"]], "x", "the key 1 is no string"), (["x": 1...2], "x", "ClosedRange"),
            (["x": ["y": [Other()] as Set<AnyHashable>]], "x.y[0]", "Other"), (["x": (1, 2)], "x", "(Int, Int)"),
            (["x": Int128.max], "x", "more than 64 bits"), (["x": NSOrderedSet(array: [1])], "x", "NSOrderedSet"),
            (["x": Date(timeIntervalSinceReferenceDate: .nan)], "x", "no point in time"),
            (["x": Date(timeIntervalSinceReferenceDate: .infinity)], "x", "no point in time"),
        ]
        for (dictionary, path, problem) in refused {
            let error = #expect(throws: UserInfoError.self, "\(dictionary)") { try UserInfo(dictionary) }
            #expect(error?.path == path)
            #expect(error?.problem.contains(problem) == true, "\(error?.problem ?? "")")
        }
    }

    @Test("Random user info crosses dictionary and message byte for byte", arguments: 0..<1000 as Range<UInt64>)
    func roundTrip(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let info = RandomUserInfo.make(&generator)
        let back = try UserInfo(info.dictionary)
        #expect(back == info, "\(generator)")
        #expect(CanonicalUserInfo.bytes(back) == CanonicalUserInfo.bytes(info), "\(generator)")
        let sent = try UserInfo(.init(serializedBytes: info.message.serializedBytes() as [UInt8]))
        #expect(CanonicalUserInfo.bytes(sent) == CanonicalUserInfo.bytes(info), "\(generator)")
    }

    @Test("Errors are Cocoa's where Cocoa has them")
    func errors() {
        let error: any Error = UserActivityError(.remoteApplicationTimedOut, "it did not answer")
        let bridged = error as NSError
        #expect(bridged.domain == NSCocoaErrorDomain && bridged.code == 4610)
        #expect(bridged.localizedDescription == "it did not answer")
        let codes: [(UserActivityError.Code, CocoaError.Code)] = [
            (.userCancelled, .userCancelled), (.handoffFailed, .userActivityHandoffFailed),
            (.connectionUnavailable, .userActivityConnectionUnavailable),
            (.remoteApplicationTimedOut, .userActivityRemoteApplicationTimedOut),
            (.handoffUserInfoTooLarge, .userActivityHandoffUserInfoTooLarge),
            (.streamsUnsupported, .userActivityHandoffFailed),
        ]
        for (code, expected) in codes {
            #expect(UserActivityError(code, "").cocoaError.code == expected)
        }
    }
}
