// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import Dispatch
import Logging
import SystemPackage
import Testing

@testable import BatonAccount
@testable import BatonDiscovery
@testable import BatonNode

/// What a device says of itself, up to the responder, of which there is none here.
@Suite("What is announced", .timeLimit(.minutes(1)))
struct AnnouncerTests {
    @Test("What changed while a rotation waits for the list of activities is said with the salt of the period before")
    func changeBeforeRotation() async throws {
        let account = try TestAccount(devices: 1)
        let device = account.devices[0]
        let (loop, list) = (EventLoop(name: "announcer"), EventLoop(name: "list"))
        let executor = try BlockingExecutor(name: "announcer")
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let discovery = ServiceDiscovery(loop: loop, executor: executor)
        let offers = Offers(
            on: list, files: SharedFiles(path: "/nonexistent/roots", userHome: nil, on: executor, logger: logger)
        ) { _ in }
        let listeners = try PeerListeners(
            isFixed: false, at: [], on: loop, logger: logger
        ) { () throws(SocketError) in try Listener.onAllAddresses(port: 0, on: loop) }
        let announcer = Announcer(
            account: CurrentAccount(device.account), epoch: 1, listeners: listeners, gate: GateKeeper(of: device.id) {},
            offers: offers,
            discovery: discovery, on: loop, logger: logger)
        func salt() async throws -> [UInt8] {
            var record = try #require(await discovery.record)
            return try Array(AdvertisementTXT.blob(in: record.text(isRationed: false)).prefix(16))
        }
        await announcer.publish()
        let old = try await salt()

        // Both wait for the list, which each of them gets when it is let.
        let (change, rotation) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        list.execute { change.wait() }
        let publishing = await begin(announcer) { await $0.publish() }
        list.execute { rotation.wait() }
        let rotating = await begin(announcer) { await $0.rotate() }
        change.signal()
        await publishing.value
        #expect(try await salt() == old, "the name of the old period shows the salt of the new one")
        rotation.signal()
        await rotating.value
        #expect(try await salt() != old)
    }

    /// Starts something, and returns when it waits for somebody else.
    private func begin(
        _ announcer: Announcer, _ work: @escaping @Sendable (isolated Announcer) async -> Void
    ) async -> Task<Void, Never> {
        await withCheckedContinuation { continuation in
            announcer.loop.execute {
                let task = announcer.assumeIsolated { announcer in Task { await work(announcer) } }
                // Behind the first job of the task.
                announcer.loop.execute { continuation.resume(returning: task) }
            }
        }
    }
}
