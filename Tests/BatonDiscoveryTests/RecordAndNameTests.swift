// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Testing

@testable import BatonDiscovery

@Suite struct TextRecordTests {
    @Test func roundTrip() {
        let strings: [[UInt8]] = [Array("v=1".utf8), Array(repeating: 7, count: 250), [0]]
        let record = TextRecord.encode(strings)
        #expect(record.count == 3 + 250 + 1 + 3)
        #expect(TextRecord.decode(record) == strings)
    }

    @Test func boundsOfEncoding() {
        #expect(TextRecord.encode([Array(repeating: 1, count: 255)]).count == 256)
        let most = Array(repeating: [UInt8](repeating: 1, count: 239), count: 5)
        #expect(TextRecord.encode(most).count == TextRecord.maximumLength)
        #expect(TextRecord.encode([]) == [0])
    }

    @Test func decodingOfWhatPeersMaySend() {
        #expect(TextRecord.decode([]) == [])
        #expect(TextRecord.decode([0]) == [])
        #expect(TextRecord.decode([0, 1, 65, 0]) == [[65]])
        #expect(TextRecord.decode([2, 65]) == nil)
        #expect(TextRecord.decode([255]) == nil)
        #expect(TextRecord.decode(Array(repeating: 0, count: TextRecord.maximumLength))?.isEmpty == true)
        #expect(TextRecord.decode(Array(repeating: 0, count: TextRecord.maximumLength + 1)) == nil)
    }
}

@Suite struct InstanceNameTests {
    @Test func namesAreRandomAndOfOneLength() {
        let names = (0..<1000).map { _ in InstanceName.random() }
        #expect(Set(names).count == 1000)
        #expect(names.allSatisfy { $0.utf8.count == InstanceName.length && InstanceName.isPlausible($0) })
        #expect(Set(names.joined()).count == 32)
    }

    @Test func strangersNames() {
        #expect(InstanceName.isPlausible(String(repeating: "a", count: 63)))
        for name in ["", String(repeating: "a", count: 64), "abc #2", "Abc", "a.b", "a\\b", "é", "a\u{0}"] {
            #expect(!InstanceName.isPlausible(name), "\(name)")
        }
    }
}
