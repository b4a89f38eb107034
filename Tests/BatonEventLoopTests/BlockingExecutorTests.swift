// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import Glibc
import SystemPackage
import Testing

/// An actor whose methods may block.
private actor Worker {
    nonisolated let executor: BlockingExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    private var thread: pthread_t?

    init(on executor: BlockingExecutor) { self.executor = executor }

    func isOnThread() -> Bool { executor.isCurrent }

    /// Whether this call runs on the thread of the first one.
    func isOnSameThread() -> Bool {
        if thread == nil { thread = pthread_self() }
        return thread.map { pthread_equal($0, pthread_self()) != 0 } ?? false
    }

    func block(until condition: @Sendable () -> Bool) {
        let deadline = ContinuousClock.now + .seconds(60)
        while !condition(), ContinuousClock.now < deadline { usleep(500) }
    }

    func signalsAreBlocked() -> Bool {
        var mask = sigset_t()
        pthread_sigmask(SIG_SETMASK, nil, &mask)
        return sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGWINCH) == 1
    }
}

@Suite("Blocking executor")
struct BlockingExecutorTests {
    @Test("An actor always runs on the one thread, with signals blocked")
    func oneThread() async throws {
        let executor = try BlockingExecutor(name: "test-blocking")
        #expect(!executor.isCurrent)
        let worker = Worker(on: executor)
        for _ in 0..<100 {
            #expect(await worker.isOnThread())
            #expect(await worker.isOnSameThread())
        }
        #expect(await worker.signalsAreBlocked())
    }

    @Test("A blocked executor does not delay others")
    func blocking() async throws {
        // More executors than there are processors.
        let executors = try (0..<16).map { try BlockingExecutor(name: "test-block-\($0)") }
        let mayGoOn = Box(false)
        let blocked = executors.map { executor in
            Task { await Worker(on: executor).block { mayGoOn.value } }
        }
        let loop = EventLoop(name: "test")
        let ran = Box(false)
        loop.execute { ran.value = true }
        try await eventually("the loop runs") { ran.value }
        #expect(await Worker(on: try BlockingExecutor(name: "test-other")).isOnThread())
        mayGoOn.value = true
        for task in blocked { await task.value }
    }

    @Test("Submitted work runs in order and is done before the thread ends")
    func submitted() async throws {
        let seen = Box<[Int]>([])
        do {
            let executor = try BlockingExecutor(name: "test-submit")
            for number in 0..<500 {
                executor.submit { seen.change { $0.append(number) } }
            }
        }
        try await eventually("all ran") { seen.value.count == 500 }
        #expect(seen.value == Array(0..<500))
    }
}

extension OwnProcess {
    @Suite("Threads")
    struct BlockingExecutorResourceTests {
        @Test("The thread bears the executor's name and ends with its last reference")
        func threadEnds() async throws {
            await #expect(processExitsWith: .success) {
                for _ in 0..<20 {
                    var executors: [BlockingExecutor] = try (0..<8).map { _ in
                        try BlockingExecutor(name: "baton-test-thread")
                    }
                    for executor in executors { #expect(await Worker(on: executor).isOnThread()) }
                    // The kernel's list of threads may skip one while another ends.
                    try await eventually("there are eight") { Machine.threads(named: "baton-test-thre") == 8 }
                    executors = []
                    try await eventually("the threads are gone") { Machine.threads(named: "baton-test-thre") == 0 }
                }
            }
        }

        @Test("A private thread ends with its last reference")
        func privateThreadEnds() async throws {
            await #expect(processExitsWith: .success) {
                for _ in 0..<20 {
                    do {
                        let thread = try PrivateThread(name: "baton-private", waking: EventLoop(name: "test"))
                        await thread.perform {}
                        try await eventually("there is one") { Machine.threads(named: "baton-private") == 1 }
                        withExtendedLifetime(thread) {}
                    }
                    try await eventually("the thread is gone") { Machine.threads(named: "baton-private") == 0 }
                }
            }
        }

        @Test("The last reference may go on the executor's own thread")
        func releasedOnItsOwnThread() async throws {
            await #expect(processExitsWith: .success) {
                let released: WeakBox<BlockingExecutor>
                do {
                    let executor = try BlockingExecutor(name: "baton-own")
                    released = WeakBox(executor)
                    let worker = Worker(on: executor)
                    Task { await worker.block { usleep(20_000) == 0 } }
                }
                try await eventually("released") { released.isReleased && Machine.threads(named: "baton-own") == 0 }
            }
        }
    }
}

@Suite("Private thread")
struct PrivateThreadTests {
    @Test("Work runs on one thread of its own, in order, and answers or fails to the caller on the loop")
    func perform() async throws {
        let loop = EventLoop(name: "test")
        let caller = LoopCaller(loop)
        let thread = try PrivateThread(name: "test-private", waking: loop)
        try await caller.expectAnswers(of: thread)
        await #expect(throws: Errno.permissionDenied) {
            try await thread.perform { () throws(Errno) -> Int in throw .permissionDenied }
        }
        #expect(await thread.perform { 1 } == 1)
    }

    private actor LoopCaller {
        private nonisolated let loop: EventLoop
        nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

        init(_ loop: EventLoop) { self.loop = loop }

        func expectAnswers(of thread: PrivateThread) async throws {
            var threads = Set<pthread_t>()
            for number in 0..<200 {
                let answer = await thread.perform { (number, pthread_self()) }
                #expect(answer.0 == number && answer.1 != pthread_self() && loop.isCurrent)
                threads.insert(answer.1)
            }
            #expect(threads.count == 1)
        }
    }

    @Test("Many callers wait for the one thread")
    func callers() async throws {
        let thread = try PrivateThread(name: "test-private", waking: EventLoop(name: "test"))
        let sum = Box(0)
        await withTaskGroup { group in
            for _ in 0..<400 { group.addTask { await thread.perform { sum.change { $0 += 1 } } } }
        }
        #expect(sum.value == 400)
    }
}
