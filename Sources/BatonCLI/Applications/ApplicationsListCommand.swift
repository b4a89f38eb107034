// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BatonApplications
import SystemPackage

/// `baton applications list`
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
        var registry = try RegistryAccess.registry()
        let installed = registry.installed()
        for problem in installed.problems { Output.complain(SafeText.escaped(problem.description)) }
        if output.json {
            for application in installed.applications { try Output.line(ApplicationRendering.json(application)) }
            return
        }
        guard !installed.applications.isEmpty else {
            Output.say(
                "No application here continues activities: register one with `baton applications register FILE`, or "
                    + "add X-Baton-Types to its desktop entry.")
            return
        }
        let width = Terminal.width(of: .standardOutput)
        for line in ApplicationRendering.lines(installed.applications, width: width) { try Output.line(line) }
    }
}
