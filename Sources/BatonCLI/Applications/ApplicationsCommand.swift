// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BatonApplications
import BatonDocuments
import BatonTransport
import FoundationEssentials
import SystemPackage

struct ApplicationsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "applications",
        abstract: "List and register the applications that continue activities here.",
        discussion: """
            An activity that you accept goes to an application of this device that declares the activity's type and is \
            of the same team. The application is started if it does not run. It declares its types in its desktop \
            entry, or in an Info.plist that you register.

            In a desktop entry (~/.local/share/applications, /usr/share/applications and the like):

              X-Baton-Types=org.example.editing;org.example.viewing;
              X-Baton-Team=TEAM
              X-Baton-Identifier=ID       the entry's own name by default
              X-Baton-Documents=org.example.editing:txt,md;
              X-Baton-Versions=org.example.editing:1-3;
              X-Baton-Domains=example.org;*.example.org;

            A web page opens in an application that claims the page's host, if the host lists the application in its \
            apple-app-site-association. If several applications do, the one in front or the one used last opens it; \
            else you are asked.

            A registered application replaces a desktop entry with the same identifier. The node sees a change at once.

            EXAMPLES:
              baton applications                                    # list them
              baton applications register Info.plist --command shopsnap
              baton applications remove org.example.shopsnap
            """,
        subcommands: [
            ApplicationsListCommand.self, ApplicationsRegisterCommand.self, ApplicationsRemoveCommand.self,
        ],
        defaultSubcommand: ApplicationsListCommand.self)
}

struct ApplicationsListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the applications that continue activities here. (default)",
        discussion: """
            EXAMPLES:
              baton applications
              baton applications --json
            """)

    @OptionGroup var output: JSONOption

    func run() throws {
        let registry = try RegistryAccess.registry()
        let installed = registry.installed()
        for problem in installed.problems { Output.complain(SafeText.escaped(problem.description)) }
        try Output.list(
            installed.applications, asJSON: output.json, json: ApplicationRendering.json,
            nothing: "No application here continues activities: register one with `baton applications register FILE`,"
                + " or add X-Baton-Types to its desktop entry."
        ) { ApplicationRendering.lines($0, width: $1) }
    }
}

