// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonCore
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import BatonWeb
import FoundationEssentials
import Logging

import struct SystemPackage.FilePath

/// The applications of this user: those that run and have registered, and those that are installed and can be launched.
@ControlLoop
final class Applications {
    /// Applications that may be registered at once, one on each connection; one more is refused.
    nonisolated static let bound = 128
    /// How long an application may take to start and register.
    nonisolated static let launchDeadline = Duration.seconds(20)
    /// The time from a use to its write, so that two applications that take turns in front do not keep the disk busy:
    /// 2 s.
    nonisolated static let writeInterval = Duration.seconds(2)

    let launcher: ApplicationLauncher
    let logger: Logger
    let launchDeadline: Duration
    private let handoffSwitch: HandoffSwitchKeeper
    private let associations: SiteAssociations
    /// One on each connection. The last is the one that registered or came to the front last.
    private var registrations: [RunningApplication] = []
    /// Applications that are launched and have not registered yet, by their identifiers.
    var launches: [String: Launch] = [:]
    /// The callers that wait for an application: no more than there are handoffs under way.
    let arrivals = WaitList<String>(bound: HandoffTable.bound, boundPerKey: HandoffTable.bound)
    let registry: ApplicationRegistry
    /// Problems with files that were logged already.
    @StorageThread private var problems: [InstalledApplications.Problem] = []
    private(set) var recent: RecentApplications
    private let recentPath: FilePath
    private var recentTimer = DeadlineTimer()

    /// - Parameters:
    ///   - environment: where desktop entries and programs are found, and what applications inherit.
    ///   - recent: the applications that were used last, as they are in the file.
    nonisolated init(
        home: Home, environment: [String: String], recent: RecentApplications, handoffSwitch: HandoffSwitchKeeper,
        associations: SiteAssociations, launchDeadline: Duration = Applications.launchDeadline, logger: Logger
    ) {
        launcher = ApplicationLauncher(environment: environment)
        registry = ApplicationRegistry(
            configurationFolder: FilePath(home.configurationFolder),
            desktopEntries: DesktopEntryFolders(environment: environment))
        recentPath = RecentApplications.path(in: FilePath(home.stateFolder))
        self.recent = recent
        self.handoffSwitch = handoffSwitch
        self.associations = associations
        self.launchDeadline = launchDeadline
        self.logger = logger
    }

    // MARK: Installed

    /// The applications that are installed now.
    @StorageThread var installed: [ApplicationManifest] {
        let found = registry.installed()
        if found.problems != problems {
            problems = found.problems
            for problem in problems { logger.warning("applications: \(problem)") }
        }
        return found.applications
    }

    /// Notes that an application is used now: it continues something, comes to the front, or makes an activity current.
    ///
    /// Nobody waits for the file. Uses within ``writeInterval`` are written together, or lost with the node.
    func noteUse(of identifier: String) {
        guard recent.identifiers.first != identifier else { return }
        recent.note(identifier)
        guard !recentTimer.isScheduled else { return }
        recentTimer.schedule(at: .now + Self.writeInterval) { [weak self] in self?.writeRecent() }
    }

    private func writeRecent() {
        StorageThread.executor.submit { [recent, recentPath, logger] in
            do {
                try recent.write(to: recentPath)
            } catch {
                logger.warning("which application was used last cannot be kept: \(error)")
            }
        }
    }

    // MARK: Registering

    /// An application runs. One that is in front is noted as used.
    func register(_ application: RunningApplication) throws(HandoffError) {
        guard registrations.count < Self.bound else {
            throw HandoffError(.limitExceeded, "\(Self.bound) applications are registered already")
        }
        if let other = identifier(on: application.connection) {
            throw HandoffError(
                .invalidRequest,
                "\(other) is registered on this connection already: each application needs one of its own")
        }
        registrations.append(application)
        arrivals.wake(application.identifier)
        if application.isInFront { noteUse(of: application.identifier) }
    }

    /// Changes what an application, known by its connection, says of itself. If it comes to the front, it is noted as
    /// used.
    func update(to application: RunningApplication) throws(HandoffError) {
        guard let index = registrations.firstIndex(where: { $0.connection === application.connection }) else { return }
        let before = registrations[index]
        guard before.identifier == application.identifier, before.team == application.team else {
            throw HandoffError(
                .invalidRequest, "an application keeps its identifier and its team while it is registered")
        }
        registrations[index] = application
        if application.isInFront && !before.isInFront {
            registrations.append(registrations.remove(at: index))
            noteUse(of: application.identifier)
        }
    }

