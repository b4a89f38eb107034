// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonTransport

extension ReceiveBudget {
    /// A budget with floors and the given bytes above them.
    fileprivate convenience init(
        bytes: Int, connections: Int, floor: Int, initialWindow: Int, maximumWindow: Int
    ) {
        self.init(
            part: ByteBudget(bytes: bytes).part(reserved: connections * floor, ceiling: bytes),
            connections: connections, initialWindow: initialWindow, maximumWindow: maximumWindow)
    }
}

@Suite("Receive budget", .timeLimit(.minutes(3)))
struct ReceiveBudgetTests {
    @Test("The shares and floors of all connections never exceed the budget")
    func neverExceeded() {
        let seed = SeededGenerator.chosenSeed
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let connections = Int.random(in: 1...60, using: &generator)
            let floor = Int.random(in: 1...100_000, using: &generator)
            let bytes = connections * floor + Int.random(in: 0...10_000_000, using: &generator)
            let most = Int.random(in: 1...2_000_000, using: &generator)
            let budget = ReceiveBudget(
                bytes: bytes, connections: connections, floor: floor, initialWindow: most, maximumWindow: most)
            var shares: [ByteReservation] = []
            for _ in 0..<200 {
                if shares.count < connections, Bool.random(using: &generator) {
                    shares.append(budget.share())
                } else if !shares.isEmpty {
                    shares.remove(at: Int.random(in: shares.indices, using: &generator))
                }
                let promised = shares.reduce(0) { $0 + $1.bytes } + connections * floor
                #expect(promised <= bytes, "seed \(seed)")
                #expect(promised + budget.available == bytes, "seed \(seed)")
                #expect(shares.allSatisfy { $0.bytes >= 0 && floor + $0.bytes <= max(floor, most) }, "seed \(seed)")
            }
            shares = []
            #expect(budget.available == bytes - connections * floor, "seed \(seed)")
        }
    }

    @Test("The first connection has the whole window, and each after it still has its floor")
    func shares() {
        let (bytes, floor) = (64 << 20, 512 << 10)
        let budget = ReceiveBudget(
            bytes: bytes, connections: 48, floor: floor, initialWindow: 8 << 20, maximumWindow: 16 << 20)
        let shares = (0..<48).map { _ in budget.share() }
        #expect(floor + shares[0].bytes == 16 << 20)
        #expect(zip(shares, shares.dropFirst()).allSatisfy { $0.bytes >= $1.bytes })
        #expect(shares.allSatisfy { $0.bytes >= 0 })
        #expect(shares.reduce(0) { $0 + floor + $1.bytes } <= bytes)
    }

    @Test("Peers that flood unread streams stay within the budget, and everything arrives once it is read")
    func flood() async throws {
        let (connections, floor, bytes) = (6, 64 << 10, 1 << 20)
        let budget = ReceiveBudget(
            bytes: bytes, connections: connections, floor: floor, initialWindow: 512 << 10, maximumWindow: 512 << 10)
        var limits = Limits.patient
        limits.initialStreamWindow = 1 << 20
        let total = 2 << 20
        var pairs: [(pair: ConnectedPair, near: BatonTransport.Stream, far: BatonTransport.Stream)] = []
        for _ in 0..<connections {
            let pair = try await ConnectedPair(limits: limits, budget: budget)
            let (near, far) = try await pair.stream()
            _ = try await near.write(.pattern(total))
            pairs.append((pair, near, far))
        }
        let promised = bytes - budget.available
        func sent() async throws -> Int {
            var sum = 0
            for entry in pairs { sum += total - (try await entry.near.write(.pattern(0))) }
            return sum
        }
        try await eventually("all that is allowed has been sent") { try await sent() == promised }
        #expect(promised <= bytes)
        // After a round trip on each connection, any further bytes would have come.
        for entry in pairs { _ = try await entry.pair.stream() }
        #expect(try await sent() == promised)

        // Readers that wait for much at once are served even if the window is smaller.
        try await withThrowingTaskGroup(of: Int.self) { group in
            for entry in pairs {
                await entry.near.finish()
                group.addTask {
                    var (count, spent): (Int, Buffer?) = (0, nil)
                    while let buffer = try await entry.far.read(atLeast: Connection.readBound, reusing: spent) {
                        count += buffer.count
                        spent = buffer
                    }
                    return count
                }
            }
            for try await count in group { #expect(count == total) }
        }
        for entry in pairs { await entry.pair.close() }
        pairs = []
        try await eventually("the shares are back") { budget.available == bytes - connections * floor }
    }

    @Test("A connection with an unknown peer has its floor only")
    func strangers() async throws {
        let budget = ReceiveBudget(
            bytes: 1 << 20, connections: 4, floor: 64 << 10, initialWindow: 512 << 10, maximumWindow: 512 << 10)
        let before = budget.available
        #expect(budget.limitingToFloor(Limits()).initialConnectionWindow == 64 << 10)
        #expect(budget.limitingToFloor(Limits()).maximumConnectionWindow == 64 << 10)
        #expect(budget.limitingToFloor(.windows(stream: 1000, connection: 1000)).initialConnectionWindow == 1000)
        let (peer, connection) = try await RawPeer.facing(.acceptor, budget: budget)
        #expect(budget.available == before)
        try await peer.send(Frame.hello())
        try await connection.ready()
        #expect(budget.available < before)
        // A CREDIT of the connection raises the window of the HELLO at once.
        try await eventually("a CREDIT has come") { await peer.frames.contains { $0.type == 0x05 } }
        await connection.close()
        await peer.close()
    }
}
