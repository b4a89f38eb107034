// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonEventLoop
import BatonMessages
import Foundation
import SwiftProtobuf
import Testing

@testable import BatonNode

/// User info of as many keys as there is room for, on its whole way. It goes out of the message, through the node that
/// translates its URLs, into the application and out again.
///
/// Work that grows with the square of what was sent: CVE-2011-4885 and its kin (Klink and Wälde, 28C3), CWE-407.
@Suite("Attacks with wide user info", .timeLimit(.minutes(2)))
struct WideUserInfoAttacks {
    /// User info of so many keys, one of them with a URL of a file, so that the node has to look at all. Keys of two
    /// letters are the shortest of which there are as many.
    private static func payload(keys: Int) -> WireActivityPayload {
        .with { payload in
            payload.summary.kind = .document
            payload.userInfo.pairs = (0..<keys).map { number in
                .with {
                    $0.key = String(decoding: [UInt8(0x21 + number / 70), UInt8(0x21 + number % 70)], as: UTF8.self)
                    $0.value.boolean = true
                }
            }
            payload.userInfo.pairs[keys / 2].value.url = "baton-document:"
        }
    }

    /// The whole way of a payload; the least of three times, in seconds.
    private static func wholeWay(keys: Int, through files: SharedFiles) async throws -> Double {
        var least = Double.infinity
        for _ in 0..<3 {
            let bytes: [UInt8] = try payload(keys: keys).serializedBytes()
            #expect(bytes.count <= MessageLimits.size)
            var received = WireActivityPayload()
            var cost = try ThreadTime.cost {
                received = try WireActivityPayload(serializedBytes: bytes)
                try OfferedActivity.requireFitting(received.userInfo)
            }
            let before = await files.threadTime()
            let arrival = try await files.incoming(received, of: "laptop", takesLocal: true)
            cost += await files.threadTime() - before
            #expect(arrival.payload.userInfo.pairs.count == keys)
            cost += try ThreadTime.cost {
                let userInfo = try UserInfo(arrival.payload.userInfo)
                try userInfo.validate()
                #expect(userInfo.entries.count == keys && !userInfo.jsonText.isEmpty)
            }
            least = min(least, cost)
        }
        return least
    }

    /// An earlier way to replace URLs: it makes the dictionary of all pairs, and all pairs of the dictionary, for each
    /// key.
    private static func rebuilding(keys: Int) -> Double {
        let userInfo = payload(keys: keys).userInfo
        return ThreadTime.cost {
            var result = userInfo
            for key in userInfo.entries.keys.sorted() { result.entries[key] = userInfo.entries[key] }
            withExtendedLifetime(result) {}
        }
    }

    @Test("Eight times the keys cost eight times the work, and not its square")
    func manyKeys() async throws {
        let files = try SharedFiles.none()
        // With sorting it is some ten times; the square is 64. This is no attack, because the way of the work is no
        // defence to switch off. The earlier way shows that the square would be seen, with fewer keys.
        let few = try await Self.wholeWay(keys: 600, through: files)
        let many = try await Self.wholeWay(keys: 4_800, through: files)
        #expect(many <= 20 * few)
        #expect(Self.rebuilding(keys: 200) > 20 * Self.rebuilding(keys: 25))
    }

    /// One NaN equals nothing and has the hash of all others: each that comes into a set is compared with all before.
    @Test("Numbers in a set that are none", arguments: [true, false])
    func noNumbers(isDate: Bool) async throws {
        func wire(_ number: Double) -> WireValue {
            .with { if isDate { $0.date = number } else { $0.real = number } }
        }
        func value(_ number: Double) -> UserInfoValue {
            isDate ? .date(Date(timeIntervalSinceReferenceDate: number)) : .real(number)
        }
        /// A set of 2,000 of them: all alike where there is no number, and else none like another.
        func userInfo(of number: (Double) -> WireValue, isNone: Bool) -> WireDictionaryValue {
            .with { info in
                info.pairs = [
                    .with {
                        $0.key = "k"
                        $0.value.set.elements = (1...2_000).map { number(isNone ? .nan : Double($0)) }
                    }
                ]
            }
        }
        let elements: [(name: String, wire: (Double) -> WireValue, value: (Double) -> UserInfoValue)] = [
            ("itself", wire, value),
            ("in an array", { number in .with { $0.array.elements = [wire(number)] } }, { .array([value($0)]) }),
            (
                "in a dictionary",
                { number in .with { $0.dictionary = .with { $0.entries = ["k": wire(number)] } } },
                { .dictionary(["k": value($0)]) }
            ),
        ]
        for element in elements {
            try OfferedActivity.requireFitting(userInfo(of: element.wire, isNone: false))
            await attack("a set of \(isDate ? "dates" : "numbers") that are none, each \(element.name)") {
                let attack = userInfo(of: element.wire, isNone: true)
                guard (try? OfferedActivity.requireFitting(attack)) != nil else { return .refused }
                // The work of the receiver: the library, which checks again before it reads, or another one.
                func cost(_ number: (Int) -> Double) -> Double {
                    let values = (1...2_000).map { element.value(number($0)) }
                    return ThreadTime.cost { withExtendedLifetime(Set(values)) {} }
                }
                let (least, most) = (cost { Double($0) }, cost { _ in .nan })
                print("2,000 of a set that are none cost \(most / least) times as much as numbers")
                return Outcome(succeeds: most > 8 * least)
            }
        }
    }

    @Test("More keys than user info has room for")
    func keysOverTheBound() async {
        let userInfo = Self.payload(keys: 6_000).userInfo
        await attack("user info of 6,000 keys") {
            Outcome(succeeds: (try? OfferedActivity.requireFitting(userInfo)) != nil)
        }
    }
}

extension SharedFiles {
    /// The processor time of its thread, in seconds.
    fileprivate func threadTime() -> Double { ThreadTime.now }
}
