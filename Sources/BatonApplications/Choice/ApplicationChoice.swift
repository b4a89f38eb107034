// SPDX-License-Identifier: Apache-2.0

/// Chooses the application that continues an activity. Pure functions: running and recently used applications are
/// arguments.
package enum ApplicationChoice {
    /// An application that may continue an activity.
    package struct Candidate: Sendable, Hashable {
        package let identifier: String
        package let name: String
        /// Whether it runs, and need not be started.
        package let isRunning: Bool

        package init(identifier: String, name: String, isRunning: Bool) {
            self.identifier = identifier
            self.name = name
            self.isRunning = isRunning
        }
    }

    /// A running application of the activity's team, and whether it has registered for the activity's type.
    package typealias Running = (identifier: String, name: String, continues: Bool)

    /// The applications of the activity's team that declare its type, sorted by name and then by identifier.
    ///
    /// A running application is judged by its registration and not by its manifest. An application that does not run is
    /// listed if it can be started.
    package static func candidates(
        forType type: String, team: TeamTag, installed: [ApplicationManifest], running: [Running]
    ) -> [Candidate] {
        let here = Set(running.map(\.identifier))
        var candidates = running.filter(\.continues)
            .map { Candidate(identifier: $0.identifier, name: $0.name, isRunning: true) }
        for manifest in installed
        where !here.contains(manifest.identifier) && !manifest.command.isEmpty && manifest.activityTypes.contains(type)
            && TeamTag(of: manifest.team) == team
        {
            candidates.append(Candidate(identifier: manifest.identifier, name: manifest.name, isRunning: false))
        }
        // An application may run twice.
        var seen: Set<String> = []
        return candidates.filter { seen.insert($0.identifier).inserted }
            .sorted { ($0.name, $0.identifier) < ($1.name, $1.identifier) }
    }

    /// Chooses: the one in front, then the most recently used, then the user.
    ///
    /// - Parameters:
    ///   - inFront: identifiers of the applications that the user is at, the latest first.
    ///   - recentlyUsed: identifiers, the latest first.
    /// - Returns: the one; several if the user is to be asked, in their order; none if there is none.
    package static func decide(
        among candidates: [Candidate], inFront: [String], recentlyUsed: [String]
    ) -> [Candidate] {
        for identifier in inFront + recentlyUsed {
            if let candidate = candidates.first(where: { $0.identifier == identifier }) { return [candidate] }
        }
        return candidates
    }
}
