// SPDX-License-Identifier: Apache-2.0

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
