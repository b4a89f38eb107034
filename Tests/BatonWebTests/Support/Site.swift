// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonTLS
import BatonTestSupport
import Testing

@testable import BatonWeb

/// The site of the tests, `example.org`, with a server and an authority of its own.
struct Site {
    static let newPath = SiteAssociationFetcher.paths[0]
    static let oldPath = SiteAssociationFetcher.paths[1]
    static let file = Array(#"{"activitycontinuation":{"apps":["TEAM.org.example.reader"]}}"#.utf8)

    let authority: WebAuthority
    let server: WebServer
    let host: WebHost

    init(
        _ answers: [String: WebServer.Answer], host: String = "example.org",
        certificateFor name: String? = nil, _ profile: WebAuthority.Profile = .init(), on address: String = "127.0.0.1",
        speaksOldTLS: Bool = false
    ) async throws {
        authority = try await WebAuthority()
        let holder = try await authority.issue(to: name ?? host, profile)
        server = try await WebServer(as: holder, answers: answers, on: address, speaksOldTLS: speaksOldTLS)
        self.host = try #require(WebHost(host))
    }

    /// A fetcher's settings for this site.
    var configuration: SiteAssociationFetcher.Configuration {
        var configuration = SiteAssociationFetcher.Configuration()
        configuration.allowsPrivateAddresses = true
        configuration.anchors = .certificates(pem: authority.pem)
        configuration.server = server.address
        return configuration
    }

    /// Asks the site.
    func ask(
        _ change: (inout SiteAssociationFetcher.Configuration) -> Void = { _ in }
    ) async -> Result<SiteAssociation, SiteAssociationError> {
        var configuration = configuration
        // The machine may be slow. Tests about time set their own.
        configuration.time = .seconds(30)
        change(&configuration)
        do throws(SiteAssociationError) {
            return .success(try await SiteAssociationFetcher(configuration).association(of: host))
        } catch {
            return .failure(error)
        }
    }
}

extension Result where Success == SiteAssociation, Failure == SiteAssociationError {
    /// Whether the site lists the application that the tests have.
    var listsReader: Bool {
        (try? get().lists(team: "TEAM", identifier: "org.example.reader")) ?? false
    }

    /// The reason why there is no list; nil if there is one.
    var refusal: Refusal? {
        switch self {
        case .success: nil
        case .failure(let error): Refusal(error)
        }
    }
}

/// The kinds of ``SiteAssociationError``, each by words that only its clauses have.
enum Refusal: String, CaseIterable {
    case unreachable = "cannot be reached"
    case addressRefused = "no address of the internet"
    case timedOut = "did not answer in time"
    case certificateRefused = "the certificate of"
    case insecure = "does not speak HTTPS"
    case redirected = "sends elsewhere"
    case notThere = "answers with status"
    case nowhere = "has no apple-app-site-association"
    case tooLarge = "sends more than"
    case fileTooLarge = "its file is larger"
    case signatureRefused = "the signature of its file"
    case malformed = "its file"
    case busy = "too many sites"
    case cancelled = "nobody waits"

    init?(_ error: SiteAssociationError) {
        guard let kind = Self.allCases.first(where: { error.description.contains($0.rawValue) }) else { return nil }
        self = kind == .nowhere ? .notThere : kind == .fileTooLarge ? .tooLarge : kind
    }
}
