// SPDX-License-Identifier: Apache-2.0

import Baton

/// Offers an activity that several objects share.
final class Sharing: ApplicationDelegate, UserActivityDelegate {
    private let application: Application
    private let activity: UserActivity

    init() throws {
        application = try Application(.init(identifier: "org.example.sharing", name: "Sharing", team: "EXAMPLE"))
        activity = try UserActivity(activityType: Probe.type, application: application)
    }

    func run() async throws {
        application.delegate = self
        activity.delegate = self
        activity.title = "Shared"
        activity.targetContentIdentifier = "second"
        // Gone with the first save: responders begin with nothing.
        activity.userInfo = ["stale": true]
        let editors = [Editor("left"), Editor("right")]
        var links = editors.map { activity.attach($0) }
        activity.becomeCurrent()
        for await command in Probe.commands() {
            switch command {
            case "resign": activity.resignCurrent()
            case "current": activity.becomeCurrent()
            case "leave" where !links.isEmpty: links.removeFirst()
            default: Probe.say("resign, current or leave")
            }
            Probe.say(
                "\(command): \(activity.isInvalidated ? "invalidated" : activity.isCurrent ? "current" : "resigned")")
        }
        withExtendedLifetime((editors, links)) {}
        await application.close()
    }

    func userActivityWillSave(_ activity: UserActivity) async { Probe.say("willSave \(names(activity))") }

    func application(_ application: Application, didUpdate activity: UserActivity) async {
        Probe.say("didUpdate \(names(activity))")
        activity.addUserInfoEntries(from: ["updated": true])
    }

    func userActivityWasContinued(_ activity: UserActivity, by device: ContinuingDevice) async {
        Probe.say("continued by \(device.name)")
    }
}

/// A part of an application that shares an activity.
private final class Editor: UserActivityResponder {
    private let name: String

    init(_ name: String) { self.name = name }

    func updateUserActivityState(_ activity: UserActivity) async {
        Probe.say("update \(name): \(names(activity))")
        activity.addUserInfoEntries(from: [name: 1])
    }
}

/// Continues activities in the window that they are for.
final class Restoring: ApplicationDelegate {
    private let application: Application
    private let windows: [Window]

    init(targets: [String]) throws {
        application = try Application(
            .init(
                identifier: "org.example.restoring", name: "Restoring", team: "EXAMPLE",
                continues: [try ContinuedActivityType(Probe.type)]))
        windows = targets.map(Window.init)
    }

    func run() async throws {
        application.delegate = self
        application.start()
        for await state in application.nodeState where state == .connected { break }
        Probe.say("connected")
        await Probe.endOfInput()
        await application.close()
    }

    func application(
        _ application: Application, continue activity: UserActivity, restorationHandler: RestorationHandler
    ) async -> Bool {
        await restorationHandler(windows)
        Probe.say("handled")
        return true
    }
}

private final class Window: UserActivityRestoring {
    let targetContentIdentifier: String?

    init(_ target: String) { targetContentIdentifier = target }

    func restoreUserActivityState(_ activity: UserActivity) async {
        Probe.say("restored \(targetContentIdentifier ?? ""): \(names(activity))")
    }
}

/// The names in an activity's user info.
private func names(_ activity: UserActivity) -> String {
    activity.userInfo.entries.keys.sorted().joined(separator: ",")
}
