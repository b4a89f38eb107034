// SPDX-License-Identifier: Apache-2.0

/// The object that an offered activity asks for its state and tells of its events. Every method has a default that does
/// nothing.
///
/// The calls of one activity come one after the other, each in a task that the library starts. The exception is
/// ``userActivity(_:didReceive:outputStream:)``, which lasts as long as its streams and runs beside the others.
///
/// A call has 5 s, and a call that is for no device has 0.25 s once a device waits for the state. After that its task
/// is cancelled and the next call begins. A late change to the activity may go with the next save, so heed
/// `Task.isCancelled`.
public protocol UserActivityDelegate: AnyObject, Sendable {
    /// Asks for the current state: put it into the activity.
    ///
    /// Called once after ``UserActivity/becomeCurrent()`` if ``UserActivity/needsSave`` was set, and whenever another
    /// device continues the activity. That device waits: without an answer within 5 s its handoff fails with
    /// ``UserActivityError/Code/remoteApplicationTimedOut``. Nothing else fails. If a device waits behind the save of
    /// becoming current, that save may be cut short, and the state is asked for again at once.
    func userActivityWillSave(_ activity: UserActivity) async

    /// A device continues the activity. Called once for each handoff. The application may close or lock its copy of
    /// ``ContinuingDevice/userInfo``; later changes have not crossed.
    func userActivityWasContinued(_ activity: UserActivity, by device: ContinuingDevice) async

    /// The device that continues the activity opened a pair of streams.
    ///
    /// Called only if ``UserActivity/supportsContinuationStreams`` is set, also after the activity was withdrawn.
    /// Releasing both streams resets what is unfinished.
    func userActivity(
        _ activity: UserActivity, didReceive inputStream: ContinuationInput, outputStream: ContinuationOutput) async

    /// The activity cannot be offered as it is, or a device failed to continue it. It stays available if that is
    /// possible.
    func userActivity(_ activity: UserActivity, didFail error: UserActivityError) async
}

extension UserActivityDelegate {
    public func userActivityWillSave(_ activity: UserActivity) async {}
    public func userActivityWasContinued(_ activity: UserActivity, by device: ContinuingDevice) async {}
    public func userActivity(
        _ activity: UserActivity, didReceive inputStream: ContinuationInput, outputStream: ContinuationOutput
    ) async {}
    public func userActivity(_ activity: UserActivity, didFail error: UserActivityError) async {}
}

/// A device that continues an activity of this one.
public struct ContinuingDevice: Sendable, Hashable {
    /// The name that its user gave it.
    public let name: String
    /// Its identifier, proved by its certificate.
    public let identifier: String
    /// The user info that the device got: as ``UserActivityDelegate/userActivityWillSave(_:)`` left it, which may be
    /// older than the activity's now. Empty if 64 devices were given user info since.
    public let userInfo: UserInfo
}
