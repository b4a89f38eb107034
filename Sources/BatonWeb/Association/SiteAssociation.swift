// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import FoundationEssentials

/// A site's file `apple-app-site-association`: the applications that may continue activities on its pages.
///
/// ```json
/// { "activitycontinuation": { "apps": ["9JA89QQLNQ.org.example.reader"] } }
/// ```
///
/// The rest of the file is for other services and is ignored (Apple, "Supporting associated domains").
package struct SiteAssociation: Sendable, Hashable {
    /// How large the file may be, in bytes: 128 KiB, as Apple has it.
    package static let maximumBytes = 128 << 10
    /// How deep arrays and objects may nest. Real files have 6 levels.
    static let maximumDepth = 16
    /// The most bytes of a string: comparing long ones costs more than their length, and no name or pattern is longer.
    static let maximumStringLength = 4096
    /// The most bytes of an application's identifier; Apple's bundle identifiers have 155 at most.
    static let maximumIdentifierLength = 256

    private let applications: Set<String>

    /// Reads a file.
    ///
    /// Entries that cannot be an identifier are skipped: an identifier has ASCII letters, digits, hyphens, underscores
    /// and at least one dot. A file without `activitycontinuation` is valid and lists no application.
    ///
    /// - Throws: `tooLarge`; `malformed` if the file is not JSON (RFC 8259) in UTF-8, passes a bound, or has another
    ///   type in place of the list.
    package init(_ file: [UInt8]) throws(SiteAssociationError) {
        guard file.count <= Self.maximumBytes else {
            throw SiteAssociationError("its file is larger than \(Self.maximumBytes >> 10) KiB")
        }
        if let problem = JSONShape.problem(of: file, depth: Self.maximumDepth, string: Self.maximumStringLength) {
            throw SiteAssociationError("its file \(problem)")
        }
        guard let content = try? JSONDecoder().decode(Content.self, from: Data(file)) else {
            throw SiteAssociationError("its file is not the JSON that it should be")
        }
        applications = Set((content.activitycontinuation?.apps ?? []).filter(Self.isIdentifier))
    }

    /// Whether the site lists the application of a team. No site lists an application without a team.
    package func lists(team: String, identifier: String) -> Bool {
        !team.isEmpty && !identifier.isEmpty && applications.contains("\(team).\(identifier)")
    }

    private static func isIdentifier(_ text: String) -> Bool {
        text.utf8.count <= maximumIdentifierLength && text.utf8.contains(UInt8(ascii: "."))
            && DottedName.isPlain(text)
    }

    private struct Content: Decodable {
        struct Service: Decodable {
            var apps: [String]?
        }
        var activitycontinuation: Service?
    }
}
