// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonEventLoop
import BatonMessages
import Testing

@testable import BatonNode

@Suite("Bounded waits of a transfer", .timeLimit(.minutes(5)))
struct StallWatchTests {
    /// A wait that only a cancellation or ``open()`` ends.
    private final class Gate: Sendable {
        private let stream: AsyncStream<Void>
        private let continuation: AsyncStream<Void>.Continuation

        init() {
            (stream, continuation) = AsyncStream.makeStream()
        }

        func open() { continuation.finish() }

        func wait() async throws {
            for await () in stream {}
            try Task.checkCancellation()
        }
    }

    @Test("A wait that takes too long is cancelled, and is what the error names")
    func stalls() async throws {
        let error = await #expect(throws: HandoffError.self) {
            try await withStallWatch(.milliseconds(50)) { watch in
                try await watch.bound("the first one did not end") {}
                try await watch.bound("the second one did not end") { try await Gate().wait() }
            }
        }
        #expect(error?.code == .timedOut)
        #expect(error?.message == "the second one did not end within 0 s")
    }

    @Test("What ends a wait by itself is told as what it is")
    func failures() async throws {
        let full = await #expect(throws: HandoffError.self) {
            try await withStallWatch(.seconds(60)) { watch in
                try await watch.bound("it did not end") { throw DocumentError(.destinationFull, "film") }
            }
        }
        #expect(full?.code == .destinationFull)
        let changed = await #expect(throws: HandoffError.self) {
            try await withStallWatch(.seconds(60)) { _ in throw DocumentError(.sourceChanged, "film") }
        }
        #expect(changed?.code == .documentChanged)
    }

    @Test("It is the wait that is bounded and not the transfer: neither many waits nor what comes between two of them")
    func manyWaits() async throws {
        let limit = Duration.milliseconds(1500)
        let start = ContinuousClock.now
        let count = try await withStallWatch(limit) { watch in
            var count = 0
            // Twice at least, however late its turn comes.
            while count < 2 || ContinuousClock.now - start < limit * 2 {
                try await watch.bound("it did not end") { try await Task.sleep(for: .milliseconds(1)) }
                count += 1
            }
            // Nothing is waited for here, and longer than a wait may take.
            try await Task.sleep(for: limit + limit / 5)
            try await watch.bound("it did not end") { try await Task.sleep(for: .milliseconds(1)) }
            return count
        }
        #expect(count > 1)
    }

    @Test("A wait that can end with less is asked to, and nothing is given up")
    func shortens() async throws {
        let gate = Gate()
        let shorten: @Sendable () async -> Void = { gate.open() }
        try await withStallWatch(.milliseconds(50), shortening: shorten) { watch in
            try await watch.bound("it did not end") { try await gate.wait() }
        }
    }

    @Test("A transfer that does not end then either is given up")
    func shorteningHelpsNothing() async throws {
        let asked = Lock(0)
        let shorten: @Sendable () async -> Void = { asked.withLock { $0 += 1 } }
        let error = await #expect(throws: HandoffError.self) {
            try await withStallWatch(.milliseconds(50), shortening: shorten) { watch in
                try await watch.bound("it did not end") { try await Gate().wait() }
            }
        }
        #expect(error?.code == .timedOut)
        #expect(asked.withLock { $0 } == 1)
    }

    @Test("A wait that ended well just when it was given up ends the transfer as one that took too long")
    func endsTooLate() async throws {
        let error = await #expect(throws: HandoffError.self) {
            try await withStallWatch(.milliseconds(50)) { watch in
                try await watch.bound("it did not end") {
                    try? await Task.sleep(for: .seconds(3600))
                }
                try Task.checkCancellation()
            }
        }
        #expect(error?.code == .timedOut)
    }

    @Test("An error of the operation is its own")
    func errors() async throws {
        let error = await #expect(throws: HandoffError.self) {
            try await withStallWatch(.seconds(60)) { watch in
                try await watch.bound("it did not end") { throw HandoffError(.corrupted, "broken") }
            }
        }
        #expect(error?.code == .corrupted)
    }

    @Test("A cancelled transfer ends its wait")
    func cancelled() async throws {
        let (began, beginning) = AsyncStream<Void>.makeStream()
        let task = Task {
            try await withStallWatch(.seconds(3600)) { watch in
                try await watch.bound("it did not end") {
                    beginning.finish()
                    try await Gate().wait()
                }
            }
        }
        for await () in began {}
        task.cancel()
        let error = await #expect(throws: HandoffError.self) { try await task.value }
        #expect(error?.code == .cancelled)
    }
}
