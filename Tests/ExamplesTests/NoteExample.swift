// SPDX-License-Identifier: Apache-2.0

import Baton

/// A note that continues on the user's other devices.
@MainActor
final class Note {
    nonisolated static let editing = "org.example.notes.editing"

    let application: Application
    let activity: UserActivity
    var text = "" { didSet { activity.needsSave = true } }

    init(homeFolder: String? = nil) throws {
        application = try Application(
            Application.Description(
                identifier: "org.example.notes", name: "Notes", team: "EXAMPLE",
                continues: [ContinuedActivityType(Self.editing)]),
            homeFolder: homeFolder)
        activity = try UserActivity(activityType: Self.editing, application: application)
        activity.title = "Shopping"
        activity.requiredUserInfoKeys = ["text"]
        activity.delegate = self
        application.delegate = self
        application.start()
    }

    /// The user has begun to type.
    func edit() {
        activity.becomeCurrent()
    }
}

extension Note: UserActivityDelegate {
    /// A device takes the note over: it gets this text.
    func userActivityWillSave(_ activity: UserActivity) async {
        activity.userInfo = ["text": .string(text)]
    }
}

extension Note: ApplicationDelegate {
    func application(
        _ application: Application, continue activity: UserActivity, restorationHandler: RestorationHandler
    ) async -> Bool {
        guard case .string(let text) = activity.userInfo["text"] else { return false }
        self.text = text
        edit()
        return true
    }
}
