// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import Dispatch
import Testing

@testable import BatonWeb

struct FetchThreadsTests {
    /// Work that waits until it is released, and is counted.
    private final class Gate: Sendable {
        struct Counts {
            var running = 0
            var most = 0
            var done = 0
        }
        private let counts = Lock(Counts())
        private let semaphore = DispatchSemaphore(value: 0)

        var now: Counts { counts.withLock { $0 } }

        func work() {
            counts.withLock { counts in
                counts.running += 1
                counts.most = max(counts.most, counts.running)
            }
            semaphore.wait()
            counts.withLock { counts in
                counts.running -= 1
                counts.done += 1
            }
        }

        func open(_ count: Int) {
            for _ in 0..<count { semaphore.signal() }
        }
    }

    @Test func queueAtTheBound() async throws {
        let threads = FetchThreads()
        let gate = Gate()
        let all = FetchThreads.maximumThreads + FetchThreads.maximumQueue
        for _ in 0..<all { try threads.submit { gate.work() } }
        #expect(throws: SiteAssociationError.self) { try threads.submit { gate.work() } }
        try await eventually("both threads work") { gate.now.running == FetchThreads.maximumThreads }
        gate.open(1)
        try await eventually("one is done") { gate.now.done == 1 && gate.now.running == FetchThreads.maximumThreads }
        // There is room for one more.
        try threads.submit { gate.work() }
        #expect(throws: SiteAssociationError.self) { try threads.submit { gate.work() } }
        gate.open(all)
        try await eventually("all is done") { gate.now.done == all + 1 }
        #expect(gate.now.most == FetchThreads.maximumThreads)
        // And from the beginning, with new threads.
        try threads.submit { gate.work() }
        gate.open(1)
        try await eventually("it begins again") { gate.now.done == all + 2 }
    }

    @Test func waitingInTheQueueCountsAsTime() async throws {
        let site = try await Site([Site.newPath: .init(mode: "silent")])
        var configuration = site.configuration
        configuration.time = .seconds(3)
        let fetcher = SiteAssociationFetcher(configuration)
        let start = ContinuousClock.now
        let codes = await withTaskGroup(of: SiteAssociationError.Code?.self) { group in
            for _ in 0..<(FetchThreads.maximumThreads + FetchThreads.maximumQueue + 2) {
                group.addTask {
                    do throws(SiteAssociationError) {
                        _ = try await fetcher.association(of: site.host)
                        return nil
                    } catch {
                        return error.code
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes.count { $0 == .busy } == 2)
        #expect(codes.count { $0 == .timedOut } == FetchThreads.maximumThreads + FetchThreads.maximumQueue)
        // One after another they would take 27 s.
        #expect(ContinuousClock.now - start < .seconds(18))
    }
}
