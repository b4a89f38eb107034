// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonProtocol
import Testing

@testable import BatonNode
@testable import BatonTransport

/// How the one budget is divided; over real connections in ``NodeLimitsTests``.
@Suite("Budget of a node")
struct NodeBudgetTests {
    @Test("Devices and applications at their ceilings leave documents their buffers, and documents leave them theirs")
    func documents() {
        let budget = NodeBudget(NodeLimits())
        let device = budget.devices.share()
        let hogs = (0..<47).map { _ in budget.devices.share() } + (0..<144).map { _ in budget.applications.share() }
        let rooms = (0..<64).map { _ in budget.streams.lease(atMost: 256 << 10) }
        #expect(budget.devices.floor + device.bytes >= 12 << 20)
        #expect(budget.whole.held <= budget.whole.ceiling)
        var lent: [Buffer] = []
        while let buffer = budget.documents.acquireIfAvailable() { lent.append(buffer) }
        // Three transfers of one device hold nine.
        #expect(lent.count >= 12)
        #expect(budget.whole.held <= budget.whole.ceiling)
        withExtendedLifetime((hogs, rooms)) {}

        let second = NodeBudget(NodeLimits())
        while let buffer = second.documents.acquireIfAvailable() { lent.append(buffer) }
        #expect(second.documents.lentCount == 22)
        #expect(second.devices.floor + second.devices.share().bytes >= 4 << 20)
        #expect(second.whole.held <= second.whole.ceiling)
    }

    @Test("Continuation streams together get no more than their ceiling, however many there are")
    func streams() {
        let budget = NodeBudget(NodeLimits())
        let ceiling = BufferLimits().streams.ceiling
        #expect(ceiling == 12 << 20)
        let others = budget.whole.available
        var rooms = (0..<200).map { _ in budget.streams.lease(atMost: 256 << 10) }
        let held = rooms.reduce(0) { $0 + $1.bytes }
        // Each leaves as much as it gets, so that the last byte is nobody's.
        #expect(held == ceiling - 1 && budget.streams.held == held)
        #expect(rooms.last?.bytes == 0 && rooms.first?.bytes == 256 << 10)
        #expect(others - budget.whole.available == held - BufferLimits().streams.reserved)
        rooms.removeFirst()
        #expect(budget.streams.lease(atMost: 256 << 10).bytes == 128 << 10)
    }

    @Test("One budget, as documented: what is reserved fits it, and every connection has its floor")
    func documented() {
        let limits = NodeLimits()
        let budget = NodeBudget(limits)
        #expect(budget.whole.ceiling == 144 << 20 && budget.whole.available == 30 << 20)
        #expect(budget.devices.floor == 256 << 10 && limits.links.connections + limits.links.handshakes == 48)
        #expect(budget.applications.floor == 64 << 10 && limits.localConnections == 144)
        #expect(budget.documents.limit == 22 && budget.previews.limit == 7 && budget.reads.limit == 7)
        // A request and its answer of the greatest size: the request counts twice.
        #expect(limits.buffers.deviceRequests.reserved / 48 == 3 * Limits.messageBytes)
        #expect(limits.buffers.applicationRequests.reserved / 144 == 64 << 10)
        #expect(SignatureIndex.memoryBound == 4 << 20)
    }

    @Test("A device with the greatest description leaves room for others', and one with many no more")
    func descriptions() {
        let budget = NodeBudget(NodeLimits())
        let greatest = budget.descriptions.reservation(of: "a")
        let others = (0..<4).map { budget.descriptions.reservation(of: "\($0)") }
        #expect(greatest.grow(by: 31 << 20))
        #expect(!budget.descriptions.reservation(of: "a").grow(by: 8 << 20))
        for (number, other) in others.enumerated() { #expect(other.grow(by: (16 << 20) >> number), "\(number)") }
        #expect(budget.whole.held <= budget.whole.ceiling)
    }

    @Test("Tables of older copies: three for one device, and others find some too")
    func olderCopies() {
        let budget = NodeBudget(NodeLimits())
        let own = (0..<4).map { _ in budget.olderCopies.reservation(of: "a") }
        #expect(own.map { $0.grow(by: SignatureIndex.memoryBound) } == [true, true, true, false])
        #expect(budget.olderCopies.reservation(of: "b").grow(by: SignatureIndex.memoryBound))
    }
}
