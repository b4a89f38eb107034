// SPDX-License-Identifier: Apache-2.0

/// Which versions of activity types' contents an application reads.
package struct ReadableVersions: Sendable, Hashable {
    /// The oldest and the newest version of each type. Every version of a type without an entry is readable.
    package let statements: [String: ClosedRange<UInt32>]

    package init(_ statements: [String: ClosedRange<UInt32>] = [:]) {
        self.statements = statements
    }

    /// Whether a version of a type's content is readable.
    ///
    /// - Parameter version: stated by the origin's application. 0, which states none, is always readable.
    package func reads(version: UInt32, of type: String) -> Bool {
        guard version != 0, let range = statements[type] else { return true }
        return range.contains(version)
    }

    /// Reads `2`, the one version, or `1-3`, the oldest and the newest. The least is 1.
    static func range(_ text: String, of type: String) throws(ApplicationManifestError) -> ClosedRange<UInt32> {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false).map(number)
        if parts.count <= 2, let oldest = parts[0], let newest = parts[parts.count - 1], oldest <= newest {
            return oldest...newest
        }
        throw .malformed("\"\(text)\" is no versions of \(type): write 2, or 1-3 for the oldest and the newest")
    }

    /// A range as it is written.
    static func text(_ range: ClosedRange<UInt32>) -> String {
        range.count == 1 ? "\(range.lowerBound)" : "\(range.lowerBound)-\(range.upperBound)"
    }

    private static func number(_ text: Substring) -> UInt32? {
        guard text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), let value = UInt32(text)
        else { return nil }
        return value == 0 ? nil : value
    }
}