    /// One of an application's activities became current: the user is at that application.
    func activityBecameCurrent(on connection: Connection) {
        if let identifier = identifier(on: connection) { noteUse(of: identifier) }
    }

    /// The application on this connection runs no more.
    func unregister(_ connection: Connection) {
        registrations.removeAll { $0.connection === connection }
    }

    var count: Int { registrations.count }

    // MARK: Choosing

    /// Which application continues an activity.
    ///
    /// Of a web page these are the browsers of its team, which are applications that declare the type. An
    /// application that claims hosts is no browser: ``applications(opening:wanted:)`` decides about it, first.
    /// Without either the page is for the user's default browser.
    ///
    /// Of several, those that do not read the activity's version are passed over, unless none does; a page has the
    /// default browser then.
    ///
    /// - Parameter wanted: the identifier of the one that the user chose; empty where the user has not.
    /// - Throws: ``HandoffError``: the chosen one does not continue such activities; the one there is cannot read this
    ///   version; Handoff is off.
    func choose(
        for activity: WireActivitySummary, of device: String, wanted: String
    ) async throws(HandoffError) -> [ApplicationChoice.Candidate] {
        guard let team = TeamTag(activity.teamTag) else { return [] }
        let handoffSwitch = handoffSwitch.current
        try handoffSwitch.requireOn(for: wanted)
        let manifests = await installed
        var all = candidates(continuing: activity.type, of: team, installed: manifests)
        let isPage = activity.type == ActivityType.browsingWeb
        if isPage {
            let claiming = Set(manifests.filter { !$0.associatedDomains.isEmpty }.map(\.identifier))
            all.removeAll { claiming.contains($0.identifier) }
        }
        let candidates = all.filter { handoffSwitch.isOn(for: $0.identifier) }
        if candidates.isEmpty, !isPage, let off = all.first { try handoffSwitch.requireOn(for: off.identifier) }
        let decision: [ApplicationChoice.Candidate]
        if wanted.isEmpty {
            // If another application can read it, those that cannot are passed over, also in front.
            let readers = candidates.filter {
                versions(of: $0, team, continuing: activity.type, installed: manifests)?
                    .reads(version: activity.version, of: activity.type) ?? true
            }
            decision = ApplicationChoice.decide(
                among: readers.isEmpty && !isPage ? candidates : readers, inFront: inFront,
                recentlyUsed: recent.identifiers)
        } else {
            guard let chosen = candidates.first(where: { $0.identifier == wanted }) else {
                throw HandoffError(
                    .invalidRequest, "\(wanted) does not continue \(activity.type): see `baton applications list`")
            }
            decision = [chosen]
        }
        if decision.count == 1, let chosen = decision.first {
            try versions(of: chosen, team, continuing: activity.type, installed: manifests)?
                .require(activity, of: device, by: chosen.name)
        }
        return decision
    }

    /// For each activity the application that would continue it, if Handoff is switched off for it and for every other
    /// that could. Empty if one may, if none could at all, or if a browser takes it.
    func switchedOff(for activities: [WireActivitySummary]) async -> [String] {
        let handoffSwitch = handoffSwitch.current
        let manifests = handoffSwitch.offApplications.isEmpty ? [] : await installed
        return activities.map { activity in
            guard !handoffSwitch.offApplications.isEmpty, activity.type != ActivityType.browsingWeb,
                let team = TeamTag(activity.teamTag)
            else { return "" }
            let all = candidates(continuing: activity.type, of: team, installed: manifests)
            return all.contains { handoffSwitch.isOn(for: $0.identifier) } ? "" : all.first?.identifier ?? ""
        }
    }

    /// The applications of a team that continue a type, running or not. A program of another team with the same name
    /// does not count, and does not hide the right one.
    private func candidates(
        continuing type: String, of team: TeamTag, installed manifests: [ApplicationManifest]
    ) -> [ApplicationChoice.Candidate] {
        ApplicationChoice.candidates(
            forType: type, team: team, installed: manifests,
            running: registrations.filter { TeamTag(of: $0.team) == team }
                .map { ($0.identifier, $0.name, $0.types.contains(type)) })
    }

