// SPDX-License-Identifier: Apache-2.0

import Baton
import FoundationEssentials
import Logging

/// Four tabs, one of them shown, and their way to the user's other devices.
@MainActor
final class Browser {
    /// What is on its way to a tab.
    enum Arrival {
        /// The user has accepted; nothing has come yet.
        case preparing
        /// The page is shown, and where the user was in it is on its way.
        case restoring
    }

    /// How long another device may take to tell where the user is in a page.
    private static let restoringTime = Duration.seconds(10)

    private(set) var shown = TabName.weather { didSet { onChange() } }
    private(set) var arrivals: [TabName: Arrival] = [:] { didSet { onChange() } }
    /// The last activity that came to a tab: what ends for one before it is no news of this one.
    private var latest: [TabName: UserActivity] = [:]
    private var states: [TabName: TabState] = [:] { didSet { onChange() } }
    /// What the user should know, such as who continues.
    private(set) var notice = "" { didSet { onChange() } }
    /// Told of everything that the user sees.
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

    /// Where the user is in a tab. Another page is another offer.
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

    /// What other devices see of a tab. The address is all of it, so there is nothing to save later.
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

    /// The other device has the address, and asks where the user is in the page.
    func userActivity(
        _ activity: UserActivity, didReceive inputStream: ContinuationInput, outputStream: ContinuationOutput
    ) async {
        guard let tab = tab(of: activity.activityType) else { return }
        do {
            let state = self[tab]
            try await outputStream.write(state.encoded)
            await outputStream.finish()
            self[tab].share(state)
            // It has nothing to say; its end tells that it has read all.
            for try await _ in inputStream {}
        } catch let error as UserActivityError where error.code == .userCancelled {
            // The user over there does not want it any more.
        } catch {
            notice = "\(tab.title) went without its state: \(error)."
        }
    }

    func userActivity(_ activity: UserActivity, didFail error: UserActivityError) async {
        if error.code != .userCancelled { notice = "Not handed over: \(error)." }
    }
}

extension Browser: ApplicationDelegate {
    /// The type tells which tab it will be; the page itself is not here yet.
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
        // The page is there; the rest may take its time. The task keeps the activity, and with it the way to the
        // origin.
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
        // Of two that came to this tab the later one is what its user wants.
        if latest[tab] === activity { restore(tab, as: arrived, to: data) }
    }

    /// - Parameter arrived: the tab when the page had come: a user who has gone on since is not pulled back.
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
        // What came before may still be on the way to its place.
        if let tab = tab(of: type) { arrivals[tab] = latest[tab] == nil ? nil : .restoring }
        if error.code != .userCancelled { notice = "Nothing came: \(error)." }
    }
}
