// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import Dispatch
import Foundation
import Glibc
import Testing

@testable import BatonCLI

/// The messages of a node to the service manager, on a real socket.
@Suite("Notifications of the service manager", .timeLimit(.minutes(3)))
struct NotifyTests {
    @Test("A node says that it is ready, that it works, and that it stops")
    func node() async throws {
        let folder = try ScratchFolder("notify")
        defer { folder.remove() }
        let socket = try NotifySocket(in: folder.path)
        let made = try await BuiltCommand.run(["account", "create"], home: folder.path)
        try #require(made.status == 0, "\(made.errors)")
        let node = try BuiltNode(
            ["BATON_HOME": folder.path, "NOTIFY_SOCKET": socket.path, "WATCHDOG_USEC": "200000"], in: folder.path)
        try await eventually("the node says three times that it works: \(node.said)") {
            socket.count("WATCHDOG=1") >= 3
        }
        #expect(socket.messages.first == "READY=1" && node.said.contains("ready on port"))
        node.send(SIGTERM)
        #expect(await node.end() == 0)
        #expect(socket.count("READY=1") == 1 && socket.count("STOPPING=1") == 1)
    }

    @Test("A loop that hangs says nothing until it turns again")
    func hang() async throws {
        let folder = try ScratchFolder("notify")
        defer { folder.remove() }
        let (hanging, turning) = (EventLoop(name: "hanging"), EventLoop(name: "turning"))
        let sockets = (try NotifySocket(in: folder.path, "hanging"), try NotifySocket(in: folder.path, "turning"))
        let watching = try [(hanging, sockets.0), (turning, sockets.1)].map { loop, socket in
            let watchdog = try #require(
                Watchdog(environment: ["NOTIFY_SOCKET": socket.path, "WATCHDOG_USEC": "20000"]))
            return Task { try await watchdog.run { await loop.turn() } }
        }
        defer { for task in watching { task.cancel() } }
        try await eventually("the loop works") { sockets.0.count("WATCHDOG=1") >= 2 }

        let (hold, release) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        hanging.execute {
            hold.signal()
            release.wait()
        }
        await Task.detached { Self.wait(hold) }.value
        // A message may be on its way when the loop begins to hang.
        let before = sockets.0.count("WATCHDOG=1") + 1
        let others = sockets.1.count("WATCHDOG=1")
        try await eventually("the other loop works") { sockets.1.count("WATCHDOG=1") >= others + 10 }
        #expect(sockets.0.count("WATCHDOG=1") <= before)
        release.signal()
        try await eventually("the loop works again") { sockets.0.count("WATCHDOG=1") > before }
    }

    private static func wait(_ semaphore: DispatchSemaphore) { semaphore.wait() }

    @Test("Only a process that systemd watches sends messages, twice in the time that it has")
    func environment() {
        let socket = ["NOTIFY_SOCKET": "/run/notify"]
        #expect(Watchdog(environment: socket) == nil)
        #expect(Watchdog(environment: ["WATCHDOG_USEC": "60000000"]) == nil)
        for time in ["", "0", "-1", "1", "soon", "99999999999999999999"] {
            #expect(Watchdog(environment: socket.merging(["WATCHDOG_USEC": time]) { $1 }) == nil)
        }
        let watched = socket.merging(["WATCHDOG_USEC": "60000000"]) { $1 }
        #expect(Watchdog(environment: watched)?.interval == .seconds(30))
        #expect(Watchdog(environment: watched.merging(["WATCHDOG_PID": "\(getpid())"]) { $1 }) != nil)
        #expect(Watchdog(environment: watched.merging(["WATCHDOG_PID": "1"]) { $1 }) == nil)
    }
}
