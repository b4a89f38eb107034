// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import Testing

@Suite("Budget of bytes") struct ByteBudgetTests {
    @Test("A reserve stays available whatever others take, and no part exceeds its ceiling")
    func noneStarves() {
        let budget = ByteBudget(bytes: 100)
        let greedy = budget.part(reserved: 10, ceiling: 70)
        let modest = budget.part(reserved: 30, ceiling: 60)
        #expect(greedy.available == 70 && modest.available == 60)
        #expect(greedy.take(70) && !greedy.take(1))
        // 60 bytes were reserved for nobody.
        #expect(budget.available == 0 && budget.held == 100)
        #expect(modest.available == 30 && !modest.take(31) && modest.take(30) && !modest.take(1))
        #expect(budget.held == 100)
        greedy.giveBack(5)
        #expect(modest.take(5) && !modest.take(1) && greedy.available == 0)
        modest.giveBack(35)
        greedy.giveBack(65)
        #expect(budget.held == 40 && budget.available == 60)
    }

    @Test("A lease takes half of what is left, and goes back with its last reference")
    func leases() {
        let part = ByteBudget(bytes: 100).part(reserved: 20, ceiling: 80)
        var first: ByteReservation? = part.lease(atMost: 30)
        let second = part.lease(atMost: 30)
        let third = part.lease(atMost: 30)
        #expect([first?.bytes, second.bytes, third.bytes] == [30, 25, 12])
        #expect(part.held == 67)
        first = nil
        #expect(part.held == 37)
        #expect(part.lease(atMost: 0).bytes == 0)
        withExtendedLifetime((second, third)) {}
    }

    @Test("A reservation takes bytes as it grows, and gives them back with its last reference")
    func growing() {
        let part = ByteBudget(bytes: 100).part(reserved: 20, ceiling: 80)
        var room: ByteReservation? = ByteReservation(in: part)
        #expect(room?.grow(by: 50) == true && room?.grow(by: 31) == false && room?.grow(by: 30) == true)
        #expect(part.held == 80 && room?.bytes == 80)
        room?.shrink(by: 60)
        #expect(part.held == 20 && room?.bytes == 20)
        room = nil
        #expect(part.held == 0)
    }

    @Test("Each owner leaves at least as much as it has for others, however many reservations it makes")
    func owners() {
        let shared = SharedPart(ByteBudget(bytes: 100).part(reserved: 100, ceiling: 100))
        var greedy = [shared.reservation(of: "a"), shared.reservation(of: "a")]
        #expect(greedy[0].grow(by: 30) && greedy[1].grow(by: 20) && !greedy[1].grow(by: 1))
        let second = shared.reservation(of: "b")
        #expect(!second.grow(by: 26) && second.grow(by: 25))
        let third = shared.reservation(of: "c")
        #expect(third.grow(by: 12) && !third.grow(by: 1) && !greedy[0].grow(by: 1))
        #expect(shared.held == 87)
        // It can have again what it gave back.
        greedy.removeLast()
        #expect(shared.held == 67 && third.grow(by: 10) && !third.grow(by: 1))
        greedy = []
        #expect(second.grow(by: 14) && shared.held == 61)
    }

    @Test("For any sequence of takes and returns, the total and the reserves of others hold")
    func anyOrder() {
        let seed = SeededGenerator.chosenSeed
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<100 {
            let budget = ByteBudget(bytes: 1000)
            let parts = (0..<4).map { _ in
                let reserved = Int.random(in: 0...250, using: &generator)
                return budget.part(reserved: reserved, ceiling: Int.random(in: reserved...1000, using: &generator))
            }
            for _ in 0..<300 {
                let part = parts[Int.random(in: parts.indices, using: &generator)]
                if Bool.random(using: &generator) {
                    let (bytes, available) = (Int.random(in: 0...300, using: &generator), part.available)
                    #expect(part.take(bytes) == (bytes <= available), "seed \(seed)")
                } else {
                    part.giveBack(Int.random(in: 0...part.held, using: &generator))
                }
                #expect(budget.held <= budget.ceiling && budget.available >= 0, "seed \(seed)")
                #expect(parts.reduce(0) { $0 + $1.held } <= budget.held, "seed \(seed)")
                #expect(parts.allSatisfy { $0.held <= $0.ceiling }, "seed \(seed)")
                #expect(parts.allSatisfy { $0.held + $0.available >= $0.reserved }, "seed \(seed)")
            }
            for part in parts { part.giveBack(part.held) }
            #expect(budget.available == 1000 - parts.reduce(0) { $0 + $1.reserved }, "seed \(seed)")
        }
    }
}
