// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
public import FoundationEssentials

/// A file that the user works on, with the activity that carries it.
///
/// The activity carries the file's URL under ``UserActivity/documentURLKey``. It is current while the document is at
/// the front, and ends when the document is closed or released. The continuing device can read the file before it has
/// arrived. Any thread may use a document.
public final class Document: Sendable {
    /// An event of a document.
    public enum Change: Sendable, Hashable {
        /// The user is at it, and other devices can continue it.
        case becameFront
        /// The user is at something else: the application said so, or another of its documents or activities is at the
        /// front.
        case resignedFront
        /// ``needsSave`` was set.
        case stateChanged
        /// Bytes of the file that have arrived. Less than `total`, unless that is 0, until ``arrived(_:)`` reports that
        /// the file is whole, verified and in place.
        case progress(received: UInt64, total: UInt64)
        /// The file is on this device.
        case arrived(URL)
        /// The file does not come.
        case failed(UserActivityError)
        /// It was closed; the last change there is.
        case closed
    }

    /// The activity, for its title, version and other members. The document itself keeps ``UserActivity/userInfo``.
    public let activity: UserActivity

    let changeBoard: Watchers<Change>
    /// Ties the document to its activity; `nil` after it was closed.
    private let link: Lock<ResponderLink?>
    private let provider: (@Sendable () async -> UserInfo)?

    /// A document of a file on this device.
    ///
    /// - Parameters:
    ///   - fileURL: the file.
    ///   - activityType: as ``UserActivity/init(activityType:application:)`` takes it.
    ///   - application: the application that offers it.
    ///   - title: the title that users see; `nil`, the default: the file's name.
    ///   - provider: provides further state, such as the cursor, after ``needsSave`` was set. It does not retain the
    ///     document.
    /// - Throws: ``UserActivityError/Code/invalid`` for a URL of another kind, or an invalid type.
    public init(
        fileURL: URL, activityType: String, application: Application, title: String? = nil,
        state provider: (@Sendable () async -> UserInfo)? = nil
    ) throws(UserActivityError) {
        guard fileURL.isFileURL else { throw UserActivityError(.invalid, "\(fileURL) is not the URL of a file") }
        activity = try UserActivity(activityType: activityType, application: application)
        changeBoard = Document.newChanges()
        self.provider = provider
        link = Lock(nil)
        activity.change { content in
            content.title = title ?? fileURL.fileName
            content.document = fileURL
            content.userInfo = [UserActivity.documentURLKey: .url(fileURL)]
            content.requiredUserInfoKeys = [UserActivity.documentURLKey]
        }
        activity.needsSave = provider != nil
        let attached = activity.attach(self)
        link.withLock { $0 = attached }
        application.roster.follow(activity.id, for: changeBoard)
    }

    /// The document of an activity that this application continues.
    ///
    /// - Parameters:
    ///   - activity: the activity that came.
    ///   - provider: as for a file of this device, since the user goes on here.
    /// - Throws: ``UserActivityError/Code/invalid`` for an activity that was not continued here, or has no document.
    public init(
        continuing activity: UserActivity, state provider: (@Sendable () async -> UserInfo)? = nil
    ) throws(UserActivityError) {
        guard let arrival = activity.handoff?.arrival else {
            throw UserActivityError(.invalid, "the activity did not come with a document from another device")
        }
        self.activity = activity
        self.provider = provider
        changeBoard = arrival.changes
        link = Lock(nil)
        // Without a provider the received user info stays, since nothing could replace it.
        if provider != nil {
            let attached = activity.attach(self)
            link.withLock { $0 = attached }
        }
        activity.application.roster.follow(activity.id, for: changeBoard)
    }

    /// Where the file is on this device, as ``UserActivity/document`` has it; `nil` until it has arrived.
    public var fileURL: URL? {
        activity.content.file ?? activity.handoff?.arrival?.place
    }

    /// Bytes of the file, as the other device said; `nil` for one of this device.
    public var size: UInt64? { activity.handoff?.document?.size }

    /// Follows a file that the user has moved or renamed. A title that is the file's name changes with it.
    ///
    /// All references to the file change at once, so that a device that continues meanwhile finds one file.
    ///
    /// - Throws: ``UserActivityError/Code/invalid`` for a URL of another kind.
    public func move(to url: URL) throws(UserActivityError) {
        guard url.isFileURL else { throw UserActivityError(.invalid, "\(url) is not the URL of a file") }
        activity.change { content in
            if let old = content.file, content.title == old.fileName { content.title = url.fileName }
            content.document = url
            content.userInfo.entries[UserActivity.documentURLKey] = .url(url)
        }
    }

    /// Whether the state has changed. It is then asked for before the activity is sent to a device.
    public var needsSave: Bool {
        get { activity.needsSave }
        set {
            activity.needsSave = newValue
            if newValue { changeBoard.tell(.stateChanged) }
        }
    }

    /// Brings the document to the front. Other devices can continue it from now on, in place of the document before.
    public func becomeFront() {
        activity.becomeCurrent()
    }

    /// The user is at something else.
    public func resignFront() {
        activity.resignCurrent()
    }

    /// Ends the document's activity for good. Again does nothing.
    public func close() {
        // Its watchers hear nothing further; the closing says the rest.
        activity.application.roster.follow(activity.id, for: nil)
        link.withLock { link in
            defer { link = nil }
            return link
        }?.detach()
        activity.invalidate()
        changeBoard.end(.closed)
    }

    /// A document's events, of which at most 32 wait for a slow watcher. The application bounds the number of watchers:
    /// each is a stream that it asked for.
    static func newChanges() -> Watchers<Change> { Watchers(waitingBound: 32) }

    /// The events of the document from now on, for each caller. A slow reader misses the oldest ones.
    public var changes: AsyncStream<Change> { changeBoard.watch() }
}

extension Document: UserActivityResponder {
    /// Puts the file's URL and the state into the activity.
    public func updateUserActivityState(_ activity: UserActivity) async {
        if let provider { activity.addUserInfoEntries(from: await provider()) }
        // Of its own activity the file is read in the same change: `move(to:)` may be called meanwhile.
        let shared = activity === self.activity ? nil : fileURL
        activity.change { content in
            guard let file = shared ?? content.file else { return }
            content.userInfo.entries[UserActivity.documentURLKey] = .url(file)
        }
    }
}

extension ActivityContent {
    fileprivate var file: URL? {
        guard let document, document.isFileURL else { return nil }
        return document
    }
}
