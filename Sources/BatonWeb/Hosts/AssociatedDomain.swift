// SPDX-License-Identifier: Apache-2.0

/// A domain that an application says it belongs to: `example.org`, or `*.example.org` for every host below that.
///
/// "For services other than appclips, you can prefix a domain with *. to match all of its subdomains" (Apple,
/// "Supporting associated domains"). `*.example.org` is not `example.org` itself (Apple, "Associated Domains
/// Entitlement"), yet `example.org` is where the file that speaks for all of them is fetched: what a host below says
/// about the others counts for nothing.
struct AssociatedDomain: Hashable {
    /// The host that says which applications belong to the domain.
    let source: WebHost
    private let isWildcard: Bool

    /// Reads a domain as the entitlement has it behind `activitycontinuation:`; nil for anything else.
    init?(_ text: String) {
        let isWildcard = text.hasPrefix("*.")
        guard let source = WebHost(isWildcard ? text.dropFirst(2) : text[...]) else { return nil }
        // A top-level domain has no operator that could list applications for all of it.
        guard !isWildcard || source.name.utf8.contains(UInt8(ascii: ".")) else { return nil }
        self.source = source
        self.isWildcard = isWildcard
    }

    /// Whether the host is of this domain.
    func contains(_ host: WebHost) -> Bool {
        isWildcard ? host.isBelow(source) : host == source
    }

    /// The domain that counts for a host: the longest of those that contain it, which is the host itself where it is
    /// there ("matching is based on the longest substring", Apple, "Associated Domains Entitlement").
    static func closest(to host: WebHost, in domains: [String]) -> AssociatedDomain? {
        domains.compactMap(AssociatedDomain.init).filter { $0.contains(host) }
            .max { $0.source.name.utf8.count < $1.source.name.utf8.count }
    }
}
