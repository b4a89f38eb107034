// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonMessages
import Logging

/// Starting what is installed and does not run.
extension Applications {
    /// What whoever waits for an application is told.
    enum Arrival: Sendable {
        case registered
        case ended(ApplicationLauncher.Ending)
    }

    /// An application on its way, and who waits for it.
    struct Launch {
        /// Tells it from another launch of the same application.
        let number: UInt64
        var waiting: [UInt64: AsyncStream<Arrival>.Continuation] = [:]
    }

    /// The application, launched if it does not run, and noted as used.
    ///
    /// - Parameters:
    ///   - team: the application's, which another program under its name has not.
    ///   - declared: the type that it has to continue; `nil` for a page of a host that it belongs to.
    ///   - type: of the activity.
    /// - Throws: ``HandoffError`` with `applicationNotStarted`, at once where it ends without having registered; not
    ///   where it ends with status 0, as a program does that only starts another.
    func started(
        _ candidate: ApplicationChoice.Candidate, of team: TeamTag, continuing declared: String?, for type: String
    ) async throws(HandoffError) -> RunningApplication {
        await keeper.noteUse(of: candidate.identifier)
        if let application = running(candidate.identifier, of: team, continuing: declared) { return application }
        let (arrivals, arrival) = AsyncStream<Arrival>.makeStream(bufferingPolicy: .bufferingNewest(1))
        lastNumber += 1
        let number = lastNumber
        let isFirst = launches[candidate.identifier] == nil
        launches[candidate.identifier, default: Launch(number: number)].waiting[number] = arrival
        defer {
            launches[candidate.identifier]?.waiting[number] = nil
            if launches[candidate.identifier]?.waiting.isEmpty == true { launches[candidate.identifier] = nil }
        }
        // Who comes while it is being launched waits with the first.
        if isFirst { try await launch(candidate, for: type, number: number) }
        do {
            return try await withDeadline(launchDeadline, "\(candidate.name) was launched and did not register") {
                for await arrival in arrivals {
                    if let application = await self.running(candidate.identifier, of: team, continuing: declared) {
                        return application
                    }
                    switch arrival {
                    case .registered, .ended(.exited(0)): continue
                    case .ended(let ending):
                        throw HandoffError(
                            .applicationNotStarted,
                            "\(candidate.name) was launched and ended without registering: \(ending.sentence)")
                    }
                }
                throw CancellationError()
            }
        } catch {
            guard error.code == .timedOut else { throw error }
            throw HandoffError(.applicationNotStarted, error.message)
        }
    }

    private func launch(
        _ candidate: ApplicationChoice.Candidate, for type: String, number: UInt64
    ) async throws(HandoffError) {
        logger.info("launching \(candidate.identifier)")
        let isInstalled: Bool
        do {
            isInstalled = try await keeper.launch(candidate.identifier, for: type) { ending in
                Task { await self.noteEnd(of: candidate.identifier, launch: number, ending) }
            }
        } catch {
            throw HandoffError(.applicationNotStarted, "\(candidate.name) cannot be launched: \(error)")
        }
        guard isInstalled else {
            throw HandoffError(.applicationNotStarted, "\(candidate.name) is no longer installed")
        }
    }

    /// What was launched has ended, perhaps before it registered.
    private func noteEnd(of identifier: String, launch number: UInt64, _ ending: ApplicationLauncher.Ending) {
        guard let launch = launches[identifier], launch.number == number else { return }
        for waiter in launch.waiting.values { waiter.yield(.ended(ending)) }
    }
}

extension ApplicationLauncher.Ending {
    /// How it ended, for people.
    fileprivate var sentence: String {
        switch self {
        case .exited(let status): "its exit status is \(status)"
        case .signalled(let signal): "signal \(signal) ended it"
        }
    }
}
