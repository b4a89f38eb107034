// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonMessages
import Foundation
import SwiftProtobuf
import Testing

@testable import BatonNode

@Suite("Changes of the list of activities")
struct ActivityChangesTests {
    private func listing(
        _ id: UInt8, on device: String = "a", title: String = "", since: UInt64 = 0
    ) -> WireActivityListing {
        .with {
            $0.activity.id = Data(repeating: id, count: 16)
            $0.activity.title = title
            $0.activity.since = since
            $0.deviceID = device
        }
    }

    private func changes(
        from old: [WireActivityListing], to new: [WireActivityListing]
    ) -> [WireActivityListing] {
        var told = ToldListing(old)
        return told.change(to: new).map { WireActivityListing($0) }
    }

    @Test("What has gone is told before what came and what is another, and what stayed is not told")
    func changes() {
        let told = changes(
            from: [listing(1), listing(2), listing(4)], to: [listing(2, title: "another"), listing(3), listing(4)])
        #expect(told.map(\.change) == [.removed, .added, .updated])
        #expect(told.map(\.activity.id.first) == [1, 3, 2])
        #expect(changes(from: [listing(1, since: 7)], to: [listing(1, since: 8)]).isEmpty)
        #expect(changes(from: [listing(1)], to: [listing(1)]).isEmpty)
        #expect(changes(from: [], to: []).isEmpty)
    }

    @Test("The same id on another device is another activity")
    func devices() {
        let told = changes(from: [listing(1)], to: [listing(1, on: "b")])
        #expect(told.map(\.change) == [.removed, .added])
        #expect(told.map(\.deviceID) == ["a", "b"])
    }
}

@Suite("Identifiers")
struct IdentifierTests {
    @Test("They are 16 random bytes, written as 32 digits")
    func form() throws {
        let id = ActivityID()
        #expect(id.bytes.count == ActivityID.size && id != ActivityID())
        #expect(ActivityID(id.bytes) == id)
        #expect(
            try #require(ActivityID((0..<16).map { UInt8($0 * 16 + $0) })).description
                == "00112233445566778899aabbccddeeff")
        #expect(ActivityID([UInt8](repeating: 15, count: 16))?.description == String(repeating: "0f", count: 16))
    }

    @Test("No other number of bytes is one", arguments: [0, 15, 17])
    func size(count: Int) {
        #expect(ActivityID([UInt8](repeating: 0, count: count)) == nil)
    }
}
