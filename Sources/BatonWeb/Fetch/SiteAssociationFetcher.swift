// SPDX-License-Identifier: Apache-2.0

package import BatonApplications
import BatonEventLoop
package import BatonTLS

/// Asks a web host which applications belong to it.
///
/// It fetches `https://HOST/.well-known/apple-app-site-association`. If the host answers 404, and only then, it tries
/// the older place, `https://HOST/apple-app-site-association`. It uses HTTPS alone, TLS 1.2 or later, on port 443, with
/// a certificate that the system's authorities signed. It follows no redirect ("with no redirects", Apple, "Supporting
/// associated domains") and uses no proxy, cookie, credential or `.netrc`.
///
/// The file is JSON, or JSON in a message that the operator of the host has signed; see `CMSVerifier`.
///
/// libcurl blocks, so each fetch has a thread of its own, and at most ``threadBound`` run at once.
package final class SiteAssociationFetcher: Sendable {
    /// The bounds of a fetch.
    package struct Configuration: Sendable {
        /// Whether a host may be in a private network or on this machine: no by default. For sites of an organisation
        /// that are nowhere else. Multicast and unspecified addresses stay refused.
        package var allowsPrivateAddresses = false
        /// The time of a whole fetch: 5 s by default. The caller gets an answer in that time. A thread that waits for
        /// the system's DNS resolver ends when the resolver does.
        package var time: Duration = .seconds(5)

        /// Whose certificates are believed; tests have their own authority.
        package var anchors = TrustAnchors.system
        /// An address to connect to instead of the host at port 443, as `127.0.0.1:8443`: for tests.
        package var server: String?

        /// The defaults.
        package init() {}
    }

    /// Where the file is, and where it used to be.
    static let paths = ["/.well-known/apple-app-site-association", "/apple-app-site-association"]

    /// The most fetches at once: 8. It bounds the threads of pages that other devices hand over.
    static let threadBound = 8

    private let configuration: Configuration
    private let running = Lock(0)

    /// Makes a fetcher. No thread runs before it is asked.
    package init(_ configuration: Configuration = Configuration()) {
        self.configuration = configuration
    }

    /// The association of a host, fetched now.
    ///
    /// Cancelling the task ends the wait at once, and the connection within a second.
    ///
    /// - Throws: ``SiteAssociationError``. After any error, no application belongs to the host.
    package func association(of host: WebHost) async throws(SiteAssociationError) -> SiteAssociation {
        let cancelled = SiteAssociationError("nobody waits for it any more")
        guard !Task.isCancelled else { throw cancelled }
        let configuration = configuration
        let deadline = MonotonicClock.deadline(after: configuration.time) ?? .max
        let outcome = FirstResult<Result<SiteAssociation, SiteAssociationError>>()
        try onThread {
            outcome.decide(Self.fetch(host, configuration, deadline) { outcome.isDecided })
        }
        let late = SiteAssociationError("\(host) did not answer in time")
        return try await outcome.value(
            ifCancelled: .failure(cancelled), within: configuration.time, else: .failure(late)
        ).get()
    }

    /// Runs `work` on a thread that ends with it.
    ///
    /// - Throws: `busy` if ``threadBound`` fetches run, or the machine has no thread to give.
    private func onThread(_ work: @escaping @Sendable () -> Void) throws(SiteAssociationError) {
        let isFree = running.withLock { running in
            guard running < Self.threadBound else { return false }
            running += 1
            return true
        }
        guard isFree else { throw SiteAssociationError("too many sites are asked at once") }
        do {
            try BlockingExecutor(name: "baton-web").submit { [self] in
                work()
                running.withLock { $0 -= 1 }
            }
        } catch {
            running.withLock { $0 -= 1 }
            throw SiteAssociationError("this machine has no thread to spare")
        }
    }

    /// Fetches and reads, on the calling thread.
    private static func fetch(
        _ host: WebHost, _ configuration: Configuration, _ deadline: UInt64, isCancelled: @escaping () -> Bool
    ) -> Result<SiteAssociation, SiteAssociationError> {
        do throws(SiteAssociationError) {
            let exchange = try HTTPSExchange(with: host, configuration, deadline: deadline, isCancelled: isCancelled)
            for path in paths {
                let answer = try exchange.get(path)
                switch answer.status {
                case 200: return .success(try read(answer.body, of: host, configuration.anchors))
                case 404: continue
                case 300..<400: throw SiteAssociationError("\(host) sends elsewhere for its file")
                default: throw SiteAssociationError("\(host) answers with status \(answer.status)")
                }
            }
            throw SiteAssociationError("\(host) has no apple-app-site-association")
        } catch {
            return .failure(error)
        }
    }

    /// Reads a file that came from a host.
    static func read(
        _ file: [UInt8], of host: WebHost, _ anchors: TrustAnchors
    ) throws(SiteAssociationError) -> SiteAssociation {
        guard CMSVerifier.mayBeSigned(file) else { return try SiteAssociation(file) }
        let content: [UInt8]
        do throws(TLSError) {
            content = try CMSVerifier(trusting: anchors).content(of: file, signedFor: host.name)
        } catch {
            throw SiteAssociationError("the signature of its file is not believed: \(error)")
        }
        return try SiteAssociation(content)
    }
}
