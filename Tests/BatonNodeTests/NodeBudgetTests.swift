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
        #expect(device.bytes >= 12 << 20)
        #expect(budget.whole.held <= budget.whole.bytes)
        var lent: [Buffer] = []
        while let buffer = budget.documents.acquireIfAvailable() { lent.append(buffer) }
        // Three transfers of one device hold nine.
        #expect(lent.count == 15)
        #expect(budget.whole.held <= budget.whole.bytes)
        withExtendedLifetime((hogs, rooms)) {}

        let second = NodeBudget(NodeLimits())
        while let buffer = second.documents.acquireIfAvailable() { lent.append(buffer) }
        #expect(second.documents.lentCount == 23)
        #expect(second.devices.share().bytes >= 4 << 20)
        #expect(second.whole.held <= second.whole.bytes)
    }

    @Test("One budget, as documented: what is reserved fits it, and every connection has its floor")
    func documented() {
        let limits = NodeLimits()
        let budget = NodeBudget(limits)
        #expect(budget.whole.bytes == 64 << 20 && budget.whole.common == 24 << 20)
        #expect(budget.devices.floor == 256 << 10 && limits.connections + limits.handshakes == 48)
        #expect(budget.applications.floor == 64 << 10 && limits.localConnections == 144)
        #expect(budget.documents.limit == 23)
    }
}
