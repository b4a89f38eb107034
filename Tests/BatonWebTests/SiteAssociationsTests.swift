// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonEventLoop
import BatonTestSupport
import Logging
import Testing

@testable import BatonWeb

struct SiteAssociationsTests {
    private let reader: ApplicationManifest
    private let other: ApplicationManifest

    init() throws {
        reader = try ApplicationManifest(
            team: "TEAM", identifier: "org.example.reader", domains: ["example.org", "*.example.org"])
        other = try ApplicationManifest(team: "TEAM", identifier: "org.example.other", domains: ["example.org"])
    }

    /// A host table and a clock of the test, and a record of the hosts that were asked.
    private final class World: Sendable {
        struct State {
            var now = Duration.zero
            var asked: [String] = []
            var answers: [String: SiteAssociation] = [:]
            var failure = SiteAssociationError("there is none")
            var held: [CheckedContinuation<Void, Never>] = []
            var isHolding = false
        }
        let state = Lock(State())

        var asked: [String] { state.withLock { $0.asked } }

        func associations() -> SiteAssociations {
            SiteAssociations(
                logger: Logger(label: "test"), now: { [self] in state.withLock { $0.now } },
                fetch: { [self] host throws(SiteAssociationError) in try await answer(for: host) })
        }

        private func answer(for host: WebHost) async throws(SiteAssociationError) -> SiteAssociation {
            let isHolding = state.withLock { state in
                state.asked.append(host.name)
                return state.isHolding
            }
            if isHolding { await hold() }
            if Task.isCancelled { throw SiteAssociationError("nobody waits") }
            return try state.withLock { state throws(SiteAssociationError) in
                guard let answer = state.answers[host.name] else { throw state.failure }
                return answer
            }
        }

        private func hold() async {
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    state.withLock { $0.held.append(continuation) }
                    if Task.isCancelled { release() }
                }
            } onCancel: {
                release()
            }
        }

        func release() {
            let held = state.withLock { state in
                defer { state.held = [] }
                return state.held
            }
            for continuation in held { continuation.resume() }
        }
    }

    private func world(_ hosts: String...) throws -> World {
        let world = World()
        let file = try SiteAssociation(Site.file)
        world.state.withLock { state in
            for host in hosts { state.answers[host] = file }
        }
        return world
    }

    @Test func onlyClaimedHostsAreAsked() async throws {
        let world = try world("example.org", "example.com")
        let associations = world.associations()
        for host in ["example.com", "notexample.org", "org", "127.0.0.1", "", "[::1]"] {
            #expect(await associations.applications(claiming: host, among: [reader, other]).isEmpty)
        }
        #expect(await associations.applications(claiming: "example.org", among: []).isEmpty)
        #expect(world.asked.isEmpty)
        #expect(await associations.applications(claiming: "EXAMPLE.org", among: [other, reader]) == [reader])
        #expect(world.asked == ["example.org"])
    }

    @Test func wildcardsAskTheDomain() async throws {
        let world = try world("example.org")
        let associations = world.associations()
        #expect(await associations.applications(claiming: "a.b.example.org", among: [reader, other]) == [reader])
        #expect(world.asked == ["example.org"])
        // The host's own list counts for applications that name the host, and for no other.
        let exact = try ApplicationManifest(
            team: "TEAM", identifier: "org.example.reader", domains: ["www.example.org", "*.example.org"])
        #expect(await associations.applications(claiming: "www.example.org", among: [exact]).isEmpty)
        #expect(world.asked == ["example.org", "www.example.org"])
    }

    @Test func oneQuestionAsksFourHosts() async throws {
        let world = try world()
        let host = "a.b.c.d.e.example.org"
        let domains = ["*.example.org", "*.e.example.org", "*.d.e.example.org", "*.c.d.e.example.org", host]
        let candidates = try domains.enumerated().map {
            try ApplicationManifest(team: "TEAM", identifier: "org.example.reader\($0)", domains: [$1])
        }
        #expect(await world.associations().applications(claiming: host, among: candidates).isEmpty)
        #expect(
            Set(world.asked) == [host, "c.d.e.example.org", "d.e.example.org", "e.example.org"])
        #expect(world.asked.count == SiteAssociations.maximumSources)
    }

    @Test func answersCountForADay() async throws {
        let world = try world("example.org")
        let associations = world.associations()
        for (time, asked) in [(0, 1), (86_399, 1), (86_400, 2)] {
            world.state.withLock { $0.now = .seconds(time) }
            #expect(await associations.applications(claiming: "example.org", among: [reader]) == [reader])
            #expect(world.asked.count == asked)
        }
    }

    @Test func failuresCountForAMinute() async throws {
        let world = try world()
        let associations = world.associations()
        for (time, asked) in [(0, 1), (59, 1), (60, 2)] {
            world.state.withLock { $0.now = .seconds(time) }
            #expect(await associations.applications(claiming: "example.org", among: [reader]).isEmpty)
            #expect(world.asked.count == asked)
        }
    }

    @Test func fullMemoryIsForgotten() async throws {
        let world = try world()
        let associations = world.associations()
        let hosts = (0...SiteAssociations.maximumHosts).map { "h\($0).example.org" }
        for host in hosts + hosts.suffix(1) + hosts.prefix(1) {
            let application = try ApplicationManifest(
                team: "TEAM", identifier: "org.example.reader", domains: [host])
            #expect(await associations.applications(claiming: host, among: [application]).isEmpty)
        }
        // The last is remembered, and the first is not.
        #expect(world.asked == hosts + hosts.prefix(1))
    }

    @Test func cancelledQuestion() async throws {
        let world = try world("example.org")
        world.state.withLock { $0.isHolding = true }
        let associations = world.associations()
        let question = Task { await associations.applications(claiming: "example.org", among: [reader]) }
        try await eventually("it waits") { !world.state.withLock { $0.held.isEmpty } }
        question.cancel()
        // It takes the fetch with it, and nothing is remembered.
        #expect(await question.value.isEmpty)
        #expect(world.state.withLock { $0.held.isEmpty })
        world.state.withLock { $0.isHolding = false }
        #expect(await associations.applications(claiming: "example.org", among: [reader]) == [reader])
        #expect(world.asked.count == 2)
    }
}

/// From the question to the server and back.
@Suite(.enabled(if: WebServer.unavailableReason == nil, "\(WebServer.unavailableReason ?? "")"))
struct SiteAssociationsServerTests {
    private let reader: ApplicationManifest
    private let stranger: ApplicationManifest

    init() throws {
        reader = try ApplicationManifest(team: "TEAM", identifier: "org.example.reader", domains: ["*.example.org"])
        stranger = try ApplicationManifest(team: "OTHER", identifier: "org.example.reader", domains: ["*.example.org"])
    }

    @Test func listed() async throws {
        let site = try await Site([Site.newPath: .file(Site.file)])
        let associations = SiteAssociations(site.configuration, logger: Logger(label: "test"))
        for _ in 0..<3 {
            let found = await associations.applications(claiming: "www.example.org", among: [stranger, reader])
            #expect(found == [reader])
        }
        #expect(site.server.requests == ["example.org \(Site.newPath)"])
    }

    @Test func notBelieved() async throws {
        let site = try await Site([Site.newPath: .file(Site.file)])
        var configuration = site.configuration
        configuration.allowsPrivateAddresses = false
        let associations = SiteAssociations(configuration, logger: Logger(label: "test"))
        #expect(await associations.applications(claiming: "www.example.org", among: [reader]).isEmpty)
        #expect(site.server.requests.isEmpty)
    }
}
