// SPDX-License-Identifier: Apache-2.0

/// A domain whose web pages an application claims: `example.org`, or `*.example.org` for every host below that.
///
/// It is an entry of `com.apple.developer.associated-domains` for the service `activitycontinuation`. `BatonWeb` asks
/// the domain whether the application belongs to it. `*.example.org` does not contain `example.org` itself, yet
/// `example.org` is the host that is asked: what a host below it says about the others does not count.
///
/// Source: Apple's documentation, *Associated Domains Entitlement* and *Supporting associated domains*.
package struct AssociatedDomain: Sendable, Hashable, CustomStringConvertible {
    /// The service that Handoff is. Entries of other services (`applinks`, `webcredentials`) are ignored.
    package static let service = "activitycontinuation"

    /// The host that is asked which applications belong to the domain.
    package let source: WebHost
    /// Whether the domain is every host below ``source``.
    package let isWildcard: Bool

    /// Reads an entry of the entitlement, such as `activitycontinuation:*.example.org?mode=developer`.
    ///
    /// - Returns: `nil` for another service.
    package static func entry(_ text: String) throws(ApplicationManifestError) -> AssociatedDomain? {
        guard let colon = text.firstIndex(of: ":") else {
            throw .malformed("the associated domain \"\(text)\" has no service: write \(service):\(text)")
        }
        guard text[..<colon] == service else { return nil }
        return try AssociatedDomain(String(text[text.index(after: colon)...]))
    }

    /// Reads `example.org` or `*.example.org`. A query (`?mode=developer`) tells Apple's devices where to look, and is
    /// dropped.
    package init(_ text: String) throws(ApplicationManifestError) {
        var name = text.prefix { $0 != "?" }
        guard !name.contains(":") else {
            throw .malformed("the domain \"\(text)\" has a port, and no page is matched by its port: leave it out")
        }
        isWildcard = name.hasPrefix("*.")
        if isWildcard { name = name.dropFirst(2) }
        // Nobody speaks for all of a top-level domain.
        guard let source = WebHost(name), !isWildcard || source.name.utf8.contains(UInt8(ascii: ".")) else {
            throw .malformed("\"\(text)\" is no domain: write example.org, or *.example.org for every host beneath it")
        }
        self.source = source
    }

    /// The domain as it is written, without the service.
    package var description: String { (isWildcard ? "*." : "") + source.name }

    /// Whether a host is of this domain.
    package func contains(_ host: WebHost) -> Bool {
        isWildcard ? host.isBelow(source) : host == source
    }

    /// The domain that decides about a host: the longest one that contains it ("matching is based on the longest
    /// substring", Apple, *Associated Domains Entitlement*).
    package static func closest(to host: WebHost, in domains: [AssociatedDomain]) -> AssociatedDomain? {
        domains.filter { $0.contains(host) }.max { $0.source.name.utf8.count < $1.source.name.utf8.count }
    }
}
