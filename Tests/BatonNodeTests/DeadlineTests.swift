// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonTestSupport
import Testing

@testable import BatonNode

@Suite("Deadlines", .serialized, .timeLimit(.minutes(2)))
struct DeadlineTests {
    /// Hangs as a disk does: no cancellation ends it.
    private final class Disk: Sendable {
        private let waiting = Lock<[CheckedContinuation<Void, Never>]>([])

        var count: Int { waiting.withLock { $0.count } }

        func use() async { await withCheckedContinuation { call in waiting.withLock { $0.append(call) } } }

        func answer() {
            for call in waiting.withLock({ $0 }) { call.resume() }
            waiting.withLock { $0 = [] }
        }
    }

    private func code(_ operation: () async throws -> Void) async -> HandoffError.Code? {
        do {
            try await operation()
            return nil
        } catch {
            return (error as? HandoffError)?.code
        }
    }

    @Test("An operation that does not end is left at its deadline, and counted until it ends")
    func abandoned() async throws {
        let disk = Disk()
        let before = AbandonedOperations.shared.count
        let start = ContinuousClock.now
        let result = await code { try await withDeadline(.milliseconds(200), "it was not read") { await disk.use() } }
        #expect(result == .timedOut)
        #expect(ContinuousClock.now - start >= .milliseconds(200))
        #expect(disk.count == 1, "it goes on")
        #expect(AbandonedOperations.shared.count == before + 1)
        disk.answer()
        try await eventually("it is not counted any more") { AbandonedOperations.shared.count == before }
    }

    @Test("A cancelled caller waits no longer than the deadline either")
    func cancelled() async throws {
        let disk = Disk()
        let waiting = Task { try await withDeadline(.milliseconds(200), "it was not read") { await disk.use() } }
        try await eventually("it is read") { disk.count == 1 }
        waiting.cancel()
        let error = await #expect(throws: HandoffError.self) { try await waiting.value }
        #expect(error?.code == .timedOut)
        disk.answer()
        // An operation that obeys is not waited for.
        let sleeping = Task {
            try await withDeadline(.seconds(600), "it did not wake up") { try await Task.sleep(for: .seconds(600)) }
        }
        sleeping.cancel()
        let cancellation = await #expect(throws: HandoffError.self) { try await sleeping.value }
        #expect(cancellation?.code == .cancelled)
    }

    @Test("What is done late comes before the cancellation, and an operation that obeys has ended")
    func late() async throws {
        let order = Lock<[String]>([])
        let result = await code {
            try await withDeadline(
                .milliseconds(50), "it did not wake up", late: { order.withLock { $0.append("late") } }
            ) {
                do {
                    try await Task.sleep(for: .seconds(600))
                } catch {
                    order.withLock { $0.append("cancelled") }
                    throw error
                }
            }
        }
        #expect(result == .timedOut)
        #expect(order.withLock { $0 } == ["late", "cancelled"])
    }

    @Test("So many operations of one call are abandoned at once, and others are not kept from theirs")
    func bound() async throws {
        let disk = Disk()
        @Sendable func read() async -> HandoffError.Code? {
            await code { try await withDeadline(.milliseconds(50), "it was not read") { await disk.use() } }
        }
        #expect(AbandonedOperations.bound == 32)
        await withTaskGroup { group in
            for _ in 0..<AbandonedOperations.bound { group.addTask { #expect(await read() == .timedOut) } }
        }
        #expect(disk.count == AbandonedOperations.bound)
        #expect(await read() == .timedOut)
        #expect(disk.count == AbandonedOperations.bound, "one more was not begun")
        #expect(await code { try await withDeadline(.seconds(60), "it was not read") {} } == nil)
        disk.answer()
        try await eventually("the disk is used again") {
            _ = await read()
            return disk.count > 0
        }
        disk.answer()
    }

    @Test("A value and an error come through")
    func outcomes() async throws {
        #expect(try await withDeadline(.seconds(60), "it was not read") { 7 } == 7)
        let error = await #expect(throws: HandoffError.self) {
            try await withDeadline(.seconds(60), "it was not read") { throw HandoffError(.corrupted, "it is broken") }
        }
        #expect(error?.code == .corrupted)
    }
}
