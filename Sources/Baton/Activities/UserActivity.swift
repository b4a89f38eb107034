// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import FoundationEssentials

/// An activity of a user in an application, which another device can continue.
///
/// It mirrors `NSUserActivity`; <doc:AppleAPI> lists the differences member by member. Any thread may use it. Keep a
/// reference for as long as the user is at the activity: releasing the last one withdraws it.
///
/// An activity is offered from its first ``becomeCurrent()`` on. The activity of an application that became current
/// last is the current one. Its changes are sent out by themselves, and changes close together as one.
public final class UserActivity: Sendable {
    /// The type of an activity that is only a web page: it has no user info and a ``webpageURL``.
    public static let browsingWebType = "NSUserActivityTypeBrowsingWeb"
    /// The name under which the user info of a document's activity has the document's URL.
    public static let documentURLKey = "NSUserActivityDocumentURL"
    /// The most bytes of a type.
    public static let maximumTypeSize = 96

    /// The kind of activity, in reverse DNS notation, such as `org.example.notes.editing`.
    public let activityType: String
    /// The application that it belongs to.
    public let application: Application

    let id: ActivityIdentifier
    let state: Lock<State>
    let turns = DelegateTurns()
    /// The handoff that brought it here; `nil` for an activity of this device.
    let handoff: ContinuedHandoff?

    struct State: Sendable {
        /// How many states of user info are remembered: 64.
        static let handedOverBound = 64

        var content = ActivityContent()
        weak var delegate: (any UserActivityDelegate)?
        var needsSave = false
        var isInvalidated = false
        var isSaveQueued = false
        var nextSave: Task<ActivityContent?, Never>?
        var responders: [Responder] = []
        /// Whether the delegate was told that the content cannot be offered, until it can again.
        var isRefused = false
        var hasWarnedOfSize = false
        /// The user info that devices were given, of up to 48 KiB each, by the number with which the node reports that
        /// a device continues.
        var handedOver = RecentValues<UInt64, UserInfo>(bound: handedOverBound)
        var lastHandedOver: UInt64 = 0
        var streams = 0

        /// Records the user info that a device is given, and returns its number.
        mutating func handOver(_ userInfo: UserInfo) -> UInt64 {
            lastHandedOver += 1
            handedOver[lastHandedOver] = userInfo
            return lastHandedOver
        }
    }

    /// Makes an activity that no device sees until it becomes current.
    ///
    /// - Parameters:
    ///   - activityType: 1 to 96 ASCII letters, digits, dots, hyphens and underscores. The application need not declare
    ///     that it continues this type.
    ///   - application: the application that offers it.
    /// - Throws: ``UserActivityError/Code/invalid`` for any other type.
    public convenience init(activityType: String, application: Application) throws(UserActivityError) {
        guard Self.isType(activityType) else {
            throw UserActivityError(
                .invalid,
                "“\(activityType)” is no type of activity: it takes 1 to \(Self.maximumTypeSize) ASCII letters, digits,"
                    + " dots, hyphens and underscores")
        }
        self.init(activityType, application, ActivityContent(), handoff: nil)
    }

    init(_ type: String, _ application: Application, _ content: ActivityContent, handoff: ContinuedHandoff?) {
        activityType = type
        self.application = application
        self.handoff = handoff
        id = ActivityIdentifier()
        state = Lock(State(content: content))
        application.roster.add(self)
        handoff?.followDocument { [weak self] in self?.documentArrived(at: $0) }
    }

    /// The document is on this device: the user info names the file from now on.
    private func documentArrived(at url: URL) {
        change { content in
            content.document = url
            content.userInfo = content.userInfo.withDocument(at: url)
        }
    }

    deinit {
        application.roster.remove(id)
        handoff?.letGo()
    }

    package static func isType(_ text: String) -> Bool {
        (1...maximumTypeSize).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch UInt8(byte) {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    /// The object that is asked for the state and told of events. Not retained.
    public var delegate: (any UserActivityDelegate)? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { $0.delegate = newValue } }
    }

    var content: ActivityContent { state.withLock { $0.content } }

    /// Changes the content atomically. If the activity is current, the change is sent out.
    package func change(_ body: (inout ActivityContent) -> Void) {
        let hasChanged = state.withLock { state in
            let old = state.content
            body(&state.content)
            return state.content != old
        }
        if hasChanged { application.roster.activityChanged(id) }
    }
}

extension UserActivity {
    /// Makes this the application's current activity, and starts the application if needed.
    ///
    /// The activity that was current resigns. The node announces this one as the device's newest. If ``needsSave`` is
    /// set, it is cleared, and the delegate is asked for the state once, shortly after this returns. After
    /// ``invalidate()`` this does nothing.
    public func becomeCurrent() {
        let (isInvalidated, asksToSave) = state.withLock { state in
            guard !state.isInvalidated else { return (true, false) }
            let asks = state.needsSave && !state.isSaveQueued
            if state.needsSave { state.needsSave = false }
            if asks { state.isSaveQueued = true }
            return (false, asks)
        }
        guard !isInvalidated else { return }
        application.roster.becomeCurrent(id)
        application.start()
        if asksToSave { saveSoon() }
    }

    /// Withdraws the activity until it becomes current again. A device that continues it already keeps it.
    public func resignCurrent() {
        application.roster.resignCurrent(id)
    }

    /// Ends the activity for good. It is withdrawn, cannot become current again, and releases a continued activity.
    public func invalidate() {
        let wasValid = state.withLock { state in
            defer { state.isInvalidated = true }
            return !state.isInvalidated
        }
        guard wasValid else { return }
        application.roster.remove(id)
        handoff?.letGo()
    }

    /// Whether this is its application's current activity.
    public var isCurrent: Bool { application.roster.isCurrent(id) }

    /// Whether ``invalidate()`` has ended it.
    public var isInvalidated: Bool { state.withLock { $0.isInvalidated } }
}
