// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
public import FoundationEssentials

/// A file that the user is at, and the activity that goes with it.
///
/// It makes an activity of its own, which carries the file's URL under ``UserActivity/documentURLKey``, is current
/// while the document is at the front, and ends when the document is closed or let go. On the device that continues it,
/// the file can be read before it has arrived. Any thread may use it.
public final class Document: Sendable {
    /// What happens to a document.
    public enum Change: Sendable, Hashable {
        /// The user is at it, and other devices can continue it.
        case becameFront
        /// The user is at something else: the application said so, or another of its documents or activities is at the
        /// front.
        case resignedFront
        /// ``needsSave`` was set.
        case stateChanged
        /// So much of the file has come from the other device, in bytes: less than `total`, if that is not 0, until it
        /// is whole, verified and in place, which is ``arrived(_:)``.
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

    let changeBoard: DocumentChanges
    /// What ties the document to its activity; `nil` once it was closed.
    private let link: Lock<ResponderLink?>
    private let provider: (@Sendable () async -> UserInfo)?

    /// A file of this device.
    ///
    /// - Parameters:
    ///   - fileURL: where it is.
    ///   - activityType: as ``UserActivity/init(activityType:application:)`` takes it.
    ///   - title: what the user sees; `nil`, the default: the file's name.
    ///   - state: what else the other device needs, such as the cursor; it is asked after ``needsSave`` was set. The
    ///     document is not kept by it.
    /// - Throws: ``UserActivityError/Code/invalid`` for a URL that is no file's, or a type that is none.
    public init(
        fileURL: URL, activityType: String, application: Application, title: String? = nil,
        state provider: (@Sendable () async -> UserInfo)? = nil
    ) throws(UserActivityError) {
        guard fileURL.isFileURL else { throw UserActivityError(.invalid, "\(fileURL) is not the URL of a file") }
        activity = try UserActivity(activityType: activityType, application: application)
        changeBoard = DocumentChanges()
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
    /// - Parameter state: as for a file of this device: from now on the user goes on here.
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
        // Without a provider the user info stays what came: there is nobody to gather it again.
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

    /// The user has moved or renamed the file. A title that is the file's name follows.
    ///
    /// All that names the file changes at once: whoever takes the activity over meanwhile finds one file in it.
    ///
    /// - Throws: ``UserActivityError/Code/invalid`` for a URL that is no file's.
    public func move(to url: URL) throws(UserActivityError) {
        guard url.isFileURL else { throw UserActivityError(.invalid, "\(url) is not the URL of a file") }
        activity.change { content in
            if let old = content.file, content.title == old.fileName { content.title = url.fileName }
            content.document = url
            content.userInfo.entries[UserActivity.documentURLKey] = .url(url)
        }
    }

    /// What else the other device needs has changed: it is asked for before the activity goes anywhere.
    public var needsSave: Bool {
        get { activity.needsSave }
        set {
            activity.needsSave = newValue
            if newValue { changeBoard.tell(.stateChanged) }
        }
    }

    /// The document is at the front: other devices can continue it. The one that was there before is not any more.
    public func becomeFront() {
        activity.becomeCurrent()
    }

    /// The user is at something else.
    public func resignFront() {
        activity.resignCurrent()
    }

    /// Ends the document's activity for good. Again does nothing.
    public func close() {
        // That it is closed says the rest.
        activity.application.roster.follow(activity.id, for: nil)
        link.withLock { link in
            defer { link = nil }
            return link
        }?.detach()
        activity.invalidate()
        changeBoard.end()
    }

    /// What happens to the document from now on, for each who asks. Who reads slowly misses the oldest changes.
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
    /// Where the document's file is; `nil` where it has none.
    fileprivate var file: URL? {
        guard let document, document.isFileURL else { return nil }
        return document
    }
}
