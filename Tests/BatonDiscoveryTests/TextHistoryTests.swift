// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import BatonDiscovery

@Suite struct TextHistoryTests {
    private let old: [UInt8] = [1]
    private let new: [UInt8] = [2]

    private func record(_ text: [UInt8], _ interface: UInt32) -> TextHistory.Outcome {
        .current(TextHistory.Record(text: text, interfaceIndex: interface))
    }

    @Test func oneEventForBothAddressFamilies() {
        var history = TextHistory()
        #expect(history.add(old, interfaceIndex: 2) == record(old, 2))
        #expect(history.add(old, interfaceIndex: 2) == .unchanged)
        #expect(history.remove(old, interfaceIndex: 2) == .unchanged)
        #expect(history.remove(old, interfaceIndex: 2) == .gone)
        #expect(history.current == nil)
    }

    @Test func aNewTextIsCurrentWhileTheOldOneExpires() {
        var history = TextHistory()
        _ = history.add(old, interfaceIndex: 2)
        #expect(history.add(new, interfaceIndex: 2) == record(new, 2))
        #expect(history.remove(old, interfaceIndex: 2) == .unchanged)
        #expect(history.current?.text == new)
    }

    @Test func anInterfaceThatGoesLeavesTheOther() {
        var history = TextHistory()
        _ = history.add(old, interfaceIndex: 2)
        #expect(history.add(old, interfaceIndex: 3) == .unchanged)
        #expect(history.remove(old, interfaceIndex: 2) == record(old, 3))
        #expect(history.remove(old, interfaceIndex: 3) == .gone)
    }

    @Test func aStaleRemovalIsIgnored() {
        var history = TextHistory()
        #expect(history.remove(old, interfaceIndex: 2) == .unchanged)
        _ = history.add(new, interfaceIndex: 2)
        #expect(history.remove(old, interfaceIndex: 2) == .unchanged)
    }

    @Test func aPeerThatNeverStopsChangingIsBounded() {
        var history = TextHistory()
        for index in 0..<100 {
            #expect(history.add([UInt8(index)], interfaceIndex: 2) == record([UInt8(index)], 2))
        }
        // The oldest are forgotten: their removals mean nothing.
        for index in 0..<(100 - TextHistory.capacity) {
            #expect(history.remove([UInt8(index)], interfaceIndex: 2) == .unchanged)
        }
        #expect(history.current?.text == [99])
    }
}
