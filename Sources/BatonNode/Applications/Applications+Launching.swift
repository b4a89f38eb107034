// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonMessages
import BatonProtocol
import BatonTransport
import Logging

/// Starting what is installed and does not run.
extension Applications {
    /// An application that was launched and has not registered.
    @ControlLoop
    final class Launch {
        /// The callers that wait for it.
        fileprivate(set) var waiting = 0
        /// Where it runs, once it does.
        fileprivate var place: ApplicationLauncher.Place?
        /// Why it does not run, or has ended without registering.
        fileprivate var failure: HandoffError?
    }

    /// The application, launched if it does not run, and noted as used.
    ///
    /// - Parameters:
    ///   - team: the application's, which another program under its name has not.
    ///   - declared: the type that it has to continue; `nil` for a page of a host that it belongs to.
    ///   - type: of the activity.
    /// - Throws: ``HandoffError`` with `applicationNotStarted`, at once if it is not launched or ends without having
    ///   registered. Status 0 is no failure, because a program may only start another.
    func started(
        _ candidate: ApplicationChoice.Candidate, of team: TeamTag, continuing declared: String?, for type: String
    ) async throws(HandoffError) -> RunningApplication {
        let identifier = candidate.identifier
        noteUse(of: identifier)
        if let application = running(identifier, of: team, continuing: declared) { return application }
        let launch = launches[identifier] ?? Launch()
        launch.waiting += 1
        defer {
            launch.waiting -= 1
            if launch.waiting == 0 { end(launch, of: identifier) }
        }
        // The callers that come while it is being launched wait with the first, and fail with it.
        if launch.waiting == 1 {
            launches[identifier] = launch
            await begin(launch, of: candidate, for: type)
        }
        let deadline = Instant.now + launchDeadline
        while launch.failure == nil, !Task.isCancelled, .now < deadline {
            // It may have registered while it was being launched.
            if let application = running(identifier, of: team, continuing: declared) { return application }
            guard await arrivals.wait(for: identifier, atMost: deadline - .now) != .refused else { break }
        }
        if let application = running(identifier, of: team, continuing: declared) { return application }
        if let failure = launch.failure { throw failure }
        guard !Task.isCancelled else { throw HandoffError(.cancelled, "the handoff was cancelled") }
        let seconds = launchDeadline.components.seconds
        var message = "\(candidate.name) was launched and did not register within \(seconds) s"
        if case .unit(let unit)? = launch.place {
            message += "; `journalctl --user --unit='\(unit)'` shows what it wrote"
        }
        throw HandoffError(.applicationNotStarted, message)
    }

    private func begin(_ launch: Launch, of candidate: ApplicationChoice.Candidate, for type: String) async {
        let (identifier, name) = (candidate.identifier, candidate.name)
        logger.info("launching \(identifier)")
        func fail(_ message: String) { end(launch, of: identifier, because: message) }
        do {
            let place = try await startInstalled(identifier, for: type) { [logger] ending in
                logger.info("\(identifier) has ended: \(ending.sentence)")
                guard ending != .exited(0) else { return }
                let message = "\(name) was launched and ended without registering: \(ending.sentence)"
                ControlLoop.execute { self.end(launch, of: identifier, because: message) }
            }
            launch.place = place
            switch place {
            case nil: fail("\(name) is no longer installed")
            case .unit(let unit): logger.info("\(identifier) was launched as the unit \(unit)")
            case .process(let process): logger.info("\(identifier) was launched as process \(process)")
            }
        } catch {
            fail("\(name) cannot be launched: \(error)")
        }
    }

    /// Starts an application that is installed.
    ///
    /// - Returns: where it runs; nil if it is not installed any more.
    @StorageThread
    private func startInstalled(
        _ identifier: String, for type: String,
        onEnd: @escaping @Sendable (ApplicationLauncher.Ending) -> Void
    ) async throws(LaunchError) -> ApplicationLauncher.Place? {
        guard let manifest = registry.installed()[identifier] else { return nil }
        return try await launcher.launch(manifest, adding: ["BATON_ACTIVITY_TYPE": type], onEnd: onEnd)
    }

    /// Forgets a launch: the next caller launches the application anew. All who wait for it hear why it failed.
    private func end(_ launch: Launch, of identifier: String, because message: String? = nil) {
        guard launches[identifier] === launch else { return }
        launches[identifier] = nil
        launch.failure = message.map { HandoffError(.applicationNotStarted, $0) }
        arrivals.wake(identifier)
    }
}
