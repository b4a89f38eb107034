// SPDX-License-Identifier: Apache-2.0

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
            throw .malformed("it states versions of \"\(type)\", which is none of the types that it continues")
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

    /// Whether it reads a version of an activity type's content; see ``ReadableVersions/reads(version:of:)``.
    package func reads(version: UInt32, of type: String) -> Bool {
        readableVersions.reads(version: version, of: type)
    }
}

/// A kind of document whose editing an application continues: an entry of `CFBundleDocumentTypes`.
package struct DocumentType: Sendable, Hashable {
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
