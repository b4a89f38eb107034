// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import Testing

@testable import BatonNode

@Suite("The time that waiting for a connection took")
struct LinkWaitTests {
    private static func mark(_ milliseconds: Int64, busy: Int64) -> LinkWait.Mark {
        LinkWait.Mark(time: Instant(nanoseconds: 0) + .milliseconds(milliseconds), busy: .milliseconds(busy))
    }

    @Test("The time in which the loop was busy is computing, and the rest is the network")
    func parts() {
        var waited = LinkWait()
        waited.add(from: Self.mark(1000, busy: 50), to: Self.mark(1100, busy: 80))
        #expect(waited.processor == .milliseconds(30))
        #expect(waited.link == .milliseconds(70))
        // A turn that began before counts when it ends, and for no more than the wait.
        waited.add(from: Self.mark(1100, busy: 80), to: Self.mark(1110, busy: 180))
        #expect(waited.processor == .milliseconds(40))
        #expect(waited.link == .milliseconds(70))
        #expect(waited.whole == .milliseconds(110))
    }
}
