// SPDX-License-Identifier: Apache-2.0

import Foundation
import TerminalScreen
import Testing

@testable import Baton
@testable import MonkeyBrowser

/// Text that the user typed into MonkeyBrowser, and a page that comes.
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

        // A request of another device is no action of this user.
        browser[.work] = arrived
        browser[.work].share(arrived)
        browser.restore(.work, as: arrived, to: data)
        place.share(place)
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

    @Test("What was typed here alone stays; what came, and was gone on with elsewhere, makes room, and so does a page")
    func halfTyped() async throws {
        let browser = try Browser()
        let type = TabName.work.activityType
        func come(_ url: URL) async throws -> TabState {
            let activity = try UserActivity(activityType: type, application: browser.application)
            activity.userInfo = ["url": .url(url)]
            _ = await browser.application(browser.application, willContinueUserActivityWithType: type)
            #expect(browser.arrivals[.work] == .preparing)
            let handler = RestorationHandler(activity)
            #expect(await browser.application(browser.application, continue: activity, restorationHandler: handler))
            #expect(browser.arrivals[.work] == .restoring)
            return browser[.work]
        }
        /// A note as another device changed it.
        func note(_ text: String, from shared: String = "") throws -> Data {
            var state = TabState(TabName.work.home)
            state.form = TextField(shared)
            state.share(state)
            state.form = TextField(text)
            return try state.encoded
        }
        browser[.work].form = TextField("abc")
        for (text, shared) in [("xyz", ""), ("xyz", "ab"), ("", "")] {
            browser.restore(.work, as: try await come(TabName.work.home), to: try note(text, from: shared))
            #expect(browser[.work].form.text == "abc" && browser.notice.contains("stays"))
        }
        // There, back, and there once more.
        browser.restore(.work, as: try await come(TabName.work.home), to: try note("abcdef", from: "abc"))
        #expect(browser[.work].form.text == "abcdef" && !browser.notice.contains("stays"))
        browser[.work].form = TextField("abcdefx")
        browser.restore(.work, as: try await come(TabName.work.home), to: try note("abcdefgh", from: "abcdef"))
        #expect(browser[.work].form.text == "abcdefx" && browser.notice.contains("stays"))
        var other = TabState(TabName.work.home)
        other.form = TextField("abcdef")
        #expect(browser[.work].goesOn(from: other))
        // It may have gone on since, any number of times, to any device.
        for text in ["abcdefxy", "abcdefxyz"] {
            other = browser[.work]
            browser[.work].share(other)
            browser[.work].form = TextField(text)
            #expect(browser[.work].goesOn(from: other))
        }
        other.form = TextField("abcdefx")
        #expect(browser[.work].goesOn(from: other))
        other.form = TextField("abcdefxq")
        #expect(!browser[.work].goesOn(from: other))
        _ = try await come(TabName.work.home.appending(path: "other"))
        #expect(browser[.work].form.isEmpty && browser[.work].url.lastPathComponent == "other")

        // A second one that is cancelled does not disturb the first, whose place is still on its way.
        _ = await browser.application(browser.application, willContinueUserActivityWithType: type)
        #expect(browser.arrivals[.work] == .preparing)
        await browser.application(
            browser.application, didFailToContinueUserActivityWithType: type,
            error: UserActivityError(.userCancelled, "it was let go"))
        #expect(browser.arrivals[.work] == .restoring)
        await browser.application.close()
    }
}
