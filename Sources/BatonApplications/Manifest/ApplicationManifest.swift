// SPDX-License-Identifier: Apache-2.0

import Crypto
package import SystemPackage

/// The declaration of an installed application: its identity, the activities that it continues, and its command.
///
/// It comes from a file that `baton applications register` wrote, or from a desktop entry with `X-Baton-` keys. Every
/// value has been checked against ``ManifestBounds``.
package struct ApplicationManifest: Sendable, Hashable {
    /// Where a manifest was read.
    package enum Source: Sendable, Hashable {
        /// Registered by the user. Names the file that the registration was made from, if it is known.
        case registered(from: FilePath?)
        /// A desktop entry.
        case desktopEntry(FilePath)
    }

    /// Reverse DNS, such as `org.example.shopsnap`.
    package let identifier: String
    /// The name that users read.
    package let name: String
    /// The label under which applications share activities; empty: of no team.
    package let team: String
    /// Every type that it continues, with those of its documents; each once, in the order of declaration.
    package let activityTypes: [String]
    /// The kinds of documents whose editing it continues.
    package let documentTypes: [DocumentType]
    /// The hosts whose web pages it wants to open.
    package let associatedDomains: [AssociatedDomain]
    /// The versions that it reads of each type.
    package let readableVersions: ReadableVersions
    /// The program and its arguments; empty where it can continue activities only while it runs.
    package let command: [String]
    /// Whether the command wants a terminal of its own to run in.
    package let needsTerminal: Bool
    /// The desktop entry that belongs to it, such as `org.example.shopsnap.desktop`.
    package let desktopEntry: String?
    package let source: Source

    /// Checks a manifest.
    ///
    /// - Parameter activityTypes: without those of `documentTypes`, which are added.
    /// - Throws: ``ApplicationManifestError`` for the first value that does not do.
    package init(
        identifier: String, name: String, team: String = "", activityTypes: [String] = [],
        documentTypes: [DocumentType] = [], associatedDomains: [AssociatedDomain] = [],
        readableVersions: ReadableVersions = ReadableVersions(), command: [String] = [], needsTerminal: Bool = false,
        desktopEntry: String? = nil, source: Source
    ) throws(ApplicationManifestError) {
        var seen: Set<String> = []
        let types = (activityTypes + documentTypes.map(\.activityType)).filter { seen.insert($0).inserted }
        try ManifestCheck.identifier(identifier)
        try ManifestCheck.name(name)
        try ManifestCheck.team(team)
        try ManifestCheck.activityTypes(types)
        try ManifestCheck.documentTypes(documentTypes)
        try ManifestCheck.count(
            associatedDomains.count, atMost: ManifestBounds.associatedDomains, "associated domains")
        try ManifestCheck.count(readableVersions.statements.count, atMost: ManifestBounds.types, "stated versions")
        for type in readableVersions.statements.keys.sorted() where !types.contains(type) {
            throw .init("it states versions of \"\(type)\", which is none of the types that it continues")
        }
        try ManifestCheck.command(command)
        try desktopEntry.map { (id) throws(ApplicationManifestError) in try ManifestCheck.desktopEntry(id) }
        self.identifier = identifier
        self.name = name
        self.team = team
        self.activityTypes = types
        self.documentTypes = documentTypes
        self.associatedDomains = associatedDomains
        self.readableVersions = readableVersions
        self.command = command
        self.needsTerminal = needsTerminal
        self.desktopEntry = desktopEntry
        self.source = source
    }
}

/// A kind of document whose editing an application continues: an entry of `CFBundleDocumentTypes`.
package struct DocumentType: Sendable, Hashable, Codable {
    /// The type of the activity that editing such a document is (`NSUbiquitousDocumentUserActivityType`).
    package let activityType: String
    /// File name extensions without the dot, in lower case (`CFBundleTypeExtensions`).
    package let fileExtensions: [String]
    /// Uniform type identifiers (`LSItemContentTypes`).
    package let contentTypes: [String]

    package init(activityType: String, fileExtensions: [String] = [], contentTypes: [String] = []) {
        self.activityType = activityType
        self.fileExtensions = fileExtensions.map { $0.lowercased() }
        self.contentTypes = contentTypes
    }
}

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
        throw .init("\"\(text)\" is no versions of \(type): write 2, or 1-3 for the oldest and the newest")
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

/// Tells teams apart in an announcement without naming them: 8 bytes.
///
/// A label for routing and no secret: anyone who guesses the team can compute it.
package struct TeamTag: Sendable, Hashable {
    /// How many bytes a tag has.
    package static let count = 8

    /// The tag of applications that have no team, which go together.
    package static let none = TeamTag(bytes: [UInt8](repeating: 0, count: count))

    package let bytes: [UInt8]

    /// The tag of a team: the first 8 bytes of SHA-256("baton-team/1" || the team's UTF-8), and 8 zeros of none.
    package init(of team: String) {
        guard !team.isEmpty else {
            self = .none
            return
        }
        var hash = SHA256()
        hash.update(data: Array("baton-team/1".utf8))
        hash.update(data: Array(team.utf8))
        bytes = Array(hash.finalize().prefix(Self.count))
    }

    /// The tag in a message.
    ///
    /// - Parameter bytes: 8; none at all are those of no team.
    /// - Returns: `nil` for any other number of bytes.
    package init?(_ bytes: some Collection<UInt8>) {
        guard !bytes.isEmpty else {
            self = .none
            return
        }
        guard bytes.count == Self.count else { return nil }
        self.bytes = Array(bytes)
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }
}
