// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages
import BatonTestSupport
import FoundationEssentials
import SwiftProtobuf
import Testing

@Suite("Life of an activity")
struct LifeCycleTests {
    @Test("It is offered after it first became current, with all it has")
    func firstBecomesCurrent() async throws {
        let stage = try await Stage()
        let activity = try stage.activity()
        activity.title = "Shopping"
        activity.userInfo = ["page": 3, "tags": .set(["a"])]
        activity.requiredUserInfoKeys = ["page"]
        try activity.setWebpageURL(URL(string: "https://example.org/list"))
        try activity.setReferrerURL(URL(string: "https://example.org/"))
        activity.targetContentIdentifier = "list-1"
        activity.supportsContinuationStreams = true
        activity.isExclusive = true
        activity.version = 3
        activity.expirationDate = Date(timeIntervalSince1970: 4_000_000_000)
        activity.document = URL(filePath: "/tmp/a b.txt")
        // Another one comes and goes after it, so that the node had time for the first if it were told.
        let other = try stage.activity("org.example.notes.other")
        other.becomeCurrent()
        #expect(try await stage.offered(1).first?.request.type == "org.example.notes.other")
        other.resignCurrent()
        _ = try await stage.offered(0)
        #expect(await stage.node.offers.count == 1)

        activity.becomeCurrent()
        let offer = try #require(try await stage.offered(1).first?.request)
        #expect(offer.type == Stage.editing && offer.title == "Shopping")
        #expect(try UserInfo(offer.userInfo) == activity.userInfo)
        #expect(offer.requiredUserInfoKeys == ["page"])
        #expect(offer.webPageURL == "https://example.org/list" && offer.referrerURL == "https://example.org/")
        #expect(offer.targetContentIdentifier == "list-1")
        #expect(offer.supportsContinuationStreams && offer.exclusive && offer.needsSave)
        #expect(offer.version == 3 && offer.expires == 4_000_000_000)
        #expect(String(decoding: offer.documentPath, as: UTF8.self) == "/tmp/a b.txt")
        #expect(offer.application == "org.example.notes" && offer.team == "T1" && offer.activityID.count == 16)
    }

    @Test("One activity is current: the newest; the one before resigns")
    func oneIsCurrent() async throws {
        let stage = try await Stage()
        let (first, second) = (try stage.activity("org.example.first"), try stage.activity("org.example.second"))
        first.becomeCurrent()
        _ = try await stage.offered(1)
        second.becomeCurrent()
        #expect(second.isCurrent && !first.isCurrent)
        try await eventually("the second is offered alone") {
            await stage.node.offered.map(\.request.type) == ["org.example.second"]
        }
        first.becomeCurrent()
        try await eventually("the first again, under its own identifier") {
            let (offered, all) = (await stage.node.offered, await stage.node.offers)
            return offered.map(\.request.type) == ["org.example.first"]
                && offered.first?.request.activityID == all.first?.request.activityID
        }
        // Becoming current again makes it the newest of the device.
        first.becomeCurrent()
        try await eventually("an update") { await stage.node.offers.last?.updates.count == 1 }
        #expect(await stage.node.offers.last?.updates.first?.becomesCurrent == true)
        first.resignCurrent()
        second.resignCurrent()
        _ = try await stage.offered(0)
    }

    @Test("Invalidated, it is gone for good")
    func invalidated() async throws {
        let stage = try await Stage()
        let activity = try stage.activity()
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        activity.invalidate()
        _ = try await stage.offered(0)
        activity.becomeCurrent()
        #expect(!activity.isCurrent && activity.isInvalidated)
        let other = try stage.activity("org.example.other")
        other.becomeCurrent()
        _ = try await stage.offered(1)
        #expect(await stage.node.offers.count == 2)
    }

    @Test("Let go, it is withdrawn")
    func letGo() async throws {
        let stage = try await Stage()
        weak var released: UserActivity?
        do {
            let activity = try stage.activity()
            released = activity
            activity.becomeCurrent()
            _ = try await stage.offered(1)
            withExtendedLifetime(activity) {}
        }
        _ = try await stage.offered(0)
        try await eventually("released") { released == nil }
    }

