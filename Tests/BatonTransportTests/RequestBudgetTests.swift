// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonTransport

/// Requests and answers of all connections together are bounded.
@Suite("Budget of requests", .timeLimit(.minutes(3)))
struct RequestBudgetTests {
    private static let connections = 2
    private static let floor = 1000

    /// Two connections with a floor each, and some bytes above.
    private static func budget(above: Int) -> (ReceiveBudget, ByteBudget.Part) {
        let windows = ByteBudget(bytes: 1 << 20).part(reserved: 1 << 20, ceiling: 1 << 20)
        let bytes = connections * floor + above
        let requests = ByteBudget(bytes: bytes).part(reserved: connections * floor, ceiling: bytes)
        let budget = ReceiveBudget(
            part: windows, connections: connections, initialWindow: 64 << 10, maximumWindow: 64 << 10,
            requests: requests)
        return (budget, requests)
    }

    @Test("Requests use the connection's floor and the rest of the budget, and give them back with their streams")
    func bound() async throws {
        let (budget, part) = Self.budget(above: 500)
        let nothing = part.held
        let (first, second) = (try await ConnectedPair(budget: budget), try await ConnectedPair(budget: budget))
        let firsts = first.acceptor.incoming.makeAsyncIterator()
        let seconds = second.acceptor.incoming.makeAsyncIterator()
        // 250 bytes count twice: two requests fit in the floor, and one above it.
        var kept: [(near: BatonTransport.Stream, far: IncomingStream)] = []
        for number in 1...3 {
            let near = try await first.dialer.open([UInt8](repeating: 1, count: 250))
            kept.append((near, try #require(await firsts.next())))
            #expect(part.held == nothing + (number < 3 ? 0 : 500), "\(number)")
        }
        let refused = try await first.dialer.open([1])
        #expect(await failure { _ = try await refused.response() } == .reset(.limitExceeded))
        // The other connection has a floor of its own, and no more.
        let other = try await second.dialer.open([UInt8](repeating: 2, count: 500))
        let served = try #require(await seconds.next())
        let refusedToo = try await second.dialer.open([1])
        #expect(await failure { _ = try await refusedToo.response() } == .reset(.limitExceeded))
        #expect(await failure { try await served.stream.reserve(1) } == .limitExceeded)
        #expect(part.held == nothing + 500)

        // After the end of one stream as much can be reserved again, here for an answer.
        kept.removeLast()
        try await eventually("it has gone") { part.held == nothing }
        try await kept[0].far.stream.respond([UInt8](repeating: 3, count: 400))
        #expect(try await kept[0].near.response().count == 400)
        #expect(part.held == nothing + 400)
        let last = kept[1].far.stream
        #expect(await failure { try await last.respond([UInt8](repeating: 3, count: 101)) } == .limitExceeded)
        try await last.respond([UInt8](repeating: 3, count: 100))
        #expect(part.held == nothing + 500)
        withExtendedLifetime((other, served)) {}
        kept = []
        for pair in [first, second] {
            await pair.dialer.close()
            await pair.acceptor.close()
        }
        try await eventually("all of it has gone") { part.held == nothing }
    }
}
