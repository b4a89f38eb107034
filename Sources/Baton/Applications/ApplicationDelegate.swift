// SPDX-License-Identifier: Apache-2.0

/// What the library tells an application that continues activities, and asks of it; every method has a default.
///
/// After ``application(_:willContinueUserActivityWithType:)`` has agreed, exactly one thing follows: either
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

    /// The activity has a document, and ``application(_:continue:restorationHandler:)`` has not handled it: open the
    /// document, as when the user opens one.
    ///
    /// The library restores what is returned from the activity.
    ///
    /// - Parameter document: perhaps still on its way: ``Document/read(at:length:)`` does not wait for it. To be kept
    ///   by the application, or the other device takes the activity back.
    /// - Returns: what shows it; `nil`, the default: the activity is not continued. The time of `continue` counts on.
    func application(_ application: Application, open document: Document) async -> (any UserActivityRestoring)?

    /// The activity does not come, or was not continued.
    ///
    /// - Parameter error: ``UserActivityError/Code/userCancelled`` where the user wanted it so: then stay silent.
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

/// Whether, and how, an application continues an activity that is on its way.
public enum WillContinue: Sendable, Hashable {
    /// It continues it, and shows by itself that it is waiting.
    case applicationShowsProgress
    /// It continues it, and whoever accepted shows that it is on its way.
    case systemShowsProgress
    /// It does not, for this reason, which the user reads. It hears nothing more of this handoff.
    case refused(String)
}
