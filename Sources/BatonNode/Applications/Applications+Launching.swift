// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonMessages
import Logging

/// Starting what is installed and does not run.
extension Applications {
    /// News for the callers that wait for an application.
    enum Arrival: Sendable {
        case registered
        /// It was not launched, or has ended without registering.
        case failed(HandoffError)
    }

    /// An application that was launched and has not registered, and the callers that wait for it.
    struct Launch {
        /// Tells it from another launch of the same application.
        let number: UInt64
        /// Where it runs, once it does.
        var place: ApplicationLauncher.Place?
        var waiting: [UInt64: AsyncStream<Arrival>.Continuation] = [:]
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
        // The callers that come while it is being launched wait with the first, and fail with it.
        if isFirst {
            do {
                try await launch(candidate, for: type, number: number)
            } catch {
                endLaunch(of: candidate.identifier, number: number, because: error)
                throw error
            }
        }
        do {
            return try await withDeadline(launchDeadline, "\(candidate.name) was launched and did not register") {
                for await arrival in arrivals {
                    if let application = await self.running(candidate.identifier, of: team, continuing: declared) {
                        return application
                    }
                    switch arrival {
                    case .registered: continue
                    case .failed(let error): throw error
                    }
                }
                throw CancellationError()
            }
        } catch {
            guard error.code == .timedOut else { throw error }
            var said: [String] = []
            if case .unit(let unit)? = launches[candidate.identifier]?.place {
                said = await keeper.lastLines(ofUnit: unit)
            }
            throw HandoffError(.applicationNotStarted, error.message + quotation(of: said))
        }
    }

    private func launch(
        _ candidate: ApplicationChoice.Candidate, for type: String, number: UInt64
    ) async throws(HandoffError) {
        logger.info("launching \(candidate.identifier)")
        let place: ApplicationLauncher.Place?
        do {
            place = try await keeper.launch(candidate.identifier, for: type) { ending, said in
                guard ending != .exited(0) else { return }
                let error = HandoffError(
                    .applicationNotStarted,
                    "\(candidate.name) was launched and ended without registering: \(ending.sentence)"
                        + quotation(of: said))
                ControlLoop.execute { self.endLaunch(of: candidate.identifier, number: number, because: error) }
            }
        } catch {
            throw HandoffError(.applicationNotStarted, "\(candidate.name) cannot be launched: \(error)")
        }
        guard let place else {
            throw HandoffError(.applicationNotStarted, "\(candidate.name) is no longer installed")
        }
        if launches[candidate.identifier]?.number == number { launches[candidate.identifier]?.place = place }
    }

    /// A launch has failed: all who wait for it are told, and the next caller launches the application anew.
    private func endLaunch(of identifier: String, number: UInt64, because error: HandoffError) {
        guard let launch = launches[identifier], launch.number == number else { return }
        launches[identifier] = nil
        for waiter in launch.waiting.values { waiter.yield(.failed(error)) }
    }
}

/// A program's standard error, as the end of a sentence.
func quotation(of lines: [String]) -> String {
    lines.isEmpty ? "" : "; it wrote " + lines.map { "“\($0)”" }.joined(separator: ", ")
}
