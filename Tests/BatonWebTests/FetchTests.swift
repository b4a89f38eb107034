// SPDX-License-Identifier: Apache-2.0

import BatonTLS
import BatonTestSupport
import Foundation
import Testing

@testable import BatonWeb

/// Against a real HTTPS server on loopback, through libcurl.
@Suite(.enabled(if: WebServer.unavailableReason == nil, "\(WebServer.unavailableReason ?? "")"))
struct FetchTests {
    @Test func plain() async throws {
        let site = try await Site([Site.newPath: .file(Site.file)])
        let outcome = await site.ask()
        #expect(outcome.listsReader, "\(outcome)")
        #expect(site.server.requests == ["example.org \(Site.newPath)"])
    }

    @Test func olderPlace() async throws {
        let site = try await Site([Site.oldPath: .file(Site.file)])
        #expect(await site.ask().listsReader)
        #expect(site.server.requests == ["example.org \(Site.newPath)", "example.org \(Site.oldPath)"])
    }

    /// Only "there is none" leads to the older place.
    @Test(arguments: [204, 206, 301, 302, 307, 308, 401, 403, 410, 500, 503])
    func otherStatus(_ status: Int) async throws {
        let site = try await Site([Site.newPath: .init(status: status), Site.oldPath: .file(Site.file)])
        #expect(await site.ask().refusal == ((300..<400).contains(status) ? .redirected : .notThere))
        #expect(site.server.requests.count == 1)
    }

    @Test func nowhere() async throws {
        let site = try await Site([:])
        #expect(await site.ask().refusal == .notThere)
        #expect(site.server.requests.count == 2)
    }

    @Test(arguments: [
        "https://other.example.com/apple-app-site-association", "http://example.org/apple-app-site-association",
        "https://example.org/apple-app-site-association", "/apple-app-site-association", "file:///etc/passwd",
    ])
    func redirects(_ target: String) async throws {
        let answer = WebServer.Answer(status: 302, headers: ["Location": target], body: Data(Site.file))
        let site = try await Site([Site.newPath: answer, Site.oldPath: .file(Site.file)])
        #expect(await site.ask().refusal == .redirected)
        #expect(site.server.requests.count == 1)
    }

    @Test func sizeAtTheBound() async throws {
        let padding = [UInt8](repeating: 0x20, count: SiteAssociation.maximumBytes - Site.file.count)
        let site = try await Site([Site.newPath: .file(Site.file + padding)])
        #expect(await site.ask().listsReader)
        try site.server.answer([Site.newPath: .file(Site.file + padding + [0x20])])
        #expect(await site.ask().refusal == .tooLarge)
        // The page of an error is not read, however large.
        let page = WebServer.Answer(status: 404, body: Data(count: 1 << 20))
        try site.server.answer([Site.newPath: page, Site.oldPath: .file(Site.file)])
        #expect(await site.ask().listsReader)
    }

    @Test func headersWithoutEnd() async throws {
        let site = try await Site([Site.newPath: .init(mode: "headers")])
        #expect(await site.ask().refusal == .tooLarge)
    }

    @Test(arguments: ["silent", "drip"])
    func slow(_ mode: String) async throws {
        // A file that would take 100 s.
        let file = Site.file + [UInt8](repeating: 0x20, count: 2000)
        let site = try await Site([Site.newPath: .file(file, mode: mode)])
        let start = ContinuousClock.now
        #expect(await site.ask { $0.time = .seconds(1) }.refusal == .timedOut)
        #expect(ContinuousClock.now - start < .seconds(20))
    }

    /// The default time of 5 s.
    @Test func slowAtTheDefault() async throws {
        let file = Site.file + [UInt8](repeating: 0x20, count: 2000)
        let site = try await Site([Site.newPath: .file(file, mode: "drip")])
        let start = ContinuousClock.now
        #expect(await site.ask { $0.time = SiteAssociationFetcher.Configuration().time }.refusal == .timedOut)
        let time = ContinuousClock.now - start
        // libcurl counts in whole milliseconds.
        #expect(time > .milliseconds(4990) && time < .seconds(25), "\(time)")
    }

