// SPDX-License-Identifier: Apache-2.0

import Baton
import FoundationEssentials
import Logging

/// Four tabs, one of them shown, and the activities that hand them over.
@MainActor
final class Browser {
    /// The part of a tab that is on its way.
    enum Arrival {
        /// The user has accepted, and nothing has come yet.
        case preparing
        /// The page is shown, and the place in it is on its way.
        case restoring
    }

    /// How long another device may take to tell the place in a page.
    private static let restoringTime = Duration.seconds(10)

    private(set) var shown = TabName.weather { didSet { onChange() } }
    private(set) var arrivals: [TabName: Arrival] = [:] { didSet { onChange() } }
    /// The last activity that came to a tab. The end of an earlier one changes nothing.
    private var latest: [TabName: UserActivity] = [:]
    private var states: [TabName: TabState] = [:] { didSet { onChange() } }
    /// A message for the user, such as the device that continues.
    private(set) var notice = "" { didSet { onChange() } }
    /// Called after every visible change.
    var onChange: () -> Void = {}

    let application: Application
    private var activities: [TabName: UserActivity] = [:]

    init() throws {
        application = try Application(
            Application.Description(
                identifier: "org.baton.monkeybrowser", name: "MonkeyBrowser", team: "BATONSAMPLES",
                continues: TabName.allCases.map { try ContinuedActivityType($0.activityType) }),
            // Standard output is the screen.
            logger: Logger(label: "monkeybrowser") { _ in SwiftLogNoOpLogHandler() })
        for tab in TabName.allCases {
            let activity = try UserActivity(activityType: tab.activityType, application: application)
            activity.requiredUserInfoKeys = ["url"]
            activity.supportsContinuationStreams = true
            activity.delegate = self
            activities[tab] = activity
        }
        application.delegate = self
        application.isInFront = true
        for tab in TabName.allCases { offer(tab) }
        activities[shown]?.becomeCurrent()
    }

    // MARK: What the user does

    /// The user's place in a tab. Another page is another offer.
    subscript(tab: TabName) -> TabState {
        get { states[tab] ?? TabState(tab.home) }
        set {
            let isSamePage = newValue.url == self[tab].url
            states[tab] = newValue
            if !isSamePage { offer(tab) }
        }
    }

    func show(_ tab: TabName) {
        notice = ""
        shown = tab
        activities[tab]?.becomeCurrent()
    }

    /// The user has come to this terminal, or has left it.
    func isInFront(_ isInFront: Bool) {
        application.isInFront = isInFront
        if isInFront { activities[shown]?.becomeCurrent() }
    }

    /// Offers a tab to other devices. The address is all of it, so there is nothing to save later.
    private func offer(_ tab: TabName) {
        let page = Page(self[tab].url)
        activities[tab]?.title = page.title
        activities[tab]?.userInfo = ["url": .url(page.url)]
        do throws(UserActivityError) {
            // A device without this browser opens the page in its own.
            try activities[tab]?.setWebpageURL(page.url)
        } catch {
            notice = "\(tab.title) stays on this device: \(error)."
        }
    }

    private func tab(of type: String) -> TabName? {
        TabName.allCases.first { $0.activityType == type }
    }
}

extension Browser: UserActivityDelegate {
    func userActivityWasContinued(_ activity: UserActivity, by device: ContinuingDevice) async {
        notice = "\(tab(of: activity.activityType)?.title ?? "") goes on at \(device.name)."
    }

    /// The other device has the address, and asks for the place in the page.
    func userActivity(
        _ activity: UserActivity, didReceive inputStream: ContinuationInput, outputStream: ContinuationOutput
    ) async {
        guard let tab = tab(of: activity.activityType) else { return }
        do {
            let state = self[tab]
            try await outputStream.write(state.encoded)
            await outputStream.finish()
            self[tab].share(state)
            // The other device sends nothing. Its end says that it has read all.
            for try await _ in inputStream {}
        } catch let error as UserActivityError where error.code == .userCancelled {
            // The other device's user does not want it any more.
        } catch {
            notice = "\(tab.title) went without its state: \(error)."
        }
    }

    func userActivity(_ activity: UserActivity, didFail error: UserActivityError) async {
        if error.code != .userCancelled { notice = "Not handed over: \(error)." }
    }
}

extension Browser: ApplicationDelegate {
    /// The type names the tab. The page itself is not here yet.
    func application(
        _ application: Application, willContinueUserActivityWithType type: String
    ) async -> WillContinue {
        guard let tab = tab(of: type) else { return .refused("there is no such tab") }
        shown = tab
        arrivals[tab] = .preparing
        return .applicationShowsProgress
    }

    func application(
        _ application: Application, continue activity: UserActivity, restorationHandler: RestorationHandler
    ) async -> Bool {
        guard let tab = tab(of: activity.activityType), case .url(let url) = activity.userInfo["url"] else {
            return false
        }
        if self[tab].url != url { self[tab].go(to: url) }
        show(tab)
        arrivals[tab] = .restoring
        latest[tab] = activity
        let arrived = self[tab]
        // The page is there, and the rest may take its time. The task keeps the activity, and with it the claim on the
        // origin's.
        let restoring = Task { try await restore(tab, as: arrived, from: activity) }
        Task {
            let deadline = Task {
                try await Task.sleep(for: Self.restoringTime)
                restoring.cancel()
            }
            var problem: (any Error)?
            do { try await restoring.value } catch { problem = error }
            deadline.cancel()
            guard latest[tab] === activity else { return }
            latest[tab] = nil
            if arrivals[tab] == .restoring { arrivals[tab] = nil }
            if let problem {
                let reason = restoring.isCancelled ? "the other device did not tell it in time" : "\(problem)"
                notice = "The page has come, without the place in it: \(reason)."
            }
        }
        return true
    }

    private func restore(_ tab: TabName, as arrived: TabState, from activity: UserActivity) async throws {
        let (input, output) = try await activity.continuationStreams()
        await output.finish()
        var data = Data()
        for try await bytes in input {
            data.append(bytes)
            guard data.count <= TabState.sizeBound else { return await input.cancel() }
        }
        // If two activities came to this tab, the later one counts.
        if latest[tab] === activity { restore(tab, as: arrived, to: data) }
    }

    /// - Parameter arrived: the tab when the page had come. A user who has gone on since is not pulled back.
    func restore(_ tab: TabName, as arrived: TabState, to data: Data) {
        guard let state = TabState(data, of: arrived.url), self[tab].isWhere(arrived) else { return }
        guard state.goesOn(from: arrived) else {
            notice = "The page has come. What you have typed into it stays."
            return
        }
        self[tab] = state
        self[tab].share(state)
    }

    func application(
        _ application: Application, didFailToContinueUserActivityWithType type: String, error: UserActivityError
    ) async {
        // An earlier activity may still be restoring its place.
        if let tab = tab(of: type) { arrivals[tab] = latest[tab] == nil ? nil : .restoring }
        if error.code != .userCancelled { notice = "Nothing came: \(error)." }
    }
}
