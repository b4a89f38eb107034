// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages
import BatonTestSupport
import BatonTransport
import Foundation
import Synchronization

/// Offers one activity, whose user info is another one for each device that takes it over.
final class Sending: UserActivityDelegate {
    private let application: Application
    private let activity: UserActivity
    private let seed: Mutex<UInt64>

    init(seed: UInt64) throws {
        application = try Application(.init(identifier: "org.example.sending", name: "Sending", team: "EXAMPLE"))
        activity = try UserActivity(activityType: Probe.type, application: application)
        self.seed = Mutex(seed)
    }

    func run() async throws {
        activity.delegate = self
        activity.title = "Random"
        activity.becomeCurrent()
        await Probe.endOfInput()
        await application.close()
    }

    func userActivityWillSave(_ activity: UserActivity) async {
        let seed = seed.withLock { seed in
            defer { seed += 1 }
            return seed
        }
        var generator = SeededGenerator(seed: seed)
        activity.userInfo = RandomUserInfo.make(&generator)
    }

    func userActivity(_ activity: UserActivity, didFail error: UserActivityError) async {
        Probe.say("failed \(error.code.rawValue) \(error)")
    }
}

/// Takes an activity over again and again.
final class Receiving: ApplicationDelegate {
    private let application: Application
    private let seed: UInt64
    private let arrived = Mutex<UserInfo?>(nil)

    init(seed: UInt64) throws {
        application = try Application(
            .init(
                identifier: "org.example.receiving", name: "Receiving", team: "EXAMPLE",
                continues: [try ContinuedActivityType(Probe.type)]))
        self.seed = seed
    }

    func run(count: Int) async throws {
        application.delegate = self
        application.start()
        for await state in application.nodeState where state == .connected { break }
        let client = try await NodeClient.connect(to: Home(environment: ProcessInfo.processInfo.environment))
        var found: WireActivityListing?
        let activities = try await client.activities(watch: true)
        for try await listing in activities where listing.activity.title == "Random" {
            found = listing
            break
        }
        var request = WireAcceptRequest()
        request.activityID = found?.activity.id ?? Data()
        request.deviceID = found?.deviceID ?? ""
        request.toApplication = true
        let started = ContinuousClock.now
        var same = 0
        for index in 0..<UInt64(count) {
            try await accept(request, over: client)
            var generator = SeededGenerator(seed: seed + index)
            let sent = RandomUserInfo.make(&generator)
            let info = arrived.withLock { $0.take() }
            guard let info, CanonicalUserInfo.bytes(info) == CanonicalUserInfo.bytes(sent) else {
                Probe.say("differs \(generator): \(String(describing: info)) is not \(sent)")
                break
            }
            same += 1
        }
        Probe.say("same \(same) in \(ContinuousClock.now - started)")
        await client.close()
        await Probe.endOfInput()
        await application.close()
    }

    /// One handoff, to its end.
    private func accept(_ request: WireAcceptRequest, over client: NodeClient) async throws {
        let handoff = try await client.accept(request)
        for try await event in handoff.events {
            if case .failed(let failure)? = event.kind { Probe.say("failed \(failure.message)") }
            if case .continued? = event.kind { break }
        }
        await handoff.finish()
    }

    func application(
        _ application: Application, continue activity: UserActivity, restorationHandler: RestorationHandler
    ) async -> Bool {
        arrived.withLock { $0 = activity.userInfo }
        return true
    }
}