    @Test func timeIsThatOfBothPlacesTogether() async throws {
        let site = try await Site([Site.oldPath: .init(mode: "silent")])
        #expect(await site.ask { $0.time = .seconds(8) }.refusal == .timedOut)
        #expect(site.server.requests.count == 2)
    }

    @Test func fetchesAtTheBound() async throws {
        let site = try await Site([Site.newPath: .init(mode: "silent")])
        var configuration = site.configuration
        configuration.time = .seconds(3)
        let fetcher = SiteAssociationFetcher(configuration)
        let codes = await withTaskGroup(of: Refusal?.self) { group in
            for _ in 0..<(SiteAssociationFetcher.threadBound + 2) {
                group.addTask {
                    do throws(SiteAssociationError) {
                        _ = try await fetcher.association(of: site.host)
                        return nil
                    } catch {
                        return Refusal(error)
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes.count { $0 == .busy } == 2)
        #expect(codes.count { $0 == .timedOut } == SiteAssociationFetcher.threadBound)
        // Threads come free again.
        try site.server.answer([Site.newPath: .file(Site.file)])
        var last: Bool?
        try await eventually("a fetch finds a thread") {
            last = (try? await fetcher.association(of: site.host))?.lists(
                team: "TEAM", identifier: "org.example.reader")
            return last != nil
        }
        #expect(last == true)
    }

    @Test func cutShort() async throws {
        let site = try await Site([Site.newPath: .file(Site.file, mode: "cut")])
        #expect(await site.ask().refusal == .insecure)
    }

    @Test func wrongContent() async throws {
        let deep = [UInt8](repeating: UInt8(ascii: "["), count: 1000)
        for body in [Array("<html>".utf8), deep, []] {
            let site = try await Site([Site.newPath: .file(body)])
            #expect(await site.ask().refusal == .malformed)
        }
    }

    @Test func certificates() async throws {
        let answers = [Site.newPath: WebServer.Answer.file(Site.file)]
        let other = try await Site(answers, certificateFor: "example.com")
        #expect(await other.ask().refusal == .certificateRefused)
        let selfSigned = try await Site(answers, .init(isSelfSigned: true))
        #expect(await selfSigned.ask().refusal == .certificateRefused)
        let client = try await Site(answers, .init(purpose: "clientAuth"))
        #expect(await client.ask().refusal == .certificateRefused)
        let expired = try await Site(answers, .init(isExpired: true))
        try await eventually("the certificate has expired") { await expired.ask().refusal == .certificateRefused }
        // By a good authority that the system does not know.
        let unknown = try await Site(answers)
        #expect(await unknown.ask { $0.anchors = .system }.refusal == .certificateRefused)
        for site in [other, selfSigned, client, unknown] { #expect(site.server.requests.isEmpty) }
        let wildcard = try await Site(answers, host: "www.example.org", certificateFor: "*.example.org")
        #expect(await wildcard.ask().listsReader)
    }

    @Test func oldTLS() async throws {
        let site = try await Site([Site.newPath: .file(Site.file)], speaksOldTLS: true)
        #expect(await site.ask().refusal == .insecure)
        #expect(site.server.requests.isEmpty)
    }

    /// The name leads to this machine, as DNS under a stranger's control may do at any moment.
    @Test(arguments: ["127.0.0.1", "::1"])
    func privateAddress(_ address: String) async throws {
        let site = try await Site([Site.newPath: .file(Site.file)], on: address)
        #expect(await site.ask { $0.allowsPrivateAddresses = false }.refusal == .addressRefused)
        #expect(site.server.requests.isEmpty)
        #expect(await site.ask().listsReader)
    }

    /// `localhost` is resolved without DNS.
    @Test func addressByName() async throws {
        let site = try await Site([Site.newPath: .file(Site.file)])
        let port = try #require(site.server.address.split(separator: ":").last)
        #expect(
            await site.ask {
                $0.allowsPrivateAddresses = false
                $0.server = "localhost:\(port)"
            }.refusal == .addressRefused)
        #expect(await site.ask { $0.server = "localhost:\(port)" }.listsReader)
    }

    @Test func addressOfNobody() async throws {
        let site = try await Site([Site.newPath: .file(Site.file)])
        let port = try #require(site.server.address.split(separator: ":").last)
        // The kernel takes 0.0.0.0 for this machine.
        #expect(await site.ask { $0.server = "0.0.0.0:\(port)" }.refusal == .addressRefused)
        #expect(site.server.requests.isEmpty)
    }

    @Test func nobodyListens() async throws {
        let site = try await Site([:])
        #expect(await site.ask { $0.server = "127.0.0.1:1" }.refusal == .unreachable)
    }

    /// In a process of its own: the environment is no place to write to while other tests read it.
    @Test func environmentIsIgnored() async {
        await #expect(processExitsWith: .success) {
            // A proxy that would refuse: libcurl reads these names for every handle.
            setenv("https_proxy", "http://127.0.0.1:1", 1)
            setenv("ALL_PROXY", "http://127.0.0.1:1", 1)
            let site = try await Site([Site.newPath: .file(Site.file)])
            #expect(await site.ask().listsReader)
        }
    }

    @Test func cancelled() async throws {
        let site = try await Site([Site.newPath: .init(mode: "silent")])
        let question = Task { await site.ask() }
        try await eventually("the server is asked") { !site.server.requests.isEmpty }
        let start = ContinuousClock.now
        question.cancel()
        #expect(await question.value.refusal == .cancelled)
        #expect(ContinuousClock.now - start < .seconds(10))
    }

    @Test func cancelledBefore() async throws {
        let site = try await Site([Site.newPath: .file(Site.file)])
        let question = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await site.ask()
        }
        #expect(await question.value.refusal == .cancelled)
    }
}

/// Files that the `openssl cms` command has signed, from the server to the list.
@Suite(.enabled(if: WebServer.unavailableReason == nil, "\(WebServer.unavailableReason ?? "")"))
struct SignedFileTests {
    private let site: Site

