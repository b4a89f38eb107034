// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonEventLoop
import BatonTransport
import Logging

import struct SystemPackage.FilePath

/// Knows what is installed and which applications were used last, and launches them.
///
/// It lives on the node's storage thread; what has changed on disk is seen at the next question.
@StorageThread
final class ApplicationKeeper {
    /// The least time between two writes of what was used last: two applications may take turns in front as fast as
    /// they like. What is noted meanwhile is written with the next, or lost with the node.
    nonisolated static let writeInterval = Duration.seconds(2)

    private let launcher: ApplicationLauncher
    private let recentPath: FilePath
    private let writeInterval: Duration
    private let logger: Logger
    private var registry: ApplicationRegistry
    private var recent: RecentApplications?
    private var lastWrite: ContinuousClock.Instant?
    private var isWriteDue = false
    /// Problems with files that were logged already.
    private var problems: [InstalledApplications.Problem] = []

    /// - Parameter environment: where desktop entries and programs are found, and what applications inherit.
    nonisolated init(
        home: Home, environment: [String: String], logger: Logger,
        writeInterval: Duration = ApplicationKeeper.writeInterval
    ) {
        self.writeInterval = writeInterval
        self.logger = logger
        launcher = ApplicationLauncher(environment: environment)
        registry = ApplicationRegistry(
            configurationFolder: FilePath(home.configurationFolder),
            desktopEntries: DesktopEntryFolders(environment: environment))
        recentPath = RecentApplications.path(in: FilePath(home.stateFolder))
    }

    /// What is installed now.
    var installed: [ApplicationManifest] {
        let found = registry.installed()
        if found.problems != problems {
            problems = found.problems
            for problem in problems { logger.warning("applications: \(problem)") }
        }
        return found.applications
    }

    /// Identifiers, the latest first.
    var recentlyUsed: [String] {
        if recent == nil { recent = RecentApplications(reading: recentPath) }
        return recent?.identifiers ?? []
    }

    /// An application is used now: it continues something, comes to the front, or makes an activity current.
    func noteUse(of identifier: String) {
        var recent = RecentApplications(recentlyUsed)
        guard recent.identifiers.first != identifier else { return }
        recent.note(identifier)
        self.recent = recent
        guard !isWriteDue else { return }
        let now = ContinuousClock.now
        guard let next = lastWrite?.advanced(by: writeInterval), next > now else { return writeRecent() }
        isWriteDue = true
        Task {
            try? await Alarm.sleep(for: next - now)
            writeRecent()
        }
    }

    private func writeRecent() {
        (isWriteDue, lastWrite) = (false, .now)
        do {
            try recent?.write(to: recentPath)
        } catch {
            logger.warning("which application was used last cannot be kept: \(error)")
        }
    }

    /// Starts an application that is installed.
    ///
    /// - Parameters:
    ///   - type: of the activity that it is to continue.
    ///   - onEnd: as in ``ApplicationLauncher/launch(_:adding:onEnd:)``.
    /// - Returns: where it runs; `nil` if it is not installed any more.
    func launch(
        _ identifier: String, for type: String,
        onEnd: @escaping @Sendable (ApplicationLauncher.Ending, [String]) -> Void
    ) async throws(LaunchError) -> ApplicationLauncher.Place? {
        guard let manifest = registry.installed()[identifier] else { return nil }
        let place = try await launcher.launch(manifest, adding: ["BATON_ACTIVITY_TYPE": type]) {
            [logger] ending, said in
            let hasFailed = ending != .exited(0) && !said.isEmpty
            logger.log(
                level: hasFailed ? .notice : .info, "\(identifier) has ended: \(ending.sentence)\(quotation(of: said))")
            onEnd(ending, said)
        }
        switch place {
        case .unit(let unit): logger.info("\(identifier) was launched as the unit \(unit)")
        case .process(let process): logger.info("\(identifier) was launched as process \(process)")
        }
        return place
    }

    /// The last lines that a unit's processes wrote.
    nonisolated func lastLines(ofUnit unit: String) async -> [String] { await launcher.lastLines(ofUnit: unit) }
}
