// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BatonApplications
import SystemPackage

/// `baton applications remove`
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
        var registry = try RegistryAccess.registry()
        let wasThere: Bool
        do throws(ApplicationRegistryError) {
            wasThere = try registry.remove(identifier)
        } catch {
            throw RegistryAccess.failure(error)
        }
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
