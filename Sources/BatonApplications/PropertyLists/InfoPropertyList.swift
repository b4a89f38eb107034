// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import FoundationEssentials
package import SystemPackage

/// An application's `Info.plist`, as it is in the source of a project for Apple's devices, in XML.
///
/// | Key | Meaning |
/// | --- | --- |
/// | `CFBundleIdentifier` | the identifier; if it is missing, the variable `PRODUCT_BUNDLE_IDENTIFIER` |
/// | `CFBundleDisplayName`, else `CFBundleName` | the name; else `PRODUCT_NAME`, else the identifier's last part |
/// | `NSUserActivityTypes` | activity types that it continues |
/// | `CFBundleDocumentTypes` | document types; those with `NSUbiquitousDocumentUserActivityType` count |
/// | `BatonActivityVersions` | Baton's own: versions that it reads, by type: `2` or `1-3` |
/// | `BatonTeam` | Baton's own: the team |
/// | `BatonCommand` | Baton's own: the command that starts it, a string or an array of strings |
/// | `BatonTerminal` | Baton's own: whether it wants a terminal to run in |
///
/// Entitlements give `com.apple.developer.associated-domains` and `com.apple.developer.team-identifier`.
///
/// Foundation's small part (`FoundationEssentials`) reads property lists, and only the command does. The node reads the
/// files of ``ApplicationRegistry``.
package struct InfoPropertyList: Sendable {
    private let content: Content
    private let entitlements: Entitlements?

    /// Reads an `Info.plist`, and the entitlements of the same application.
    ///
    /// - Parameter entitlements: a property list (`.entitlements`).
    package init(_ bytes: [UInt8], entitlements: [UInt8]? = nil) throws(ApplicationManifestError) {
        content = try Self.decode(bytes, "it")
        self.entitlements = try entitlements.map { (bytes) throws(ApplicationManifestError) in
            try Self.decode(bytes, "the file of entitlements")
        }
    }

    /// Reads the files; blocks.
    package init(reading path: FilePath, entitlements: FilePath? = nil) throws(ApplicationManifestError) {
        let info = try Self.read(path, "it")
        let rights = try entitlements.map { (path) throws(ApplicationManifestError) in
            try Self.read(path, "the file of entitlements")
        }
        try self.init(info, entitlements: rights)
    }

    /// Makes a manifest.
    ///
    /// - Parameters:
    ///   - command: replaces `BatonCommand`.
    ///   - team: replaces the team of the files.
    ///   - variables: build variables. If a team is known, `AppIdentifierPrefix`, `TeamIdentifierPrefix` and
    ///     `DEVELOPMENT_TEAM` have values by themselves.
    ///   - source: the file, for the record.
    package func manifest(
        command: [String]? = nil, team: String? = nil, variables: BuildVariables = BuildVariables(), source: FilePath?
    ) throws(ApplicationManifestError) -> ApplicationManifest {
        var variables = variables
        let team = try self.team(team, variables)
        if !team.isEmpty {
            variables["DEVELOPMENT_TEAM"] = variables["DEVELOPMENT_TEAM"] ?? team
            for name in ["AppIdentifierPrefix", "TeamIdentifierPrefix"] {
                variables[name] = variables[name] ?? team + "."
            }
        }
        let identifier = try variables.resolve(content.identifier ?? "$(PRODUCT_BUNDLE_IDENTIFIER)")
        if variables["PRODUCT_BUNDLE_IDENTIFIER"] == nil { variables["PRODUCT_BUNDLE_IDENTIFIER"] = identifier }
        return try ApplicationManifest(
            identifier: identifier, name: try name(identifier, variables), team: team,
            activityTypes: try resolve(content.activityTypes ?? [], variables),
            documentTypes: try documentTypes(variables), associatedDomains: try domains(variables),
            readableVersions: try versions(variables), command: try self.command(command, variables),
            needsTerminal: content.needsTerminal ?? false, source: .registered(from: source))
    }

    // MARK: - Parts

    private func team(_ given: String?, _ variables: BuildVariables) throws(ApplicationManifestError) -> String {
        if let given { return given }
        if let team = content.team ?? entitlements?.team { return try variables.resolve(team) }
        return variables["DEVELOPMENT_TEAM"] ?? ""
    }

    private func name(
        _ identifier: String, _ variables: BuildVariables
    ) throws(ApplicationManifestError) -> String {
        if let name = content.displayName ?? content.name { return try variables.resolve(name) }
        if let product = variables["PRODUCT_NAME"] { return try variables.resolve(product) }
        return identifier.split(separator: ".").last.map(String.init) ?? identifier
    }

    private func documentTypes(_ variables: BuildVariables) throws(ApplicationManifestError) -> [DocumentType] {
        var types: [DocumentType] = []
        for type in content.documentTypes ?? [] {
            guard let activityType = type.activityType else { continue }
            types.append(
                DocumentType(
                    activityType: try variables.resolve(activityType),
                    fileExtensions: try resolve(type.fileExtensions ?? [], variables),
                    contentTypes: try resolve(type.contentTypes ?? [], variables)))
        }
        return types
    }

    private func domains(_ variables: BuildVariables) throws(ApplicationManifestError) -> [AssociatedDomain] {
        var domains: [AssociatedDomain] = []
        // Only entries for our service have to make sense here.
        for entry in entitlements?.associatedDomains ?? [] where entry.hasPrefix(AssociatedDomain.service + ":") {
            if let domain = try AssociatedDomain.entry(variables.resolve(entry)) { domains.append(domain) }
        }
        return domains
    }

    private func versions(_ variables: BuildVariables) throws(ApplicationManifestError) -> ReadableVersions {
        var statements: [String: ClosedRange<UInt32>] = [:]
        for (type, text) in content.versions ?? [:] {
            let type = try variables.resolve(type)
            statements[type] = try ReadableVersions.range(variables.resolve(text), of: type)
        }
        return ReadableVersions(statements)
    }

    private func command(
        _ given: [String]?, _ variables: BuildVariables
    ) throws(ApplicationManifestError) -> [String] {
        if let given { return given }
        switch content.command {
        case nil: return []
        case .words(let words): return try resolve(words, variables)
        case .line(let line):
            do throws(CommandLineSplitter.Problem) {
                return try CommandLineSplitter.split(line)
            } catch {
                throw .init(error.sentence(about: "its BatonCommand"))
            }
        }
    }

    private func resolve(
        _ texts: [String], _ variables: BuildVariables
    ) throws(ApplicationManifestError) -> [String] {
        var resolved: [String] = []
        for text in texts { resolved.append(try variables.resolve(text)) }
        return resolved
    }

    // MARK: - Files

    private static func read(_ path: FilePath, _ subject: String) throws(ApplicationManifestError) -> [UInt8] {
        do throws(Errno) {
            return try DurableFile.read(path, limit: ManifestBounds.fileSize)
        } catch {
            throw .unreadable(error, subject)
        }
    }

    private static func decode<Value: Decodable>(
        _ bytes: [UInt8], _ subject: String
    ) throws(ApplicationManifestError) -> Value {
        guard bytes.count <= ManifestBounds.fileSize else { throw .unreadable(.fileTooLarge, subject) }
        try PropertyListShape.check(bytes, subject)
        do {
            return try PropertyListDecoder().decode(Value.self, from: Data(bytes))
        } catch DecodingError.typeMismatch(_, let context) {
            let place = context.codingPath.map { $0.intValue.map { "entry \($0 + 1)" } ?? $0.stringValue }
            throw .init(
                place.isEmpty
                    ? "\(subject) is a property list without a dictionary at its top"
                    : "\(subject) has another kind of value than expected in \(place.joined(separator: ", "))")
        } catch {
            throw .init("\(subject) is no property list")
        }
    }
}
