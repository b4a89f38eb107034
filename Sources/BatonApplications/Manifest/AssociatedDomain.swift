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
            throw .init("the associated domain \"\(text)\" has no service: write \(service):\(text)")
        }
        guard text[..<colon] == service else { return nil }
        return try AssociatedDomain(String(text[text.index(after: colon)...]))
    }

    /// Reads `example.org` or `*.example.org`. A query (`?mode=developer`) tells Apple's devices where to look, and is
    /// dropped.
    package init(_ text: String) throws(ApplicationManifestError) {
        var name = text.prefix { $0 != "?" }
        guard !name.contains(":") else {
            throw .init("the domain \"\(text)\" has a port, and no page is matched by its port: leave it out")
        }
        isWildcard = name.hasPrefix("*.")
        if isWildcard { name = name.dropFirst(2) }
        // Nobody speaks for all of a top-level domain.
        guard let source = WebHost(name), !isWildcard || source.name.utf8.contains(UInt8(ascii: ".")) else {
            throw .init("\"\(text)\" is no domain: write example.org, or *.example.org for every host beneath it")
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

/// The DNS name of a web host, as addresses, certificates and DNS questions have it: letters, digits and hyphens in
/// lower case (RFC 1123, section 2.1), an international name in its ASCII form (`xn--…`).
///
/// It is never an IP address, in none of the spellings that libraries accept (`127.1`, `0x7f000001`), because a site is
/// known by its name.
package struct WebHost: Sendable, Hashable, CustomStringConvertible {
    /// The most bytes of a name (RFC 1035, section 2.3.4).
    package static let maximumLength = 253
    /// The most bytes between two dots.
    static let maximumLabelLength = 63

    /// The name, without a dot at its end.
    package let name: String

    /// Reads a name in either case, with or without the dot of the root at its end; nil for anything else.
    package init?(_ text: some StringProtocol) {
        guard text.utf8.count <= Self.maximumLength + 1 else { return nil }
        var bytes = text.utf8.map { (65...90).contains($0) ? $0 | 0x20 : $0 }
        if bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
        let labels = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard bytes.count <= Self.maximumLength, labels.allSatisfy(Self.isLabel),
            // No top-level domain begins with a digit, and every spelling of an IPv4 address ends in a part that does.
            let top = labels.last?.first, !Self.isDigit(top)
        else { return nil }
        name = String(decoding: bytes, as: UTF8.self)
    }

    private static func isLabel(_ label: ArraySlice<UInt8>) -> Bool {
        (1...maximumLabelLength).contains(label.count) && label.first != UInt8(ascii: "-")
            && label.last != UInt8(ascii: "-")
            && label.allSatisfy { isDigit($0) || (97...122).contains($0) || $0 == UInt8(ascii: "-") }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }

    /// Whether this host is below another: `www.example.org` below `example.org`, and no host below itself.
    package func isBelow(_ other: WebHost) -> Bool {
        name.utf8.count > other.name.utf8.count + 1 && name.hasSuffix("." + other.name)
    }

    /// The name.
    package var description: String { name }
}
