// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import SystemPackage

/// An application whose desktop entry has `X-Baton-` keys.
///
/// | Key | Meaning |
/// | --- | --- |
/// | `X-Baton-Types` | activity types that it continues, `;` behind each |
/// | `X-Baton-Documents` | document types: `TYPE:txt,md;` for the extensions whose editing is an activity of a type |
/// | `X-Baton-Versions` | versions that it reads: `TYPE:1-3;` |
/// | `X-Baton-Domains` | hosts whose pages it opens: `example.org;*.example.org;` |
/// | `X-Baton-Team` | its team |
/// | `X-Baton-Identifier` | its identifier; else the id of the entry without `.desktop` |
enum DesktopApplication {
    private static let prefix = "X-Baton-"

    /// Reads a desktop entry.
    ///
    /// - Returns: `nil` for an entry that has no `X-Baton-` key, is hidden, or whose `TryExec` is not there.
    static func read(
        _ path: FilePath, id: String, in folders: DesktopEntryFolders
    ) throws(ApplicationManifestError) -> ApplicationManifest? {
        let bytes: [UInt8]
        do throws(Errno) {
            bytes = try DurableFile.read(path, limit: ManifestBounds.fileSize)
        } catch {
            // An unreadable entry is skipped: most entries have no `X-Baton-` key.
            return nil
        }
        // Most of a desktop's entries end here, before they are taken apart.
        let isOurs = bytes.split(separator: UInt8(ascii: "\n")).contains { $0.starts(with: prefix.utf8) }
        guard isOurs else { return nil }
        let entry = try DesktopEntry(bytes)
        guard entry.string("Type") == "Application", !entry.boolean("Hidden") else { return nil }
        guard let line = entry.string("Exec"), !line.isEmpty else { throw .init("it has no Exec") }
        let identifier = String(id.dropLast(DesktopEntryFolders.suffix.count))
        let manifest = try ApplicationManifest(
            identifier: entry.string(prefix + "Identifier") ?? identifier, name: entry.string("Name") ?? "",
            team: entry.string(prefix + "Team") ?? "", activityTypes: entry.list(prefix + "Types"),
            documentTypes: try documentTypes(entry), associatedDomains: try domains(entry),
            readableVersions: try versions(entry), command: try command(line),
            needsTerminal: entry.boolean("Terminal"), desktopEntry: id, source: .desktopEntry(path))
        guard let program = entry.string("TryExec") else { return manifest }
        return (try? folders.search.find(program)) == nil ? nil : manifest
    }

    /// The words of a command that opens no file: the application gets the activity from the node.
    ///
    /// Field codes, such as `%F` for files and `%c` for the name, stand for nothing; `%%` is `%`.
    ///
    /// Source: Desktop Entry Specification 1.5, "The Exec key".
    static func command(_ exec: String) throws(ApplicationManifestError) -> [String] {
        let split: [String]
        do throws(CommandLineSplitter.Problem) {
            split = try CommandLineSplitter.split(exec)
        } catch {
            throw .init(error.sentence(about: "its Exec"))
        }
        var words: [String] = []
        for word in split {
            var text = ""
            var rest = word.makeIterator()
            while let character = rest.next() {
                if character != "%" || rest.next() == "%" { text.append(character) }
            }
            if !text.isEmpty || word.isEmpty { words.append(text) }
        }
        return words
    }

    private static func documentTypes(_ entry: DesktopEntry) throws(ApplicationManifestError) -> [DocumentType] {
        var types: [DocumentType] = []
        for text in entry.list(prefix + "Documents") {
            let (type, extensions) = try pair(text, key: "Documents", example: "org.example.editing:txt,md")
            types.append(
                DocumentType(activityType: type, fileExtensions: extensions.split(separator: ",").map(String.init)))
        }
        return types
    }

    private static func domains(_ entry: DesktopEntry) throws(ApplicationManifestError) -> [AssociatedDomain] {
        var domains: [AssociatedDomain] = []
        for text in entry.list(prefix + "Domains") {
            // With the service in front, as the entitlement has it, or without.
            if let colon = text.firstIndex(of: ":"), !text[..<colon].contains(".") {
                if let domain = try AssociatedDomain.entry(text) { domains.append(domain) }
            } else {
                domains.append(try AssociatedDomain(text))
            }
        }
        return domains
    }

    private static func versions(_ entry: DesktopEntry) throws(ApplicationManifestError) -> ReadableVersions {
        var statements: [String: ClosedRange<UInt32>] = [:]
        for text in entry.list(prefix + "Versions") {
            let (type, versions) = try pair(text, key: "Versions", example: "org.example.editing:1-3")
            statements[type] = try ReadableVersions.range(versions, of: type)
        }
        return ReadableVersions(statements)
    }

    private static func pair(
        _ text: String, key: String, example: String
    ) throws(ApplicationManifestError) -> (String, String) {
        guard let colon = text.firstIndex(of: ":") else {
            throw .init("\(prefix)\(key) has \"\(text)\", and needs entries such as \(example);")
        }
        return (String(text[..<colon]), String(text[text.index(after: colon)...]))
    }
}
