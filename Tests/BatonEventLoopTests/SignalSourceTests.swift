// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import Glibc
import Testing

extension OwnProcess {
    @Suite("Signal source")
    struct SignalSourceTests {

        @Test("Signals come as events on the loop instead of ending the process")
        func delivery() async throws {
            await #expect(processExitsWith: .success) {
                let loop = EventLoop(name: "test")
                for signal in [SIGTERM, SIGINT, SIGHUP, SIGWINCH] {
                    let count = Box(0)
                    let onLoop = Box(true)
                    let source = await SignalSource.watch(signal, on: loop) {
                        count.change { $0 += 1 }
                        if !loop.isCurrent { onLoop.value = false }
                    }
                    for round in 1...20 {
                        #expect(kill(getpid(), signal) == 0)
                        try await eventually("signal \(signal) came") { count.value == round }
                    }
                    #expect(onLoop.value)
                    withExtendedLifetime(source) {}
                }
            }
        }

        @Test("After the end of a source the signal does nothing, and a new source gets it again")
        func endAndWatchAgain() async throws {
            await #expect(processExitsWith: .success) {
                let loop = EventLoop(name: "test")
                for _ in 0..<10 {
                    let count = Box(0)
                    let source = await SignalSource.watch(SIGTERM, on: loop) { count.change { $0 += 1 } }
                    kill(getpid(), SIGTERM)
                    try await eventually("the signal came") { count.value >= 1 }
                    withExtendedLifetime(source) {}
                }
                let other = Box(false)
                let timer = Timer(on: loop) { other.value = true }
                kill(getpid(), SIGTERM)
                timer.schedule(after: .milliseconds(20))
                try await eventually("still here") { other.value }
            }
        }

        @Test("Two sources of one signal both get it")
        func two() async throws {
            await #expect(processExitsWith: .success) {
                let first = Box(0)
                let second = Box(0)
                let one = await SignalSource.watch(SIGUSR1, on: EventLoop(name: "a")) { first.change { $0 += 1 } }
                let two = await SignalSource.watch(SIGUSR1, on: EventLoop(name: "b")) { second.change { $0 += 1 } }
                kill(getpid(), SIGUSR1)
                try await eventually("both heard") { first.value == 1 && second.value == 1 }
                withExtendedLifetime((one, two)) {}
            }
        }

        @Test("An ignored signal is detected")
        func ignored() async throws {
            await #expect(processExitsWith: .success) {
                #expect(!SignalSource.isIgnored(SIGHUP))
                signal(SIGHUP, SIG_IGN)
                #expect(SignalSource.isIgnored(SIGHUP))
            }
        }

        @Test("A source releases its descriptor and its handler")
        func release() async throws {
            await #expect(processExitsWith: .success) {
                let loop = EventLoop(name: "test")
                let warm = await SignalSource.watch(SIGUSR1, on: loop) {}
                await Machine.warmUp()
                let before = Machine.openDescriptors()
                let held: WeakBox<Box<Int>>
                do {
                    let count = Box(0)
                    held = WeakBox(count)
                    let source = await SignalSource.watch(SIGUSR2, on: loop) { count.change { $0 += 1 } }
                    #expect(Machine.openDescriptors() >= before)
                    withExtendedLifetime(source) {}
                }
                try await eventually("released") { held.isReleased && Machine.openDescriptors() <= before }
                withExtendedLifetime(warm) {}
            }
        }
    }
}
