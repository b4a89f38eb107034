// SPDX-License-Identifier: Apache-2.0

package import BatonApplications
import BatonEventLoop
package import Logging

/// Tells which installed applications may open a web page: those that claim its host and that the host lists.
///
/// A host is asked only if an installed application claims it, so that accepting a web page alone tells nobody about
/// it. After any failure the page goes to the browser; no application ever gets a page because a site could not be
/// asked.
///
/// A site's list counts for a day, and a failure for a minute. Both are in memory only: a file would tell which sites a
/// person visits.
package actor SiteAssociations {
    /// How many files one question fetches at most. An application can claim a host and domains above it, and several
    /// applications several of them; beyond, the shorter domains are left out.
    static let maximumSources = 4
    /// The most hosts that are remembered; then all are forgotten. The list of one takes 1 MiB at most.
    static let maximumHosts = 32
    /// How long a site's list counts, and how long a failure does.
    static let (validity, validityOfFailure) = (Duration.seconds(24 * 60 * 60), Duration.seconds(60))

    typealias Fetch = @Sendable (WebHost) async throws(SiteAssociationError) -> SiteAssociation

    private let fetch: Fetch
    /// Since the machine was started, sleep included.
    private let now: @Sendable () -> Duration
    private let logger: Logger
    /// The list of a host, or nil after a failure, and until when it counts.
    private var known: [WebHost: (association: SiteAssociation?, end: Duration)] = [:]

    /// Makes an empty cache. Nothing is fetched, and no thread runs, before the first question.
    ///
    /// - Parameters:
    ///   - configuration: the bounds of a fetch.
    ///   - logger: gets a sentence when a page goes to the browser although an application claims it.
    package init(
        _ configuration: SiteAssociationFetcher.Configuration = SiteAssociationFetcher.Configuration(), logger: Logger
    ) {
        let fetcher = SiteAssociationFetcher(configuration)
        self.init(logger: logger) { host throws(SiteAssociationError) in try await fetcher.association(of: host) }
    }

    /// The same with a fetch and a clock of a test.
    init(
        logger: Logger, now: @escaping @Sendable () -> Duration = { .nanoseconds(Int64(MonotonicClock.nanoseconds())) },
        fetch: @escaping Fetch
    ) {
        self.logger = logger
        self.now = now
        self.fetch = fetch
    }

    /// The applications that may open a page of the host, in the order given.
    ///
    /// Cancelling the task answers with none at once.
    ///
    /// - Parameters:
    ///   - host: the host of the page's address; no application gets a page of an IP address.
    ///   - candidates: installed applications.
    /// - Returns: those that the host, or the domain above it that they name, lists. None if no application claims the
    ///   host, and none after any failure: the page goes to the browser.
    package func applications(
        claiming host: String, among candidates: [ApplicationManifest]
    ) async -> [ApplicationManifest] {
        guard let host = WebHost(host) else { return [] }
        let claims = candidates.compactMap { application in
            AssociatedDomain.closest(to: host, in: application.associatedDomains)
                .map { (application, source: $0.source) }
        }
        // The longest first: the closer to the host, the more it has to say.
        let sources = Set(claims.map(\.source)).sorted { $0.name.utf8.count > $1.name.utf8.count }
        let answers = await withTaskGroup(of: (WebHost, SiteAssociation?).self) { group in
            for source in sources.prefix(Self.maximumSources) {
                group.addTask { (source, await self.association(of: source)) }
            }
            var answers: [WebHost: SiteAssociation] = [:]
            for await (source, association) in group { answers[source] = association }
            return answers
        }
        return claims.compactMap { application, source in
            guard let association = answers[source] else { return nil }
            guard association.lists(team: application.team, identifier: application.identifier) else {
                logger.info("\(host) opens in the browser: \(source) does not list \(application.identifier)")
                return nil
            }
            return application
        }
    }

    /// The association of a host, remembered or fetched now; nil if there is no valid one.
    private func association(of host: WebHost) async -> SiteAssociation? {
        if let answer = known[host], now() < answer.end { return answer.association }
        var association: SiteAssociation?
        do throws(SiteAssociationError) {
            association = try await fetch(host)
        } catch {
            guard !Task.isCancelled else { return nil }
            logger.info("pages of \(host) open in the browser: \(error)")
        }
        if known.count >= Self.maximumHosts { known = [:] }
        known[host] = (association, now() + (association == nil ? Self.validityOfFailure : Self.validity))
        return association
    }
}
