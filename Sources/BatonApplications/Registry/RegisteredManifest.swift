// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import SystemPackage

/// The form in which a registered manifest is kept. It is JSON, so that its readers need no property lists.
struct RegisteredManifest: Codable {
    /// The form that this code writes, and the only one that it reads.
    static let format = 1

    private let format: Int
    private let identifier: String
    private let name: String
    private let team: String
    private let activityTypes: [String]
    private let documentTypes: [DocumentType]
    private let associatedDomains: [String]
    private let versions: [String: String]
    private let command: [String]
    private let needsTerminal: Bool
    private let desktopEntry: String?
    private let registeredFrom: String?

    init(_ manifest: ApplicationManifest) {
        format = Self.format
        identifier = manifest.identifier
        name = manifest.name
        team = manifest.team
        activityTypes = manifest.activityTypes
        documentTypes = manifest.documentTypes
        associatedDomains = manifest.associatedDomains.map(\.description)
        versions = manifest.readableVersions.statements.mapValues(ReadableVersions.text)
        command = manifest.command
        needsTerminal = manifest.needsTerminal
        desktopEntry = manifest.desktopEntry
        registeredFrom =
            switch manifest.source {
            case .registered(let file): file?.string
            case .desktopEntry(let file): file.string
            }
    }

    static func encode(_ manifest: ApplicationManifest) throws(ApplicationManifestError) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(RegisteredManifest(manifest)) else {
            throw .init("it cannot be written as JSON")
        }
        guard data.count < ManifestBounds.fileSize else {
            throw .init("it has \(data.count) bytes as JSON; \(ManifestBounds.fileSize - 1) is the most")
        }
        return Array(data) + [UInt8(ascii: "\n")]
    }

    static func decode(_ bytes: [UInt8]) throws(ApplicationManifestError) -> ApplicationManifest {
        let content = try? JSONDecoder().decode(RegisteredManifest.self, from: Data(bytes))
        guard let content, content.format == format else {
            throw .init("it is not what `baton applications register` of this version writes: register it again")
        }
        return try content.manifest()
    }

    private func manifest() throws(ApplicationManifestError) -> ApplicationManifest {
        var domains: [AssociatedDomain] = []
        for domain in associatedDomains { domains.append(try AssociatedDomain(domain)) }
        var statements: [String: ClosedRange<UInt32>] = [:]
        for (type, text) in versions { statements[type] = try ReadableVersions.range(text, of: type) }
        return try ApplicationManifest(
            identifier: identifier, name: name, team: team, activityTypes: activityTypes,
            documentTypes: documentTypes, associatedDomains: domains,
            readableVersions: ReadableVersions(statements), command: command, needsTerminal: needsTerminal,
            desktopEntry: desktopEntry,
            source: .registered(from: registeredFrom.map { FilePath($0) }))
    }
}
