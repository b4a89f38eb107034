// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BatonApplications
import SystemPackage

/// `baton applications remove`
struct ApplicationsRemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove an application that was registered.",
        discussion: """
            An application that is known by its desktop entry stays: remove the X-Baton- keys there.

            EXAMPLES:
              baton applications remove org.example.shopsnap
            """)

    @Argument(help: "As `baton applications` shows it.")
    var identifier: String

    func run() throws {
        var registry = try RegistryAccess.registry()
        let wasThere: Bool
        do throws(ApplicationRegistryError) {
            wasThere = try registry.remove(identifier)
        } catch {
            throw RegistryAccess.failure(error)
        }
        let entry = registry.installed()[identifier].flatMap { manifest in
            switch manifest.source {
            case .desktopEntry(let path): SafeText.escaped(path.string)
            case .registered: nil
            }
        }
        guard wasThere else {
            let shown = SafeText.escaped(identifier)
            throw CommandError.usage(
                entry.map { "\(shown) is known by its desktop entry, \($0): remove its X-Baton- keys" }
                    ?? "no application \(shown) is registered: `baton applications` shows which are")
        }
        Output.say("\(identifier) is removed.")
        if let entry { Output.say("Its desktop entry counts from now on: \(entry).") }
    }
}
