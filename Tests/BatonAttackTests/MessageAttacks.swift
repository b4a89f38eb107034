// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Foundation
import SwiftProtobuf
import Testing

@testable import BatonMessages
@testable import BatonNode

/// Messages that are built to cost their reader more than their writer.
///
/// Deep nesting: CVE-2024-7254 and CVE-2025-4565 (protobuf recursion), CVE-2021-39537's kind in every parser. Wide
/// ones: the "hash flooding" of Klink and Wälde (28C3, 2011).
@Suite("Attacks with messages")
struct MessageAttacks {
    /// Length-delimited field `number` around the content.
    private static func field(_ number: UInt8, _ content: [UInt8]) -> [UInt8] {
        var length: [UInt8] = []
        var rest = content.count
        repeat {
            length.append(UInt8(rest & 0x7F) | (rest > 0x7F ? 0x80 : 0))
            rest >>= 7
        } while rest > 0
        return [number << 3 | 2] + length + content
    }

    /// An offer whose user info is an array in an array in an array.
    private static func nested(_ depth: Int) -> [UInt8] {
        var value: [UInt8] = [0x10, 1]  // boolean
        // Value.array (11) holding ArrayValue.elements (1).
        for _ in 0..<depth { value = field(11, field(1, value)) }
        let entry = field(1, Array("k".utf8)) + field(2, value)
        let offer = field(3, field(1, entry))
        // Request.offer is number 35: two bytes of tag.
        return [0x9A, 0x02] + field(0, offer).dropFirst()
    }

    @Test("A deep message", arguments: [20, 1_000])
    func deep(depth: Int) async {
        await attack("arrays in arrays, \(depth) deep") {
            Outcome(succeeds: (try? WireRequest.decode(Self.nested(depth))) != nil)
        }
        // Nesting too deep for a stack is refused as soon as the bound is passed.
        #expect(throws: HandoffError.self) { try WireRequest.decode(Self.nested(4_000)) }
    }

    /// User info as an offer has it: an array of so many values, or as many entries.
    private static func wide(_ count: Int, isArray: Bool) -> [UInt8] {
        guard !isArray else {
            let element = field(1, [0x10, 1])
            let array = field(11, Array(repeatElement(element, count: count).joined()))
            return field(1, field(1, [0x6B]) + field(2, array))
        }
        return (0..<count).flatMap { number in
            field(1, field(1, Array(String(number, radix: 36).utf8)) + field(2, [0x10, 1]))
        }
    }

    /// Each value takes four bytes of a message and some hundred of memory. The defence is the size of a message, by
    /// which the length in front of it is judged.
    @Test("A wide message", arguments: [true, false])
    func wide(isArray: Bool) async {
        await attack("user info of 100,000 values in \(isArray ? "an array" : "a dictionary")") {
            let userInfo = Self.wide(100_000, isArray: isArray)
            // OfferUpdate.offer is field 1, OfferRequest.user_info field 3.
            let record = Self.field(1, Self.field(3, userInfo))
            // The length in front of a record is written as that of a field, without the number.
            let framed = Self.field(1, record).dropFirst()
            var parser = RecordParser<WireOfferUpdate>()
            Array(framed).withUnsafeBytes { parser.append($0) }
            guard let update = try? parser.next() else { return .refused }
            let pairs = update.offer.userInfo.pairs
            let count = isArray ? pairs.first?.value.array.elements.count : pairs.count
            return Outcome(succeeds: count == 100_000)
        }
    }

    /// `WideUserInfoAttacks` shows by a control the cost of work that grows with the square of the values.
    @Test("As many values as a message has room for are read in time")
    func widest() throws {
        for userInfo in [Self.wide(12_000, isArray: true), Self.wide(5_000, isArray: false)] {
            let bytes = [0x9A, 0x02] + Self.field(0, Self.field(3, userInfo)).dropFirst()
            #expect(bytes.count <= MessageLimits.size, "\(bytes.count)")
            let start = ContinuousClock.now
            guard case .offer(let offer) = try WireRequest.decode(bytes) else {
                Issue.record("the message is not what it should be")
                continue
            }
            _ = try? OfferedActivity.requireFitting(offer.userInfo)
            #expect(ContinuousClock.now - start < .seconds(5))
        }
    }

    /// The cost of hashing and comparing texts of combining marks, in pairs of bytes: the square of each text's length.
    /// Nothing is hashed here, so that the work is counted and not timed.
    private static func work(_ dictionary: WireDictionaryValue) -> Int {
        dictionary.pairs.reduce(0) { sum, pair in
            let texts = [pair.key] + pair.value.set.elements.map(\.string)
            return texts.reduce(sum) { $0 + $1.utf8.count * $1.utf8.count }
        }
    }

    /// Hash flooding once more. Before the hash begins, a text costs Swift the square of the combining marks in a row
    /// (0.47 s for the 64 KiB of a message).
    @Test("Texts that are expensive to hash, as keys and in sets", arguments: [true, false])
    func expensiveKeys(isKey: Bool) async {
        func userInfo(_ count: Int) -> WireDictionaryValue {
            let text =
                String(repeating: "\u{0301}\u{0323}", count: count / 4) + String(repeating: "k", count: count % 4)
            return .with { info in
                info.pairs = [
                    .with {
                        if isKey { $0.key = text } else { $0.value.set.elements = [.with { $0.string = text }] }
                    }
                ]
            }
        }
        await attack("user info with \(isKey ? "a key" : "a text in a set") of 40,000 bytes") {
            let bytes = try? WireRequest.with { $0.offer.userInfo = userInfo(40_000) }.serializedBytes() as [UInt8]
            guard case .offer(let offer)? = try? WireRequest.decode(bytes ?? []) else { return .refused }
            guard (try? OfferedActivity.requireFitting(offer.userInfo)) != nil else { return .refused }
            return Outcome(succeeds: Self.work(offer.userInfo) > MessageLimits.size * WireDictionaryValue.keyBound)
        }
        let bound = WireDictionaryValue.keyBound
        #expect((try? OfferedActivity.requireFitting(userInfo(bound))) != nil)
        #expect((try? OfferedActivity.requireFitting(userInfo(bound + 1))) == nil)
    }

    /// "Billion laughs" needs references; without them a message can at most be as large as it is. What is over the
    /// bound for user info is refused although it fits in a message.
    @Test("User info over its bound")
    func largeUserInfo() async {
        func isTaken(_ bytes: Int) -> Bool {
            var userInfo = WireDictionaryValue()
            userInfo.entries["k"] = .with { $0.data = Data(count: bytes) }
            return (try? OfferedActivity.requireFitting(userInfo)) != nil
        }
        let bound = OfferedActivity.userInfoBound
        await attack("user info of more bytes than it may have") { Outcome(succeeds: isTaken(bound)) }
        #expect(isTaken(bound - 64))
    }
}
