import Foundation
import TerminalScreen
import Testing

@testable import Baton
@testable import MonkeyBrowser

/// What MonkeyBrowser does with what its user has typed when a page comes.
@Suite("MonkeyBrowser and its user", .serialized) @MainActor struct BrowserTests {
    @Test("The place in a page is taken up, unless the user has gone on since the page came")
    func goneOn() async throws {
        let browser = try Browser()
        var place = TabState(TabName.work.home)
        place.scroll = 3
        place.form = TextField("other")
        let data = try place.encoded
        let arrived = browser[.work]

        browser[.work].form = TextField("hello")
        browser.restore(.work, as: arrived, to: data)
        #expect(browser[.work].form.text == "hello")
        browser[.work] = arrived
        browser[.work].scroll = 5
        browser.restore(.work, as: arrived, to: data)
        #expect(browser[.work].scroll == 5)

        browser[.work] = arrived
        browser.restore(.work, as: arrived, to: data)
        #expect(browser[.work] == place)
        await browser.application.close()
    }

    @Test("What the other device's user cancelled is no notice; any other failure is one")
    func cancelled() async throws {
        let browser = try Browser()
        let activity = try UserActivity(activityType: TabName.work.activityType, application: browser.application)
        let cancelled = UserActivityError(.userCancelled, "it was let go", device: "desktop")
        await browser.userActivity(activity, didFail: cancelled)
        await browser.application(
            browser.application, didFailToContinueUserActivityWithType: activity.activityType, error: cancelled)
        #expect(browser.notice.isEmpty)
        await browser.userActivity(activity, didFail: UserActivityError(.remoteApplicationTimedOut, "it was late"))
        #expect(browser.notice.contains("it was late"))
        await browser.application.close()
    }

    @Test("What was half-typed here alone into the same page stays; what came, or another page, makes room")
    func halfTyped() async throws {
        let browser = try Browser()
        func come(_ url: URL) async throws {
            let activity = try UserActivity(activityType: TabName.work.activityType, application: browser.application)
            activity.userInfo = ["url": .url(url)]
            _ = await browser.application(
                browser.application, willContinueUserActivityWithType: TabName.work.activityType)
            #expect(browser.arrivals[.work] == .preparing)
            #expect(
                await browser.application(
                    browser.application, continue: activity, restorationHandler: RestorationHandler(activity)))
        }
        browser[.work].form = TextField("hel")
        try await come(TabName.work.home)
        #expect(browser[.work].form.text == "hel" && browser.arrivals[.work] == nil)
        #expect(browser.notice.contains("stays"))

        var place = browser[.work]
        place.form = TextField("hello")
        browser.restore(.work, as: browser[.work], to: try place.encoded)
        try await come(TabName.work.home)
        #expect(!browser.notice.contains("stays"), "\(browser.notice)")
        #expect(browser[.work].form.text == "hello")
        try await come(TabName.work.home.appending(path: "other"))
        #expect(browser[.work].form.isEmpty && browser[.work].url.lastPathComponent == "other")
        // One more that is cancelled takes nothing from the one whose place is still on its way.
        #expect(browser.arrivals[.work] == .restoring)
        let type = TabName.work.activityType
        _ = await browser.application(browser.application, willContinueUserActivityWithType: type)
        #expect(browser.arrivals[.work] == .preparing)
        await browser.application(
            browser.application, didFailToContinueUserActivityWithType: type,
            error: UserActivityError(.userCancelled, "it was let go"))
        #expect(browser.arrivals[.work] == .restoring)
        await browser.application.close()
    }
}
