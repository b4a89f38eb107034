// SPDX-License-Identifier: Apache-2.0

import BatonMessages
import FoundationEssentials
import SwiftProtobuf
import Testing

@testable import BatonNode

@Suite("The activities that the user was told of")
struct ToldActivitiesTests {
    private func listing(_ number: Int, device: String = "a") -> WireActivityListing {
        .with {
            $0.activity.id = Data((0..<16).map { UInt8(truncatingIfNeeded: number >> $0) })
            $0.activity.title = "\(number)"
            $0.deviceID = device
        }
    }

    @Test("An activity that has gone is told as removed, and one that is back is not")
    func gone() {
        var told = ToldActivities()
        #expect(told.gone(besides: []) == [])
        told.note([listing(1), listing(2)])
        told.note([listing(2), listing(2, device: "b")])
        let gone = told.gone(besides: [listing(2)])
        #expect(gone.map(\.activity.title) == ["1", "2"] && gone.map(\.deviceID) == ["a", "b"])
        #expect(gone.allSatisfy { $0.change == .removed })
        #expect(told.gone(besides: [listing(1), listing(2), listing(2, device: "b")]) == [])
    }

    @Test("As many are remembered as the bound says, the newest")
    func bound() {
        var told = ToldActivities()
        for number in 0..<(ToldActivities.bound + 3) { told.note([listing(number)]) }
        #expect(told.gone(besides: []).count == ToldActivities.bound)
        #expect(told.gone(besides: []).first?.activity.title == "3")
        told.note((0..<200).map { listing($0, device: "b") })
        #expect(told.gone(besides: []).map(\.deviceID) == [String](repeating: "b", count: ToldActivities.bound))
    }
}
