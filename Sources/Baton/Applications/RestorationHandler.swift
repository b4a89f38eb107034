// SPDX-License-Identifier: Apache-2.0

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
