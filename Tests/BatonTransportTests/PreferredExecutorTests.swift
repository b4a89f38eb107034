// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import Dispatch
import Testing

@testable import BatonTransport

/// An executor that runs tasks on threads of its own, as an application may prefer (SE-0417).
private final class OwnExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "baton.test.preferred", attributes: .concurrent)
    private let jobs = Lock(0)

    /// The number of jobs that it was given.
    var jobCount: Int { jobs.withLock { $0 } }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0 += 1 }
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// A task leaves the connection's actor to wait. A task that prefers an executor does so at each `await`, so the event
/// may come between its check and its wait.
@Suite("Tasks that prefer an executor", .timeLimit(.minutes(3)))
struct PreferredExecutorTests {
    private let executor = OwnExecutor()

    @Test("Lose no wake-up: every byte comes back", arguments: [1, 4])
    func echo(streams: Int) async throws {
        let rounds = 4000 / streams
        let pair = try await ConnectedPair()
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<streams {
                let (asker, answerer) = try await pair.stream()
                group.addTask(executorPreference: executor) {
                    while let buffer = try await answerer.read() {
                        try await answerer.write(Buffer(copying: buffer.bytes), queueBound: 0)
                    }
                    await answerer.finish()
                    return 0
                }
                group.addTask(executorPreference: executor) {
                    var echoed = 0
                    for _ in 0..<rounds {
                        try await asker.write(.pattern(1), queueBound: 0)
                        echoed += try await asker.read()?.count ?? 0
                    }
                    await asker.finish()
                    while try await asker.read() != nil {}
                    return echoed
                }
            }
            #expect(try await group.reduce(0, +) == streams * rounds)
        }
        await pair.close()
    }

    @Test("Run one job for each wait, and none more on the way to the connection")
    func wakes() async throws {
        let pair = try await ConnectedPair()
        let (asker, answerer) = try await pair.stream()
        let rounds = 200
        let received = Lock(0)
        let reading = Task(executorPreference: executor) {
            while let buffer = try await answerer.read() { received.withLock { $0 += buffer.count } }
        }
        for number in 1...rounds {
            try await asker.write(.pattern(1))
            try await eventually("read") { received.withLock { $0 } == number }
        }
        await asker.finish()
        try await reading.value
        // One job for its beginning, each byte and the END.
        #expect(executor.jobCount <= rounds + 2)
        await pair.close()
    }

    @Test("Are cancelled while they wait")
    func cancelled() async throws {
        let pair = try await ConnectedPair()
        let (asker, answerer) = try await pair.stream()
        for _ in 0..<500 {
            let reading = Task(executorPreference: executor) { await failure { _ = try await answerer.read() } }
            reading.cancel()
            #expect(await reading.value == .cancelled)
        }
        withExtendedLifetime(asker) {}
        await pair.close()
    }
}
