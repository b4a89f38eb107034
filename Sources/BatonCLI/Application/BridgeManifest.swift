// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonApplications
import SystemPackage

/// Reads the manifest of the program.
enum BridgeManifest {
    /// - Parameter manifest: the identifier of an installed application, or else the path of an `Info.plist`.
    static func description(_ manifest: CommandArgument) throws(CommandError) -> Application.Description {
        let manifest = try read(manifest)
        do {
            var types: [ContinuedActivityType] = []
            for type in manifest.activityTypes {
                types.append(
                    try ContinuedActivityType(type, versions: manifest.readableVersions.statements[type]))
            }
            return try Application.Description(
                identifier: manifest.identifier, name: manifest.name, team: manifest.team, continues: types)
        } catch {
            throw CommandError(.usage, code: "manifest", SafeText.escaped("\(error)"))
        }
    }

    private static func read(_ argument: CommandArgument) throws(CommandError) -> ApplicationManifest {
        let text = argument.text
        var registry = try RegistryAccess.registry()
        if !text.contains("/"), let manifest = registry.installed()[text] { return manifest }
        let path = CommandEnvironment.absolute(argument.path)
        guard text.contains("/") || (try? path.stat()) != nil else {
            throw .usage(
                "no application \(SafeText.escaped(text)) is installed, and there is no such file: `baton applications`"
                    + " shows which are")
        }
        do throws(ApplicationManifestError) {
            return try InfoPropertyList(reading: path).manifest(source: path)
        } catch {
            throw CommandError(
                .usage, code: "manifest", "\(path.shown): \(SafeText.escaped(error.problem))")
        }
    }
}
