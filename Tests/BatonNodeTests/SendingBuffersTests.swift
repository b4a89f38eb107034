// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonNode

@Suite("The buffers of a transfer", .timeLimit(.minutes(1)))
struct SendingBuffersTests {
    private static let capacity = 1024

    private static func fill(_ buffer: Buffer, _ count: Int) -> Buffer {
        buffer.count = count
        return buffer
    }

    @Test("No more are on their way than may be; the first that has gone is used again")
    func bound() async throws {
        let pool = BufferPool(budget: 8 * Self.capacity, bufferCapacity: Self.capacity)
        var buffers = SendingBuffers(of: pool, atMost: 2)
        let first = Self.fill(try await buffers.next { _ in Issue.record("nothing is on its way") }, 100)
        buffers.add(first)
        buffers.add(Self.fill(try await buffers.next { _ in Issue.record("one more may be") }, 50))
        #expect(pool.lentCount == 2)
        var bound: Int?
        let third = try await buffers.next { bound = $0 }
        #expect(bound == 50)
        #expect(third === first)
        #expect(pool.lentCount == 2)
        buffers.add(Self.fill(third, 70))
        // Of the last one something has not gone.
        buffers.release(queued: 1)
        #expect(pool.lentCount == 1)
        buffers.releaseAll()
        #expect(pool.lentCount == 0)
    }

    @Test("Who has one on its way waits for it, and in line only who has none: transfers never wait for each other")
    func noneFree() async throws {
        let pool = BufferPool(budget: 2 * Self.capacity, bufferCapacity: Self.capacity)
        var one = SendingBuffers(of: pool, atMost: 3)
        var other = SendingBuffers(of: pool, atMost: 3)
        one.add(Self.fill(try await one.next { _ in }, 100))
        other.add(Self.fill(try await other.next { _ in }, 100))
        for _ in 0..<3 {
            one.add(Self.fill(try await one.next { #expect($0 == 0) }, 100))
            other.add(Self.fill(try await other.next { #expect($0 == 0) }, 100))
        }
        let waiting = Task {
            var third = SendingBuffers(of: pool, atMost: 3)
            let buffer = try await third.next { _ in Issue.record("nothing of it is on its way") }
            pool.release(buffer)
        }
        try await eventually("it waits in line") { pool.waiterCount == 1 }
        one.releaseAll()
        try await waiting.value
        other.releaseAll()
        #expect(pool.lentCount == 0)
    }
}
