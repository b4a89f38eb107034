// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
package import BatonTransport
public import FoundationEssentials
public import Logging

/// A program that offers activities to the user's other devices, and continues theirs.
///
/// It represents the connection to the node of this device, which it finds through the environment. Without a node it
/// logs so once, and keeps looking; activities work all the same, and are offered when a node appears. Nothing runs
/// before ``start()`` or the first ``UserActivity/becomeCurrent()``, and nothing after the last reference is released.
/// Activities hold a reference to their application.
public final class Application: Sendable {
    /// The identity of the application, and the types that it continues.
    public let description: Description

    let logger: Logger
    let deadlines: ApplicationDeadlines
    let roster = ActivityRoster()
    private let session: NodeSession
    /// At most 64 watchers at a time. A slow one misses the states between.
    private let nodeStates = Watchers<NodeState>(waitingBound: 1, bound: 64, latest: .idle)
    private let state = Lock(State())

    private struct State {
        weak var delegate: (any ApplicationDelegate)?
        var running: Task<Void, Never>?
        /// The task of before the application was closed. Its requests may be finishing.
        var ended: Task<Void, Never>?
    }

    /// Makes an application that does nothing yet.
    ///
    /// - Parameters:
    ///   - description: its identity, and the types that it continues.
    ///   - homeFolder: the folder of its node, as `BATON_HOME` names it; `nil`, the default, asks the environment
    ///     (`BATON_HOME`, else the XDG variables).
    ///   - logger: gets messages for the user; by default one with the label `baton`.
    /// - Throws: ``ApplicationError`` if the environment names no home.
    public convenience init(
        _ description: Description, homeFolder: String? = nil, logger: Logger = Logger(label: "baton")
    ) throws(ApplicationError) {
        let home = if let homeFolder { try Self.home(["BATON_HOME": homeFolder]) } else { nil as Home? }
        try self.init(description, home: home, logger: logger)
    }

    package init(
        _ description: Description, home: Home?, logger: Logger = Logger(label: "baton"),
        deadlines: ApplicationDeadlines = ApplicationDeadlines()
    ) throws(ApplicationError) {
        let home = if let home { home } else { try Self.home(ProcessInfo.processInfo.environment) }
        self.description = description
        self.logger = logger
        self.deadlines = deadlines
        session = NodeSession(
            description, home: home, roster: roster, states: nodeStates, logger: logger, deadlines: deadlines)
        roster.setApplication(self)
    }

    private static func home(_ environment: [String: String]) throws(ApplicationError) -> Home {
        do {
            return try Home(environment: environment)
        } catch {
            throw ApplicationError(error.description)
        }
    }

    deinit { state.withLock { $0.running }?.cancel() }

    /// The object that is told of activities that come to this application. Not retained.
    public var delegate: (any ApplicationDelegate)? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { $0.delegate = newValue } }
    }

    /// Connects to the node and registers there. Without a node it tries again, after 0.25 to 5 s. Does nothing if it
    /// runs.
    public func start() {
        state.withLock { state in
            guard state.running == nil else { return }
            state.running = Task { [session, ended = state.ended] in
                await ended?.value
                await session.run()
            }
        }
    }

    /// Withdraws the offered activity, and closes the connection to the node. ``start()`` begins anew.
    ///
    /// Activities that this application continues are released.
    public func close() async {
        roster.resignAll()
        let task = state.withLock { state in
            state.running?.cancel()
            state.ended = state.running.take() ?? state.ended
            return state.ended
        }
        await task?.value
    }

    /// Whether the user is at this application now: among several that can continue an activity, the one in front does.
    /// `false` by default.
    public var isInFront: Bool {
        get { roster.isInFront }
        set { roster.isInFront = newValue }
    }

    /// The current state of the connection to the node, and each later one. A slow reader misses those between.
    public var nodeState: AsyncStream<NodeState> { nodeStates.watch() }

    /// Invalidates this application's activities that have one of these ``UserActivity/persistentIdentifier``s: no
    /// device can continue them any more.
    public func deleteSavedUserActivities(withPersistentIdentifiers identifiers: some Sequence<String>) {
        let identifiers = Set(identifiers)
        deleteSavedUserActivities { identifiers.contains($0) }
    }

    /// Invalidates all of this application's activities that have a ``UserActivity/persistentIdentifier``.
    public func deleteAllSavedUserActivities() {
        deleteSavedUserActivities { _ in true }
    }

    private func deleteSavedUserActivities(where isMeant: (String) -> Bool) {
        for activity in roster.all where activity.persistentIdentifier.map(isMeant) == true { activity.invalidate() }
    }

    /// Asks for access to a file whose URL came in an activity's user info.
    ///
    /// - Throws: ``UserActivityError``: `accessRefused` if the user's policy does not allow it, `connectionUnavailable`
    ///   without a node, `invalid` for a URL of another kind.
    public func startAccessing(_ url: URL) async throws(UserActivityError) -> AccessToken {
        let host = url.host(percentEncoded: false) ?? ""
        guard url.isFileURL, host.isEmpty || host.lowercased() == "localhost" else {
            throw UserActivityError(.invalid, "\(url) is not the URL of a file of this device")
        }
        do {
            try await session.access(url.filePathBytes)
        } catch {
            throw UserActivityError(error)
        }
        return AccessToken(url: url)
    }
}

/// Leave to use a file.
public struct AccessToken: Sendable {
    /// The file.
    public let url: URL
}

/// Whether an application has its node.
public enum NodeState: Sendable, Hashable {
    /// The application was not started, or was closed.
    case idle
    /// There is no node, or it has no room for the application, for this reason; it is tried again.
    case missing(reason: String)
    /// The node knows the application.
    case connected
}

/// The times that others wait for an application and its library. The defaults are those of the specification; tests
/// make them shorter.
package struct ApplicationDeadlines: Sendable {
    /// To save the state, and to answer any other call of an activity's delegate, before the next begins.
    package var save = Duration.seconds(5)
    /// For the delegate's running call, when a device continues the activity, before the delegate is asked for the
    /// state.
    package var ownCall = Duration.milliseconds(250)
    /// For the node to release a withdrawn activity, before it is offered again anyway.
    package var letGo = Duration.seconds(5)
    /// To answer *will continue*.
    package var willContinue = Duration.seconds(5)
    /// To continue an activity that has come.
    package var continuing = Duration.seconds(20)
    /// For how long changes of an activity are collected before they go out as one.
    package var coalescing = Duration.milliseconds(50)
    /// The first wait before another look for a missing node; it doubles up to ``longestRetry``.
    package var shortestRetry = Duration.milliseconds(250)
    package var longestRetry = Duration.seconds(5)

    package init() {}
}
