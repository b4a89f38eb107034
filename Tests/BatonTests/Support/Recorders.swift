// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonEventLoop
import Logging

/// A value that tasks change and tests look at.
final class Box<Value: Sendable>: Sendable {
    private let lock: Lock<Value>

    init(_ value: Value) { lock = Lock(value) }

    var value: Value {
        get { lock.withLock { $0 } }
        set { lock.withLock { $0 = newValue } }
    }

    func change(_ body: (inout Value) -> Void) { lock.withLock { body(&$0) } }
}

/// A door that a delegate waits at until the test opens it.
final class Gate: Sendable {
    private let opened: AsyncStream<Never>
    private let opener: AsyncStream<Never>.Continuation

    init() { (opened, opener) = AsyncStream<Never>.makeStream() }

    func open() { opener.finish() }

    /// Waits, cancelled or not.
    func pass() async { await Task { [opened] in for await _ in opened {} }.value }
}

/// Records log messages.
struct LogRecorder: LogHandler {
    let lines: Box<[(level: Logger.Level, text: String)]>
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        lines.change { $0.append((event.level, "\(event.message)")) }
    }

    static func make() -> (Logger, Box<[(level: Logger.Level, text: String)]>) {
        let lines = Box<[(level: Logger.Level, text: String)]>([])
        return (Logger(label: "test") { _ in LogRecorder(lines: lines) }, lines)
    }
}

/// An activity's delegate that records its calls and runs the test's code.
final class ActivityRecorder: UserActivityDelegate {
    let saves = Box(0)
    let continued = Box<[ContinuingDevice]>([])
    let failures = Box<[UserActivityError]>([])
    private let onSave: @Sendable (UserActivity) async -> Void
    private let onStreams: @Sendable (ContinuationInput, ContinuationOutput) async -> Void
    private let onFailure: @Sendable () async -> Void

    init(
        onSave: @escaping @Sendable (UserActivity) async -> Void = { _ in },
        onStreams: @escaping @Sendable (ContinuationInput, ContinuationOutput) async -> Void = { _, _ in },
        onFailure: @escaping @Sendable () async -> Void = {}
    ) {
        self.onSave = onSave
        self.onStreams = onStreams
        self.onFailure = onFailure
    }

    func userActivityWillSave(_ activity: UserActivity) async {
        saves.change { $0 += 1 }
        await onSave(activity)
    }

    func userActivityWasContinued(_ activity: UserActivity, by device: ContinuingDevice) async {
        continued.change { $0.append(device) }
    }

    func userActivity(
        _ activity: UserActivity, didReceive inputStream: ContinuationInput, outputStream: ContinuationOutput
    ) async {
        await onStreams(inputStream, outputStream)
    }

    func userActivity(_ activity: UserActivity, didFail error: UserActivityError) async {
        failures.change { $0.append(error) }
        await onFailure()
    }
}

/// An application's delegate that records its calls in order and runs the test's code.
final class ApplicationRecorder: ApplicationDelegate {
    let events = Box<[String]>([])
    let failures = Box<[UserActivityError]>([])
    /// The activities that came; only as long as the test wants them.
    let activities = Box<[UserActivity]>([])
    private let onWillContinue: @Sendable () async -> WillContinue
    private let onContinue: @Sendable (UserActivity, RestorationHandler) async -> Bool

    init(
        onWillContinue: @escaping @Sendable () async -> WillContinue = { .systemShowsProgress },
        onContinue: @escaping @Sendable (UserActivity, RestorationHandler) async -> Bool = { _, _ in true }
    ) {
        self.onWillContinue = onWillContinue
        self.onContinue = onContinue
    }

    func application(_ application: Application, willContinueUserActivityWithType type: String) async -> WillContinue {
        events.change { $0.append("willContinue \(type)") }
        return await onWillContinue()
    }

    func application(
        _ application: Application, continue activity: UserActivity, restorationHandler: RestorationHandler
    ) async -> Bool {
        events.change { $0.append("continue \(activity.activityType)") }
        activities.change { $0.append(activity) }
        return await onContinue(activity, restorationHandler)
    }

    func application(
        _ application: Application, didFailToContinueUserActivityWithType type: String, error: UserActivityError
    ) async {
        failures.change { $0.append(error) }
        events.change { $0.append("didFail \(type)") }
    }

    func application(_ application: Application, didUpdate activity: UserActivity) async {
        events.change { $0.append("didUpdate \(activity.userInfo.entries.keys.sorted().joined(separator: " "))") }
        activity.addUserInfoEntries(from: ["updated": true])
    }
}
