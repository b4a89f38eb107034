// SPDX-License-Identifier: Apache-2.0

import Baton
import Foundation
import Logging

/// Offers one activity, whose time is changed.
final class Expiring: UserActivityDelegate {
    private let application: Application
    private let activity: UserActivity

    init() throws {
        application = try Application(
            .init(identifier: "org.example.expiring", name: "Expiring", team: "EXAMPLE"), home: nil,
            logger: Logger(label: "probe"))
        activity = try UserActivity(activityType: Probe.type, application: application)
    }

    func run() async throws {
        activity.delegate = self
        activity.title = "Brief"
        activity.becomeCurrent()
        for await command in Probe.commands() {
            switch command {
            case "brief": activity.expirationDate = Date(timeIntervalSinceNow: 2)
            case "more": activity.expirationDate = nil
            default: Probe.say("brief or more")
            }
        }
        await application.close()
    }

    func userActivity(_ activity: UserActivity, didFail error: UserActivityError) async {
        Probe.say("failed \(error.code.rawValue) \(error)")
    }
}
