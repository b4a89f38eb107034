// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonApplications
import SystemPackage

/// What the program is, as its manifest says.
enum BridgeManifest {
    /// - Parameter manifest: the identifier of an installed application, or the path of an `Info.plist`, which has a
    ///   slash or a dot that no installed identifier explains.
    static func description(_ manifest: String) throws(CommandError) -> Application.Description {
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

    private static func read(_ text: String) throws(CommandError) -> ApplicationManifest {
        var registry = try RegistryAccess.registry()
        if !text.contains("/"), let manifest = registry.installed()[text] { return manifest }
        let path = CommandEnvironment.absolute(text)
        guard text.contains("/") || (try? path.stat()) != nil else {
            throw .usage(
                "no application \(SafeText.escaped(text)) is installed, and there is no such file: `baton applications`"
                    + " shows which are")
        }
        do throws(ApplicationManifestError) {
            return try InfoPropertyList(reading: path).manifest(source: path)
        } catch {
            throw CommandError(
                .usage, code: "manifest", "\(SafeText.escaped(path.string)): \(SafeText.escaped(error.problem))")
        }
    }
}