    @Test("Expired, it is never offered")
    func expiry() async throws {
        let stage = try await Stage()
        let expired = try stage.activity("org.example.expired")
        expired.expirationDate = Date(timeIntervalSinceNow: -1)
        expired.becomeCurrent()
        let other = try stage.activity("org.example.other")
        other.expirationDate = Date(timeIntervalSinceNow: 600)
        other.becomeCurrent()
        #expect(try await stage.offered(1).map(\.request.type) == ["org.example.other"])
        expired.becomeCurrent()
        _ = try await stage.offered(0)
        #expect(await stage.node.offers.map(\.request.type) == ["org.example.other"])
    }

    @Test("One that the node withdraws because it has expired is offered again once it has more time")
    func prolonged() async throws {
        let stage = try await Stage()
        let activity = try stage.activity()
        let expiry = Date(timeIntervalSinceNow: 0.5)
        activity.expirationDate = expiry
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        try await eventually("it has expired") { Date() > expiry }
        try await stage.node.withdraw()
        _ = try await stage.offered(0)
        #expect(activity.isCurrent)
        activity.expirationDate = nil
        _ = try await stage.offered(1)
        #expect(await stage.node.offers.count == 2)
    }

    @Test("Eligibility and streams can be switched at any time")
    func switches() async throws {
        let stage = try await Stage()
        let activity = try stage.activity()
        activity.isEligibleForHandoff = false
        activity.becomeCurrent()
        activity.isEligibleForHandoff = true
        _ = try await stage.offered(1)
        activity.isEligibleForHandoff = false
        _ = try await stage.offered(0)
        #expect(activity.isCurrent)
        activity.isEligibleForHandoff = true
        #expect(try await stage.offered(1).first?.request.supportsContinuationStreams == false)
        activity.supportsContinuationStreams = true
        try await eventually("said") { await stage.node.offered.first?.latest.supportsContinuationStreams == true }
    }

    @Test("A burst of changes goes out as one")
    func coalescing() async throws {
        var deadlines = ApplicationDeadlines()
        deadlines.coalescing = .milliseconds(400)
        let stage = try await Stage(deadlines: deadlines)
        let activity = try stage.activity()
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        for page in 1...100 {
            activity.title = "Page \(page)"
            activity.addUserInfoEntries(from: ["page": .integer(Int64(page)), "\(page)": true])
        }
        try await eventually("the last title") { await stage.node.offered.first?.latest.title == "Page 100" }
        let updates = try #require(await stage.node.offered.first?.updates)
        #expect(updates.count == 1)
        #expect(updates.first?.becomesCurrent == false)
        #expect(try UserInfo(try #require(updates.first).offer.userInfo) == activity.userInfo)
        // Setting an equal value is no change.
        activity.title = "Page 100"
        activity.version = 1
        try await eventually("the next change") { await stage.node.offered.first?.latest.version == 1 }
        #expect(await stage.node.offered.first?.updates.count == 2)
    }

    @Test("Withdrawn by the user, it stays so until it becomes current again")
    func withdrawnByUser() async throws {
        let stage = try await Stage()
        let activity = try stage.activity()
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        try await stage.node.withdraw()
        _ = try await stage.offered(0)
        activity.title = "changed"
        stage.application.isInFront = true
        try await eventually("looked at again") { await stage.node.registrations.last?.inFront == true }
        #expect(await stage.node.offers.count == 1)
        activity.becomeCurrent()
        #expect(try await stage.offered(1).first?.request.title == "changed")
    }

    @Test("What the node refuses is told, and offered again when it has changed")
    func refusedByNode() async throws {
        let stage = try await Stage()
        let activity = try stage.activity()
        let recorder = ActivityRecorder()
        activity.delegate = recorder
        await stage.node.refuse(HandoffError(.documentUnreadable, "it cannot be read"))
        activity.becomeCurrent()
        try await eventually("told") { recorder.failures.value.map(\.code) == [.handoffFailed] }
        stage.application.isInFront = true
        try await eventually("looked at again") { await stage.node.registrations.last?.inFront == true }
        #expect(await stage.node.offers.isEmpty)
        activity.title = "changed"
        _ = try await stage.offered(1)
        #expect(recorder.failures.value.count == 1)
    }