    /// Which versions an application reads: as it says while it runs, else as its manifest has it.
    private func versions(
        of candidate: ApplicationChoice.Candidate, _ team: TeamTag, continuing type: String,
        installed manifests: [ApplicationManifest]
    ) -> ReadableVersions? {
        running(candidate.identifier, of: team, continuing: type)?.versions
            ?? manifests.first { $0.identifier == candidate.identifier }?.readableVersions
    }

    /// An application that may open a web page.
    struct PageApplication: Sendable, Equatable {
        let candidate: ApplicationChoice.Candidate
        /// The application's, which another program under its name has not.
        let team: TeamTag
    }

    /// Which applications open a web page, because they claim the page's host and the host lists them.
    ///
    /// The host is asked where an installed application claims it, and nobody otherwise.
    ///
    /// - Parameter wanted: the identifier of the one that the user chose; empty where the user has not.
    /// - Returns: none where the page is the browser's; several where the user is to choose, because none of them is in
    ///   front or was used before.
    func applications(opening page: String, wanted: String = "") async -> [PageApplication] {
        guard let url = URLComponents(string: page), url.port == nil, let host = url.host else { return [] }
        let handoffSwitch = handoffSwitch.current
        let manifests = await installed.filter {
            !$0.associatedDomains.isEmpty && handoffSwitch.isOn(for: $0.identifier)
                && (wanted.isEmpty || $0.identifier == wanted)
                && (!$0.command.isEmpty || running($0.identifier, of: TeamTag(of: $0.team), continuing: nil) != nil)
        }
        let pages = await associations.applications(claiming: host, among: manifests).map {
            let team = TeamTag(of: $0.team)
            return PageApplication(
                candidate: ApplicationChoice.Candidate(
                    identifier: $0.identifier, name: $0.name,
                    isRunning: running($0.identifier, of: team, continuing: nil) != nil),
                team: team)
        }.sorted { ($0.candidate.name, $0.candidate.identifier) < ($1.candidate.name, $1.candidate.identifier) }
        let decision = ApplicationChoice.decide(
            among: pages.map(\.candidate), inFront: inFront, recentlyUsed: recent.identifiers)
        return decision.compactMap { candidate in pages.first { $0.candidate == candidate } }
    }

    /// Whether an installed application claims hosts, so that the user may want web pages to open in it.
    func claimsHosts(_ identifier: String) async -> Bool {
        await installed.contains { $0.identifier == identifier && !$0.associatedDomains.isEmpty }
    }

    /// An application did not take a page that it may open, which a browser gets instead.
    func noteLeftPage(of application: String, because error: HandoffError) {
        logger.info("\(application) does not open the web page, which is left to the browser: \(error.message)")
    }

    /// The running instance of an application that the user was at last, among those of its team that continue the
    /// type.
    ///
    /// - Parameter type: `nil` for a page whose host the application belongs to, which it need not declare.
    func running(_ identifier: String, of team: TeamTag, continuing type: String?) -> RunningApplication? {
        registrations.last { application in
            application.identifier == identifier && TeamTag(of: application.team) == team
                && (type.map { application.types.contains($0) } ?? true)
        }
    }

    /// Declines what the user has switched off since it was chosen.
    func requireOn(for identifier: String) throws(HandoffError) {
        try handoffSwitch.current.requireOn(for: identifier)
    }

    /// The identifier that an application registered under on this connection; `nil` where none has.
    func identifier(on connection: Connection) -> String? {
        registrations.first { $0.connection === connection }?.identifier
    }

    /// The applications in front, the latest first.
    private var inFront: [String] {
        registrations.filter(\.isInFront).map(\.identifier).reversed()
    }
}

extension ReadableVersions {
    /// Declines, before anybody waits if possible, where the application cannot read what the origin's wrote.
    func require(
        _ activity: WireActivitySummary, of device: String, by name: String
    ) throws(HandoffError) {
        guard !reads(version: activity.version, of: activity.type), let range = statements[activity.type] else {
            return
        }
        let readable =
            range.count == 1 ? "version \(range.lowerBound)" : "versions \(range.lowerBound) to \(range.upperBound)"
        throw HandoffError(
            .versionUnreadable,
            "\(name) on this device reads \(readable) of \(activity.type), and \(device) offers version"
                + " \(activity.version): update it where it is older")
    }
}
