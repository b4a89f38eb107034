// SPDX-License-Identifier: Apache-2.0

/// What an activity asks of, and tells, the application that offers it; every method has a default that does nothing.
///
/// The calls of one activity come one after the other, each in a task of its own that the library starts, save
/// ``userActivity(_:didReceive:outputStream:)``: that one lasts as long as its streams do, and runs beside the others.
/// A call that takes longer than 5 s no longer holds up the next one, nor does one that is for no device after 0.25 s
/// while a device waits for the state: its task is cancelled, and what it still puts into the activity may go with the
/// next save, so heed `Task.isCancelled`.
public protocol UserActivityDelegate: AnyObject, Sendable {
    /// Put the state as it is now into the activity.
    ///
    /// Asked once after ``UserActivity/becomeCurrent()`` where ``UserActivity/needsSave`` was set, and always when
    /// another device takes the activity over: that device waits, and where there is no answer within 5 s its handoff
    /// fails with ``UserActivityError/Code/remoteApplicationTimedOut``, and nothing else does. A save of becoming
    /// current that a device waits behind may be cut short, and is asked for again at once, for that device.
    func userActivityWillSave(_ activity: UserActivity) async

    /// A device has taken the activity over; once for each handoff. The application may close or lock its copy, of what
    /// is in ``ContinuingDevice/userInfo``: what was changed since has not gone.
    func userActivityWasContinued(_ activity: UserActivity, by device: ContinuingDevice) async

    /// The device that continues the activity opened a pair of streams.
    ///
    /// Only where ``UserActivity/supportsContinuationStreams`` is set, also after the activity was withdrawn. What is
    /// not finished when both are let go is aborted.
    func userActivity(
        _ activity: UserActivity, didReceive inputStream: ContinuationInput, outputStream: ContinuationOutput) async

    /// The activity cannot be offered as it is, or a device that was taking it over failed to. It stays available
    /// wherever that is possible.
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
    /// What its user calls it.
    public let name: String
    /// Its identifier, proved by its certificate.
    public let identifier: String
    /// What it continues with: the user info as ``UserActivityDelegate/userActivityWillSave(_:)`` left it for this
    /// device, which may be older than what is in the activity now. Empty where 64 were given to devices since.
    public let userInfo: UserInfo
}
