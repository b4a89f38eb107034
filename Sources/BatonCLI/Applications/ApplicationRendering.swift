// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonApplications
import BatonDocuments
import SystemPackage

/// Prints applications.
enum ApplicationRendering {
    static func lines(_ applications: [ApplicationManifest], width: Int) -> [String] {
        var table = Table([
            Table.Column("NAME", minimum: 8), Table.Column("IDENTIFIER", minimum: 16),
            Table.Column("TEAM", minimum: 6), Table.Column("TYPES", minimum: 16), Table.Column("FROM", minimum: 10),
        ])
        table.rows = applications.map { application in
            [
                SafeText.escaped(application.name), application.identifier,
                application.team.isEmpty ? "-" : SafeText.escaped(application.team),
                application.activityTypes.isEmpty ? "-" : application.activityTypes.joined(separator: " "),
                source(application),
            ]
        }
        return table.lines(width: width)
    }

    private static func source(_ application: ApplicationManifest) -> String {
        switch application.source {
        case .registered: "registered"
        case .desktopEntry: SafeText.escaped(application.desktopEntry ?? "")
        }
    }

    static func json(_ application: ApplicationManifest) -> String {
        let file =
            switch application.source {
            case .registered(let file): file
            case .desktopEntry(let file): file
            }
        let isRegistered =
            switch application.source {
            case .registered: true
            case .desktopEntry: false
            }
        let versions = application.readableVersions.statements.sorted { $0.key < $1.key }
        let members = [
            JSONValue.Member("identifier", .string(application.identifier)),
            JSONValue.Member("name", .string(application.name)),
            JSONValue.Member("team", .string(application.team)),
            JSONValue.Member("types", texts(application.activityTypes)),
            JSONValue.Member("documents", .array(application.documentTypes.map(json))),
            JSONValue.Member(
                "versions",
                .object(
                    versions.map { type, range in
                        JSONValue.Member(
                            type,
                            ["oldest": .integer(Int64(range.lowerBound)), "newest": .integer(Int64(range.upperBound))])
                    })),
            JSONValue.Member("domains", texts(application.associatedDomains.map(\.description))),
            JSONValue.Member("command", texts(application.command)),
            JSONValue.Member("terminal", .boolean(application.needsTerminal)),
            JSONValue.Member("desktopEntry", application.desktopEntry.map(JSONValue.string) ?? .null),
            JSONValue.Member("registered", .boolean(isRegistered)),
        ]
        let path = file.map { JSONValue.Member.path("file", $0.bytes) } ?? [JSONValue.Member("file", .null)]
        return JSONValue.object(members + path).text
    }

    private static func json(_ type: DocumentType) -> JSONValue {
        [
            "type": .string(type.activityType), "extensions": texts(type.fileExtensions),
            "contentTypes": texts(type.contentTypes),
        ]
    }

    private static func texts(_ texts: [String]) -> JSONValue { .array(texts.map(JSONValue.string)) }
}