struct ApplicationsRegisterCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "register",
        abstract: "Register an application by its Info.plist.",
        discussion: """
            The Info.plist of a project for Apple's devices can be used unchanged. Baton reads its identifier, its \
            name, NSUserActivityTypes, and the document types with NSUbiquitousDocumentUserActivityType. The options \
            below give the rest. A file of your own may give it as well, in BatonCommand, BatonTerminal (true for a \
            program that needs a terminal), BatonTeam, and BatonActivityVersions (a dictionary from activity types to \
            versions, such as 2 or 1-3).

            If the application is registered already, it is replaced. Baton keeps a copy of what it read: when the \
            file changes, register it again.

            EXAMPLES:
              baton applications register Info.plist --command shopsnap
              baton applications register Info.plist --command '/opt/editor/bin/editor --handoff' --team A1B2C3D4E5 \\
                  --entitlements Editor.entitlements --set PRODUCT_BUNDLE_IDENTIFIER=org.example.editor
            """)

    @Argument(help: "An Info.plist, in XML.", completion: .file())
    var file: CommandArgument

    @Option(name: .long, help: "The program that starts it, with arguments. No shell reads it.")
    var command: CommandArgument?

    @Option(name: .long, help: "Its team: applications of one team share activities.")
    var team: CommandArgument?

    @Option(
        name: .long, help: ArgumentHelp("Its entitlements file, for associated domains.", valueName: "file"),
        completion: .file())
    var entitlements: CommandArgument?

    @Option(
        name: .long,
        help: ArgumentHelp("A build variable that the files use as $(NAME); repeatable.", valueName: "name=value")
    )
    var set: [CommandArgument] = []

    func run() throws {
        let registry = try RegistryAccess.registry()
        let path = CommandEnvironment.absolute(file.path)
        let (words, variables) = (try words(), try variables())
        let entitlements = entitlements.map { CommandEnvironment.absolute($0.path) }
        let manifest = try RegistryAccess.manifest(
            path, entitlements: entitlements, command: words, team: team?.text, variables: variables)
        guard !manifest.command.isEmpty else {
            throw CommandError.usage(
                "\(path.shown) does not name the program to start: give it with --command")
        }
        report(manifest, isNew: try registry.register(manifest))
    }

    private func report(_ manifest: ApplicationManifest, isNew: Bool) {
        let teamClause = manifest.team.isEmpty ? "" : ", team \(SafeText.escaped(manifest.team))"
        Output.say(
            "\(SafeText.escaped(manifest.name)) (\(manifest.identifier)) is registered\(isNew ? "" : " again"): "
                + "\(HumanUnits.count(manifest.activityTypes.count, "activity type"))\(teamClause).")
        if manifest.team.isEmpty {
            Output.say("It has no team, and shares activities with applications without one. --team TEAM sets a team.")
        }
        if manifest.activityTypes.isEmpty, manifest.associatedDomains.isEmpty {
            Output.say("It declares no activity types (NSUserActivityTypes), so it never receives an activity.")
        }
        do throws(LaunchError) {
            try RegistryAccess.launcher().check(manifest)
        } catch {
            Output.say("It cannot be started now: \(SafeText.escaped(error.description)).")
        }
    }

    /// The words of the command. A relative path is made absolute, because the node has another current folder.
    private func words() throws(CommandError) -> [String]? {
        guard let command else { return nil }
        guard String(validating: command.bytes, as: UTF8.self) != nil else {
            throw .usage("the command of --command is not UTF-8: give the program a name that is")
        }
        do throws(CommandLineSplitter.Problem) {
            return try command.words().enumerated().map { index, word in
                let isPath = index == 0 && word.encoded.contains("/")
                return isPath ? CommandEnvironment.absolute(word.path).string : word.text
            }
        } catch {
            throw .usage(error.sentence(about: "the command of --command"))
        }
    }

    private func variables() throws(CommandError) -> BuildVariables {
        var values: [String: String] = [:]
        for text in set.map(\.text) {
            guard let (name, value) = BuildVariables.assignment(text) else {
                throw .usage("--set \"\(SafeText.escaped(text))\" is not NAME=VALUE, such as --set PRODUCT_NAME=Editor")
            }
            values[name] = value
        }
        return BuildVariables(values)
    }
}

struct ApplicationsRemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove a registered application.",
        discussion: """
            An application with a desktop entry stays: remove the X-Baton- keys from that entry.

            EXAMPLES:
              baton applications remove org.example.shopsnap
            """)

    @Argument(help: "Its identifier, as `baton applications` shows it.", completion: .applications)
    var identifier: CommandArgument

    func run() throws {
        let identifier = identifier.text
        let registry = try RegistryAccess.registry()
        let wasThere = try registry.remove(identifier)
        let entry = registry.installed()[identifier].flatMap { manifest in
            switch manifest.source {
            case .desktopEntry(let path): path.shown
            case .registered: nil
            }
        }
        guard wasThere else {
            let shown = SafeText.escaped(identifier)
            throw CommandError.usage(
                entry.map { "\(shown) has the desktop entry \($0): remove the X-Baton- keys from it" }
                    ?? "no application \(shown) is registered: see `baton applications`")
        }
        Output.say("\(SafeText.escaped(identifier)) is removed.")
        if let entry { Output.say("Its desktop entry is used now: \(entry).") }
    }
}

enum RegistryAccess {
    static func registry() throws(CommandError) -> ApplicationRegistry {
        ApplicationRegistry(
            configurationFolder: FilePath(try CommandEnvironment.home().configurationFolder),
            desktopEntries: DesktopEntryFolders(environment: ProcessInfo.processInfo.environment))
    }

    static func manifest(
        _ path: FilePath, entitlements: FilePath? = nil, command: [String]? = nil, team: String? = nil,
        variables: BuildVariables = BuildVariables([:])
    ) throws(CommandError) -> ApplicationManifest {
        do {
            return try InfoPropertyList(reading: path, entitlements: entitlements)
                .manifest(command: command, team: team, variables: variables, source: path)
        } catch {
            throw CommandError(.usage, code: "manifest", "\(path.shown): \(SafeText.escaped(error.description))")
        }
    }

    static func launcher() -> ApplicationLauncher {
        ApplicationLauncher(environment: ProcessInfo.processInfo.environment)
    }
}
