// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonApplications
import BatonDocuments
import SystemPackage

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
        let (file, isRegistered) =
            switch application.source {
            case .registered(let file): (file, true)
            case .desktopEntry(let file): (file, false)
            }
        let versions = application.readableVersions.statements.sorted { $0.key < $1.key }.map { type, range in
            JSONMember.object(type, [.count("oldest", range.lowerBound), .count("newest", range.upperBound)])
        }
        let members: [JSONMember] = [
            .text("identifier", application.identifier), .text("name", application.name),
            .text("team", application.team), .texts("types", application.activityTypes),
            .objects("documents", application.documentTypes.map(members)), .object("versions", versions),
            .texts("domains", application.associatedDomains.map(\.description)), .texts("command", application.command),
            .flag("terminal", application.needsTerminal), .text("desktopEntry", application.desktopEntry),
            .flag("registered", isRegistered),
        ]
        let path = file.map { JSONMember.path("file", $0.bytes) } ?? [.init("file", .null)]
        return (members + path).line
    }

    private static func members(_ type: DocumentType) -> [JSONMember] {
        [
            .text("type", type.activityType), .texts("extensions", type.fileExtensions),
            .texts("contentTypes", type.contentTypes),
        ]
    }
}
