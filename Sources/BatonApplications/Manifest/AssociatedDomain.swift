// SPDX-License-Identifier: Apache-2.0

/// A host whose web pages an application wants to open: an entry of `com.apple.developer.associated-domains` for the
/// service `activitycontinuation`. Which pages those are, `BatonWeb` tells.
///
/// Source: Apple's documentation, *Associated Domains Entitlement* and *Configuring an associated domain*.
package struct AssociatedDomain: Sendable, Hashable, CustomStringConvertible {
    /// The service that Handoff is; entries of others (`applinks`, `webcredentials`, `appclips`) are not for us.
    package static let service = "activitycontinuation"

    /// In lower case, without `*.`.
    package let host: String
    /// Whether it stands for every host beneath ``host``, which then itself is not meant.
    package let isWildcard: Bool
    /// `nil`: the scheme's own.
    package let port: UInt16?

    /// Reads an entry of the entitlement, such as `activitycontinuation:*.example.org?mode=developer`.
    ///
    /// What stands behind `?` says where Apple's devices look for the site's file, and is of no account here.
    ///
    /// - Returns: `nil` for another service.
    package static func entry(_ text: String) throws(ApplicationManifestError) -> AssociatedDomain? {
        guard let colon = text.firstIndex(of: ":") else {
            throw .malformed("the associated domain \"\(text)\" has no service: write \(service):\(text)")
        }
        guard text[..<colon] == service else { return nil }
        return try AssociatedDomain(String(text[text.index(after: colon)...]))
    }

    /// Reads `example.org`, `*.example.org` or `example.org:8443`.
    package init(_ text: String) throws(ApplicationManifestError) {
        func malformed() -> ApplicationManifestError {
            .malformed("\"\(text)\" is no domain: write example.org, or *.example.org for every host beneath it")
        }
        var rest = text.prefix { $0 != "?" }
        isWildcard = rest.hasPrefix("*.")
        if isWildcard { rest = rest.dropFirst(2) }
        if let colon = rest.firstIndex(of: ":") {
            let digits = rest[rest.index(after: colon)...]
            guard digits.allSatisfy({ $0.isASCII && $0.isNumber }), let port = UInt16(digits), port > 0 else {
                throw malformed()
            }
            self.port = port
            rest = rest[..<colon]
        } else {
            port = nil
        }
        host = rest.lowercased()
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        // A star before a top-level domain would claim everybody's pages.
        guard host.utf8.count <= 253, labels.count >= (isWildcard ? 2 : 1), labels.allSatisfy(Self.isLabel) else {
            throw malformed()
        }
    }

    /// As it is written, without the service.
    package var description: String { (isWildcard ? "*." : "") + host + (port.map { ":\($0)" } ?? "") }

    /// RFC 1123, 2.1; an international name comes in its ASCII form (`xn--`).
    private static func isLabel(_ label: Substring) -> Bool {
        (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
            && label.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
                    true
                case _: false
                }
            }
    }
}