    @Test("An update that the node refuses is told once and ends the offer until the activity has changed")
    func refusedUpdate() async throws {
        let stage = try await Stage()
        await stage.node.refuse { offer in
            offer.documentPath.isEmpty ? nil : HandoffError(.documentUnreadable, "it cannot be read")
        }
        let activity = try stage.activity()
        let recorder = ActivityRecorder()
        activity.delegate = recorder
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        activity.document = URL(filePath: "/nowhere")
        try await eventually("told") { recorder.failures.value.map(\.code) == [.handoffFailed] }
        // It was tried as it is, and then let be.
        try await eventually("refused") { await stage.node.refusedOffers.count == 1 }
        stage.application.isInFront = true
        try await eventually("looked at again") { await stage.node.registrations.last?.inFront == true }
        #expect(await stage.node.refusedOffers.count == 1)
        activity.document = nil
        activity.title = "changed"
        let offer = try #require(try await stage.offered(1).first)
        #expect(offer.request.title == "changed" && offer.request.documentPath.isEmpty)
        #expect(recorder.failures.value.count == 1)
    }

    @Test("What has changed before the node's refusal of an update is heard is offered all the same")
    func refusedLate() async throws {
        let stage = try await Stage()
        let activity = try stage.activity()
        let recorder = ActivityRecorder()
        activity.delegate = recorder
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        activity.document = URL(filePath: "/nowhere")
        try await eventually("said") { await stage.node.offered.first?.updates.count == 1 }
        activity.document = nil
        activity.title = "changed"
        try await eventually("said as well") { await stage.node.offered.first?.updates.count == 2 }
        // Of the first.
        try await stage.node.refuseUpdate(HandoffError(.documentUnreadable, "it cannot be read"))
        try await eventually("offered again as it is now") { await stage.node.offers.count == 2 }
        let offer = try #require(await stage.node.offered.first)
        #expect(offer.request.title == "changed" && offer.request.documentPath.isEmpty)
        try await eventually("told") { recorder.failures.value.map(\.code) == [.handoffFailed] }
    }

    @Test("Saved activities are deleted by their persistent identifiers")
    func deletion() async throws {
        let stage = try await Stage()
        let (kept, named, other) = (try stage.activity(), try stage.activity(), try stage.activity())
        named.persistentIdentifier = "a"
        other.persistentIdentifier = "b"
        named.becomeCurrent()
        _ = try await stage.offered(1)
        stage.application.deleteSavedUserActivities(withPersistentIdentifiers: ["a", "c"])
        _ = try await stage.offered(0)
        #expect(named.isInvalidated && !other.isInvalidated && !kept.isInvalidated)
        stage.application.deleteAllSavedUserActivities()
        #expect(other.isInvalidated && !kept.isInvalidated)
    }

    @Test(
        "Types and web pages that cannot be are refused",
        arguments: ["", "a b", "org/example", "ö", String(repeating: "a", count: 97)])
    func types(type: String) async throws {
        let stage = try await Stage(isStarted: false)
        let error = #expect(throws: UserActivityError.self) { try stage.activity(type) }
        #expect(error?.code == .invalid)
        _ = try stage.activity(String(repeating: "a", count: 96))
    }

    @Test(
        "Only http and https URLs with a host are web pages",
        arguments: ["ftp://example.org/", "file:///etc/passwd", "example.org", "https:///x", "javascript:alert(1)"])
    func webPages(text: String) async throws {
        let stage = try await Stage(isStarted: false)
        let activity = try stage.activity()
        try activity.setWebpageURL(URL(string: "http://example.org"))
        let error = #expect(throws: UserActivityError.self) { try activity.setWebpageURL(URL(string: text)) }
        #expect(error?.code == .invalid)
        #expect(throws: UserActivityError.self) { try activity.setReferrerURL(URL(string: text)) }
        #expect(activity.webpageURL == URL(string: "http://example.org") && activity.referrerURL == nil)
        try activity.setWebpageURL(nil)
        #expect(activity.webpageURL == nil)
    }
}
