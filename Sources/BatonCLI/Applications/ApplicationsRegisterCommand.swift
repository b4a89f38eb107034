// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BatonApplications
import SystemPackage

/// `baton applications register`
struct ApplicationsRegisterCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "register",
        abstract: "Register an application by its Info.plist.",
        discussion: """
            The Info.plist of a project for Apple's devices does as it is: its identifier, name, NSUserActivityTypes \
            and document types with NSUbiquitousDocumentUserActivityType count. What it does not say, you say here. A \
            file of your own may hold it as well: BatonCommand, BatonTerminal (true where it wants a terminal to run in), \
            BatonTeam, and BatonActivityVersions (a dictionary of activity types and the versions that are read: 2, \
            or 1-3).

            An application that is registered already is registered anew. What was read is kept in Baton's own \
            configuration: when the file changes, register it again.

            EXAMPLES:
              baton applications register Info.plist --command shopsnap
              baton applications register Info.plist --command '/opt/editor/bin/editor --handoff' --team A1B2C3D4E5 \\
                  --entitlements Editor.entitlements --set PRODUCT_BUNDLE_IDENTIFIER=org.example.editor
            """)

    @Argument(help: "An Info.plist, in XML or binary.")
    var file: String

    @Option(name: .long, help: "What starts it: a program and its arguments. No shell reads it.")
    var command: String?

    @Option(name: .long, help: "Its team: applications of one team share activities.")
    var team: String?

    @Option(name: .long, help: ArgumentHelp("Its entitlements, for associated domains.", valueName: "file"))
    var entitlements: String?

    @Option(
        name: .long,
        help: ArgumentHelp("A build variable that stands in the files as $(NAME); repeatable.", valueName: "name=value")
    )
    var set: [String] = []

    func run() throws {
        let registry = try RegistryAccess.registry()
        let path = CommandEnvironment.absolute(file)
        let (words, variables) = (try words(), try variables())
        let manifest: ApplicationManifest
        do throws(ApplicationManifestError) {
            let list = try InfoPropertyList(
                reading: path, entitlements: entitlements.map(CommandEnvironment.absolute))
            manifest = try list.manifest(command: words, team: team, variables: variables, source: path)
        } catch {
            throw CommandError(
                .usage, code: "manifest", "\(SafeText.escaped(path.string)): \(SafeText.escaped(error.problem))")
        }
        guard !manifest.command.isEmpty else {
            throw CommandError.usage(
                "\(SafeText.escaped(path.string)) does not say how the application is started: give the program with "
                    + "--command")
        }
        let isNew: Bool
        do throws(ApplicationRegistryError) {
            isNew = try registry.register(manifest)
        } catch {
            throw RegistryAccess.failure(error)
        }
        report(manifest, isNew: isNew)
    }

    private func report(_ manifest: ApplicationManifest, isNew: Bool) {
        let types = manifest.activityTypes.count
        let teamClause = manifest.team.isEmpty ? "" : ", team \(SafeText.escaped(manifest.team))"
        Output.say(
            "\(SafeText.escaped(manifest.name)) (\(manifest.identifier)) is registered\(isNew ? "" : " anew"): "
                + "\(types == 1 ? "1 activity type" : "\(types) activity types")\(teamClause).")
        if manifest.team.isEmpty {
            Output.say("It has no team, and shares activities with applications that have none; --team TEAM gives one.")
        }
        if manifest.activityTypes.isEmpty, manifest.associatedDomains.isEmpty {
            Output.say("It declares nothing that it continues (NSUserActivityTypes), and will never be given anything.")
        }
        do throws(LaunchError) {
            try RegistryAccess.launcher().check(manifest)
        } catch {
            Output.say("It cannot be started as things are: \(SafeText.escaped(error.message)).")
        }
    }

    /// A relative path of the program is where the user is now, and not where the node will be.
    private func words() throws(CommandError) -> [String]? {
        guard let command else { return nil }
        do throws(CommandLineSplitter.Problem) {
            var words = try CommandLineSplitter.split(command)
            if words[0].contains("/") { words[0] = CommandEnvironment.absolute(words[0]).string }
            return words
        } catch {
            throw .usage(error.sentence(about: "the command of --command"))
        }
    }

    private func variables() throws(CommandError) -> BuildVariables {
        var values: [String: String] = [:]
        for text in set {
            guard let (name, value) = BuildVariables.assignment(text) else {
                throw .usage("--set \"\(SafeText.escaped(text))\" is not NAME=VALUE, such as --set PRODUCT_NAME=Editor")
            }
            values[name] = value
        }
        return BuildVariables(values)
    }
}
