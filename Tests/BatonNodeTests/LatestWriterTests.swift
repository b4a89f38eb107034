// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import Foundation
import Testing

@testable import BatonNode

@Suite("What is saved of other devices")
struct LatestWriterTests {
    @Test(
        "While the disk is busy one value waits, the last one, and keeps nothing else from being stored",
        .timeLimit(.minutes(1)))
    func bounded() async throws {
        let storage = try BlockingExecutor(name: "storage")
        let disk = DispatchSemaphore(value: 0)
        let written = Lock<[String]>([])
        let isBusy = Lock(false)
        let writer = LatestWriter<Int>(on: storage) { value in
            if value == 0 {
                isBusy.withLock { $0 = true }
                disk.wait()
            }
            written.withLock { $0.append("\(value)") }
        }
        writer.submit(0)
        try await eventually("the disk is busy") { isBusy.withLock { $0 } }
        for value in 1...1000 { writer.submit(value) }
        storage.submit { written.withLock { $0.append("another") } }
        disk.signal()
        await writer.drain()
        #expect(written.withLock { $0 } == ["0", "another", "1000"])
        writer.submit(1001)
        writer.submit(1002)
        await writer.drain()
        #expect(written.withLock { $0.last } == "1002" && written.withLock { $0.count } <= 5)
    }
}
