// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonDocuments

@Suite("Buffer pool")
struct BufferPoolTests {
    @Test func defaultBudgetHolds() {
        let pool = BufferPool()
        #expect(pool.limit == 23)
        #expect(pool.limit * pool.bufferCapacity <= 24 << 20)
        #expect(pool.allocatedCount == 0)
        #expect(BufferPool(budget: 1, bufferCapacity: 1000).limit == 1)
    }

    @Test func itsPartOfABudgetIsKeptAndTheRestGivenBack() async throws {
        let budget = ByteBudget(bytes: 400)
        let other = budget.part(reserved: 100, ceiling: 400)
        let part = budget.part(reserved: 100, ceiling: 300)
        let pool = BufferPool(part: part, bufferCapacity: 100)
        #expect(pool.limit == 3)
        let own = try await pool.acquire()
        let borrowed = try await pool.acquire()
        #expect(other.take(200))
        // One more may be there, but somebody else has the bytes.
        #expect(pool.acquireIfAvailable() == nil && budget.held == 400)
        async let next = pool.acquire()
        #expect(await eventually { pool.waiterCount == 1 })
        pool.release(borrowed)
        let third = try await next
        #expect(third === borrowed)
        // What is common is not kept for later; what is reserved is.
        pool.release(third)
        #expect(pool.allocatedCount == 1 && other.take(100))
        pool.release(own)
        #expect(pool.allocatedCount == 1 && budget.held == 400)
        #expect(pool.acquireIfAvailable() === own)
        pool.release(own)
        pool.trim()
        #expect(pool.allocatedCount == 0 && part.held == 0 && other.held == 300)
    }

    @Test func atTheBoundTheNextWaitsItsTurn() async throws {
        let pool = BufferPool(budget: 200, bufferCapacity: 100)
        let first = try await pool.acquire()
        let second = try await pool.acquire()
        #expect(pool.acquireIfAvailable() == nil)
        async let third = pool.acquire()
        #expect(await eventually { pool.waiterCount == 1 })
        first.count = 7
        pool.release(first)
        let got = try await third
        #expect(got === first)
        #expect(got.count == 0)
        #expect(pool.allocatedCount == 2)
        pool.release(got)
        pool.release(second)
        #expect(pool.lentCount == 0)
        pool.trim()
        #expect(pool.allocatedCount == 0)
    }

    @Test func firstComeFirstServed() async throws {
        let pool = BufferPool(budget: 1, bufferCapacity: 1)
        let only = try await pool.acquire()
        let order = OrderedResults()
        await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<5 {
                group.addTask {
                    let buffer = try await pool.acquire()
                    await order.append(number)
                    pool.release(buffer)
                }
                #expect(await eventually { pool.waiterCount == number + 1 })
            }
            pool.release(only)
        }
        #expect(await order.values == [0, 1, 2, 3, 4])
    }

    @Test func cancelledWaiterLeavesTheLine() async throws {
        let pool = BufferPool(budget: 1, bufferCapacity: 1)
        let only = try await pool.acquire()
        let waiting = Task { try await pool.acquire() }
        #expect(await eventually { pool.waiterCount == 1 })
        waiting.cancel()
        #expect(await DocumentFixture.code { _ = try await waiting.value } == .cancelled)
        #expect(pool.waiterCount == 0)
        pool.release(only)
        #expect(pool.acquireIfAvailable() === only)
    }

    @Test func cancelledBeforeAskingGetsNothing() async throws {
        let pool = BufferPool(budget: 1, bufferCapacity: 1)
        let task = Task {
            try? await Task.sleep(for: .seconds(3600))
            return try await pool.acquire()
        }
        task.cancel()
        #expect(await DocumentFixture.code { _ = try await task.value } == .cancelled)
        #expect(pool.lentCount == 0)
    }

    @Test(.timeLimit(.minutes(5)), arguments: [2, BufferPool.defaultWaiterLimit])
    func theLineIsBounded(_ limit: Int) async throws {
        let pool = BufferPool(budget: 1, bufferCapacity: 1, waiterLimit: limit)
        let only = try await pool.acquire()
        let waiting = (0..<limit).map { _ in Task { pool.release(try await pool.acquire()) } }
        #expect(await eventually { pool.waiterCount == limit })
        #expect(await DocumentFixture.code { _ = try await pool.acquire() } == .busy)
        pool.release(only)
        for task in waiting { try await task.value }
        #expect(pool.lentCount == 0)
    }

    @Test func foreignAndDoubleReleasesAreIgnored() async throws {
        let pool = BufferPool(budget: 2, bufferCapacity: 1)
        pool.release(Buffer(capacity: 1))
        let buffer = try await pool.acquire()
        pool.release(buffer)
        pool.release(buffer)
        #expect(pool.allocatedCount == 1)
        #expect(pool.lentCount == 0)
    }

    @Test func manyTasksNeverExceedTheBudget() async throws {
        let pool = BufferPool(budget: 3, bufferCapacity: 1, waiterLimit: 100)
        let excess = OrderedResults()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<50 {
                group.addTask {
                    let task = Task {
                        for _ in 0..<50 {
                            let buffer = try await pool.acquire()
                            if pool.allocatedCount > 3 { await excess.append(number) }
                            await Task.yield()
                            pool.release(buffer)
                        }
                    }
                    if number % 3 == 0 { task.cancel() }
                    _ = await task.result
                }
            }
        }
        #expect(await excess.values.isEmpty)
        #expect(pool.lentCount == 0)
        #expect(pool.waiterCount == 0)
    }
}

/// The results of concurrent tasks, in order.
actor OrderedResults {
    private(set) var values: [Int] = []

    func append(_ value: Int) {
        values.append(value)
    }
}
