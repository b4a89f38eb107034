// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Glibc
import Testing

@testable import BatonEventLoop

@Suite("Network monitor")
struct NetworkMonitorTests {
    /// The program `ip`, which can change addresses with CAP_NET_ADMIN only.
    static let ip: String? = {
        let places: [String] = ["/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip", "/bin/ip"]
        guard let program = places.first(where: { access($0, X_OK) == 0 }),
            Machine.run(program, ["address", "add", "127.77.1.1/32", "dev", "lo"]) == true
        else { return nil }
        _ = Machine.run(program, ["address", "del", "127.77.1.1/32", "dev", "lo"])
        return program
    }()

    @Test(
        "A new or removed address is reported on the loop",
        .enabled(if: ip != nil, "this needs the right to change network interfaces, and the program ip"))
    func changes() async throws {
        let ip = try #require(Self.ip)
        // A killed run may have left this address.
        _ = Machine.run(ip, ["address", "del", "127.77.1.2/32", "dev", "lo"])
        let loop = EventLoop(name: "test")
        let seen = Box<[InterfaceAddress]?>(nil)
        let onLoop = Box(true)
        let monitor = try NetworkMonitor(on: loop) { addresses in
            if !loop.isCurrent { onLoop.value = false }
            seen.value = addresses
        }
        let extra = try #require(IPAddress("127.77.1.2"))
        #expect(Machine.run(ip, ["address", "add", "127.77.1.2/32", "dev", "lo"]) == true)
        try await eventually("told of the new one") { seen.value?.contains { $0.address == extra } == true }
        #expect(Machine.run(ip, ["address", "del", "127.77.1.2/32", "dev", "lo"]) == true)
        try await eventually("told that it is gone") { seen.value?.contains { $0.address == extra } == false }
        #expect(onLoop.value)
        monitor.cancel()
        monitor.cancel()
    }
}

@Suite("Rate limit of changes")
struct ChangePaceTests {
    @Test("A burst is reported at once, then one change each interval; quiet time refills the burst")
    func rateLimit() {
        var rateLimit = ChangeRateLimit()
        let (start, interval, burst) = (UInt64(1000), ChangeRateLimit.interval, UInt64(ChangeRateLimit.burst))
        for _ in 0..<burst {
            #expect(rateLimit.delay(at: start) == 0)
            rateLimit.record(at: start)
        }
        #expect(rateLimit.delay(at: start) == interval && rateLimit.delay(at: start + interval - 1) == 1)
        for number in 1...10 {
            let now = start + UInt64(number) * interval
            #expect(rateLimit.delay(at: now) == 0)
            rateLimit.record(at: now)
            #expect(rateLimit.delay(at: now) == interval)
        }
        let later = start + 1000 * interval
        for _ in 0..<burst {
            #expect(rateLimit.delay(at: later) == 0)
            rateLimit.record(at: later)
        }
        #expect(rateLimit.delay(at: later) == interval)
    }
}

extension OwnProcess {
    @Suite("Network monitor")
    struct NetworkMonitorResourceTests {
        @Test("It releases its descriptor and its handler")
        func release() async throws {
            await #expect(processExitsWith: .success) {
                let loop = EventLoop(name: "test")
                let warm = try NetworkMonitor(on: loop) { _ in }
                let fired = Box(false)
                let timer = Timer(on: loop) { fired.value = true }
                timer.schedule(after: .zero)
                try await eventually("warm") { fired.value }
                await Machine.warmUp()
                let before = Machine.openDescriptors()
                for round in 0..<20 {
                    let held: WeakBox<Box<Int>>
                    do {
                        let count = Box(0)
                        held = WeakBox(count)
                        let monitor = try NetworkMonitor(on: loop) { _ in count.change { $0 += 1 } }
                        if round % 2 == 0 { monitor.cancel() }
                    }
                    try await eventually("released") { held.isReleased && Machine.openDescriptors() <= before }
                }
                withExtendedLifetime(warm) {}
            }
        }
    }
}
