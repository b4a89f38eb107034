// SPDX-License-Identifier: Apache-2.0

/// The object that the library tells of activities to continue, and asks about them. Every method has a default.
///
/// After ``application(_:willContinueUserActivityWithType:)`` has agreed, exactly one of these follows:
/// ``application(_:continue:restorationHandler:)`` returns `true`, or ``application(_:open:)`` opens the document, or
/// ``application(_:didFailToContinueUserActivityWithType:error:)`` is called.
public protocol ApplicationDelegate: AnyObject, Sendable {
    /// The user has accepted an activity on this device, and it is on its way: nothing of it has come yet.
    ///
    /// The user waits. An answer that takes longer than 5 s fails the handoff.
    func application(_ application: Application, willContinueUserActivityWithType type: String) async -> WillContinue

    /// Here is the activity.
    ///
    /// - Returns: whether the application continues it; in at most 20 s. By default `false`.
    func application(
        _ application: Application, continue activity: UserActivity, restorationHandler: RestorationHandler
    ) async -> Bool

    /// Opens the activity's document, as when the user opens one. Called if
    /// ``application(_:continue:restorationHandler:)`` has not handled the activity.
    ///
    /// The library restores the returned object from the activity.
    ///
    /// - Parameters:
    ///   - application: the application of this delegate.
    ///   - document: may still be on its way; ``Document/read(at:length:of:)`` does not wait for all of it. Retain it,
    ///     or the other device takes the activity back.
    /// - Returns: the object that shows the document; `nil`, the default: the activity is not continued. The time limit
    ///   of `continue` includes this call.
    func application(_ application: Application, open document: Document) async -> (any UserActivityRestoring)?

    /// The activity does not come, or was not continued.
    ///
    /// - Parameters:
    ///   - application: the application of this delegate.
    ///   - type: the type of the activity.
    ///   - error: ``UserActivityError/Code/userCancelled`` if the user wanted it so: then stay silent.
    func application(
        _ application: Application, didFailToContinueUserActivityWithType type: String, error: UserActivityError) async

    /// The responders of an activity have put their state into it, and it is about to be sent: the last chance to add
    /// something.
    func application(_ application: Application, didUpdate activity: UserActivity) async
}

extension ApplicationDelegate {
    public func application(
        _ application: Application, willContinueUserActivityWithType type: String
    ) async -> WillContinue { .systemShowsProgress }

    public func application(
        _ application: Application, continue activity: UserActivity, restorationHandler: RestorationHandler
    ) async -> Bool { false }

    public func application(
        _ application: Application, open document: Document
    ) async -> (any UserActivityRestoring)? { nil }

    public func application(
        _ application: Application, didFailToContinueUserActivityWithType type: String, error: UserActivityError
    ) async {}

    public func application(_ application: Application, didUpdate activity: UserActivity) async {}
}

/// Whether an application continues an activity that is on its way, and which side shows progress.
public enum WillContinue: Sendable, Hashable {
    /// The application continues it, and shows progress itself.
    case applicationShowsProgress
    /// The application continues it, and the program in which the user accepted shows progress.
    case systemShowsProgress
    /// It does not, for this reason, which the user reads. It hears nothing more of this handoff.
    case refused(String)
}

/// An object that can take up an activity that came from another device, such as a window.
public protocol UserActivityRestoring: AnyObject, Sendable {
    /// Take the state from the activity.
    func restoreUserActivityState(_ activity: UserActivity) async

    /// The content that this object shows: see ``UserActivity/targetContentIdentifier``. `nil` by default.
    var targetContentIdentifier: String? { get }
}

extension UserActivityRestoring {
    public var targetContentIdentifier: String? { nil }
}

/// The function that an application calls with the objects that restore an activity. It may be kept, and called later.
public struct RestorationHandler: Sendable {
    private let activity: UserActivity

    init(_ activity: UserActivity) {
        self.activity = activity
    }

    /// Restores the objects, one after the other in their order.
    ///
    /// Where the activity has a ``UserActivity/targetContentIdentifier``, only those with the same one are restored, if
    /// there are any.
    public func callAsFunction(_ objects: [any UserActivityRestoring]) async {
        let target = activity.targetContentIdentifier
        let meant = target == nil ? [] : objects.filter { $0.targetContentIdentifier == target }
        for object in meant.isEmpty ? objects : meant { await object.restoreUserActivityState(activity) }
    }
}