    init() async throws {
        site = try await Site([:])
    }

    private func ask(_ file: [UInt8]) async throws -> Result<SiteAssociation, SiteAssociationError> {
        try site.server.answer([Site.newPath: .file(file)])
        return await site.ask()
    }

    @Test func good() async throws {
        let signer = try await site.authority.issue(to: "example.org")
        #expect(try await ask(await site.authority.sign(Site.file, as: [signer])).listsReader)
        #expect(try await ask(await site.authority.sign(Site.file, as: [signer], ["-noattr"])).listsReader)
    }

    @Test func refused() async throws {
        let authority = site.authority
        let good = try await authority.issue(to: "example.org")
        let two = [good, try await authority.issue(to: "example.org")]
        let other = try await authority.issue(to: "example.com")
        let client = try await authority.issue(to: "example.org", .init(purpose: "clientAuth"))
        let selfSigned = try await authority.issue(to: "example.org", .init(isSelfSigned: true))
        var tampered = try await authority.sign(Site.file, as: [good])
        let place = try #require(tampered.firstRange(of: Array("reader".utf8))).lowerBound
        tampered[place] = UInt8(ascii: "R")
        #expect(try await ask(tampered).refusal == .signatureRefused)
        for (what, signers) in [
            ("two signers", two), ("wrong host", [other]), ("wrong purpose", [client]), ("self-signed", [selfSigned]),
        ] {
            let file = try await authority.sign(Site.file, as: signers)
            #expect(try await ask(file).refusal == .signatureRefused, "\(what)")
        }
        let expired = try await authority.sign(
            Site.file, as: [try await authority.issue(to: "example.org", .init(isExpired: true))])
        try await eventually("the certificate has expired") { try await ask(expired).refusal == .signatureRefused }
    }

    @Test func signedNonsense() async throws {
        let signer = try await site.authority.issue(to: "example.org")
        #expect(try await ask(await site.authority.sign(Array("<html>".utf8), as: [signer])).refusal == .malformed)
    }
}
