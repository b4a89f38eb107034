// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
public import FoundationEssentials

/// The content of an activity. While the activity is current, changes are sent out, and changes close together as one.
extension UserActivity {
    /// The title that users see in listings, such as a document's name. It is cut at 1,024 bytes. `nil`, the default:
    /// the node finds one.
    public var title: String? {
        get { content.title }
        set { change { $0.title = newValue } }
    }

    /// The state that the other device needs to go on. Empty by default.
    ///
    /// Over ``UserInfo/recommendedSize`` the library logs a warning with the size. Over ``UserInfo/maximumSize`` the
    /// activity is not offered, and the delegate gets ``UserActivityError/Code/handoffUserInfoTooLarge``.
    public var userInfo: UserInfo {
        get { content.userInfo }
        set { change { $0.userInfo = newValue } }
    }

    /// Adds entries to the user info; an entry of the same name is replaced.
    public func addUserInfoEntries(from entries: UserInfo) {
        change { $0.userInfo.entries.merge(entries.entries) { _, new in new } }
    }

    /// The names in the user info without which the activity cannot be restored. Empty by default.
    ///
    /// A handoff that arrives without one of them fails and names it. Unlike Apple's, entries of other names are never
    /// dropped.
    public var requiredUserInfoKeys: Set<String> {
        get { content.requiredUserInfoKeys }
        set { change { $0.requiredUserInfoKeys = newValue } }
    }

    /// The state has changed, and the delegate should be asked for it before the activity goes anywhere.
    ///
    /// The library clears it before it asks.
    public var needsSave: Bool {
        get { state.withLock { $0.needsSave } }
        set { state.withLock { $0.needsSave = newValue } }
    }

    /// The web page that shows the same, for devices without the application; `nil` by default.
    public var webpageURL: URL? { content.webpageURL }

    /// Sets the web page.
    ///
    /// - Throws: ``UserActivityError/Code/invalid`` for anything but an `http` or `https` URL with a host of at most
    ///   8,192 bytes. The web page stays as it was then.
    public func setWebpageURL(_ url: URL?) throws(UserActivityError) {
        try Self.requireWebPage(url)
        change { $0.webpageURL = url }
    }

    /// The page that led to ``webpageURL``; `nil` by default.
    public var referrerURL: URL? { content.referrerURL }

    /// Sets the page that led to the web page.
    ///
    /// - Throws: as ``setWebpageURL(_:)``, with at most 1,024 bytes.
    public func setReferrerURL(_ url: URL?) throws(UserActivityError) {
        try Self.requireReferrer(url)
        change { $0.referrerURL = url }
    }

    /// From when on the activity is not offered; `nil`, the default: never.
    public var expirationDate: Date? {
        get { content.expirationDate }
        set { change { $0.expirationDate = newValue } }
    }

    /// The window or document of the other device that should continue the activity; `nil`, the default: any.
    ///
    /// The continuing application passes objects to its ``RestorationHandler``. Those with this identifier are
    /// restored, or all if none has it.
    public var targetContentIdentifier: String? {
        get { content.targetContentIdentifier }
        set { change { $0.targetContentIdentifier = newValue } }
    }

    /// The name by which ``Application/deleteSavedUserActivities(withPersistentIdentifiers:)`` finds the activity;
    /// `nil` by default.
    public var persistentIdentifier: String? {
        get { content.persistentIdentifier }
        set { change { $0.persistentIdentifier = newValue } }
    }

    /// Whether the activity is offered while it is current; `true` by default.
    public var isEligibleForHandoff: Bool {
        get { content.isEligibleForHandoff }
        set { change { $0.isEligibleForHandoff = newValue } }
    }

    /// Whether a device that continues the activity may open streams to this application; `false` by default.
    public var supportsContinuationStreams: Bool {
        get { content.supportsContinuationStreams }
        set { change { $0.supportsContinuationStreams = newValue } }
    }

    /// The version of the user info, counted by the application; 0, the default: it states none.
    ///
    /// A receiver that cannot read this version declines before its user waits: ``ContinuedActivityType/versions``.
    public var version: UInt32 {
        get { content.version }
        set { change { $0.version = newValue } }
    }

    /// Whether the activity moves to one device only; `false` by default. Once a device continues it, no other device
    /// is offered it until it becomes current again.
    public var isExclusive: Bool {
        get { content.isExclusive }
        set { change { $0.isExclusive = newValue } }
    }

    /// The URL of the file that goes with the activity, fetched by the device that continues it; `nil` by default. On
    /// that device, where the file is once it has arrived.
    public var document: URL? {
        get { content.document }
        set { change { $0.document = newValue } }
    }

    private static let maximumURLSize = 8192
    private static let maximumReferrerSize = 1024

    /// Whether a URL can be an activity's web page; none can.
    package static func requireWebPage(_ url: URL?) throws(UserActivityError) {
        try requireWebPage(url, atMost: maximumURLSize)
    }

    /// The same of the page that led to it.
    package static func requireReferrer(_ url: URL?) throws(UserActivityError) {
        try requireWebPage(url, atMost: maximumReferrerSize)
    }

    private static func requireWebPage(_ url: URL?, atMost bound: Int) throws(UserActivityError) {
        guard let url else { return }
        let isWeb = ["http", "https"].contains(url.scheme?.lowercased())
        guard isWeb, url.host()?.isEmpty == false, url.absoluteString.utf8.count <= bound else {
            throw UserActivityError(
                .invalid,
                "a web page is an http or https URL with a host, at most \(bound) bytes; put any other URL into"
                    + " the user info")
        }
    }
}
