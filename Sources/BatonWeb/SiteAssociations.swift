// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonEventLoop
package import Logging

/// Tells which installed applications may open a web page: those that claim its host and that the host lists.
///
/// A host is asked only if an installed application claims it, so that accepting a web page alone tells nobody about
/// it. After any failure the page goes to the browser; no application ever gets a page because a site could not be
/// asked.
///
/// A site's list counts for a day, a refusal for an hour, a host without an answer for a minute; all of it in memory.
/// Concurrent questions about one host share one fetch.
package actor SiteAssociations {
    /// How many files one question fetches at most. An application can claim a host and domains above it, and several
    /// applications several of them; beyond, the shorter domains are left out.
    static let maximumSources = 4
    /// How many questions wait at once. Each has its activity that a person accepts; beyond, the browser opens the
    /// page.
    static let maximumQuestions = 64

    typealias Fetch = @Sendable (WebHost) async throws(SiteAssociationError) -> SiteAssociation

    private struct Pending {
        let number: Int
        let task: Task<Void, Never>
        var questions: [Int: CheckedContinuation<SiteAssociation?, Never>] = [:]
    }

    private let fetch: Fetch
    /// Since the machine was started, sleep included.
    private let now: @Sendable () -> Duration
    private let logger: Logger
    private var cache = VerdictCache()
    private var pending: [WebHost: Pending] = [:]
    /// How many questions wait for a host now.
    private(set) var waiting = 0
    private var lastNumber = 0

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
    ///   - candidates: the installed applications that have domains.
    /// - Returns: those that the host, or the domain above it that they name, lists. None if no application claims the
    ///   host, and none after any failure: the page goes to the browser.
    package func applications(
        claiming host: String, among candidates: [AssociatedApplication]
    ) async -> [AssociatedApplication] {
        guard let host = WebHost(host) else { return [] }
        let claims = candidates.compactMap { application in
            AssociatedDomain.closest(to: host, in: application.domains).map { (application, source: $0.source) }
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

    // MARK: - One host

    /// The association of a host, from the cache or fetched now; nil if there is no valid one.
    private func association(of host: WebHost) async -> SiteAssociation? {
        if let known = cache.association(of: host, at: now()) { return known }
        guard waiting < Self.maximumQuestions, !Task.isCancelled else { return nil }
        lastNumber += 1
        let number = lastNumber
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in self.ask(host, number, continuation) }
        } onCancel: {
            Task { await self.leave(host, number) }
        }
    }

    private func ask(_ host: WebHost, _ number: Int, _ continuation: CheckedContinuation<SiteAssociation?, Never>) {
        waiting += 1
        if pending[host] == nil {
            let task = Task {
                let outcome: Result<SiteAssociation, SiteAssociationError>
                do throws(SiteAssociationError) {
                    outcome = .success(try await fetch(host))
                } catch {
                    outcome = .failure(error)
                }
                finish(host, number, outcome)
            }
            pending[host] = Pending(number: number, task: task)
        }
        pending[host]?.questions[number] = continuation
    }

    /// Removes a waiter. A fetch without waiters is cancelled.
    private func leave(_ host: WebHost, _ number: Int) {
        guard let continuation = pending[host]?.questions.removeValue(forKey: number) else { return }
        waiting -= 1
        if pending[host]?.questions.isEmpty == true { pending.removeValue(forKey: host)?.task.cancel() }
        continuation.resume(returning: nil)
    }

    private func finish(_ host: WebHost, _ number: Int, _ outcome: Result<SiteAssociation, SiteAssociationError>) {
        // A cancelled fetch may end after another one of the same host has begun.
        guard let ended = pending[host], ended.number == number else { return }
        pending[host] = nil
        cache.remember(outcome, of: host, at: now())
        let association: SiteAssociation?
        switch outcome {
        case .success(let list):
            association = list
        case .failure(let error):
            association = nil
            logger.info("pages of \(host) open in the browser: \(error)")
        }
        waiting -= ended.questions.count
        for continuation in ended.questions.values { continuation.resume(returning: association) }
    }
}
