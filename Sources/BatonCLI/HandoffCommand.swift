// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonApplications
import BatonMessages

struct HandoffCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "handoff",
        abstract: "Switch Handoff off and on, for this device or for one application.",
        discussion: """
            While Handoff is off, this device announces nothing, lists nothing and accepts nothing. No other device \
            can accept its activities. Applications' offers come back when it is on again. The choice is kept.

            Handoff can be off for one application. Then the application offers nothing and receives nothing. An \
            activity that no other application here continues is not listed.

            EXAMPLES:
              baton handoff                                 # is it on?
              baton handoff off
              baton handoff off --application org.example.editor
            """,
        subcommands: [HandoffShowCommand.self, HandoffOnCommand.self, HandoffOffCommand.self],
        defaultSubcommand: HandoffShowCommand.self)
}

struct HandoffShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "show", abstract: "Show whether it is on. (default)")

    @OptionGroup var output: JSONOption

    func run() async throws {
        try HandoffRendering.print(await NodeAccess.withNode { try await $0.handoffSwitch() }, isJSON: output.json)
    }
}

struct HandoffOnCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "on", abstract: "Switch it on.")

    @OptionGroup var subject: HandoffSubject
    @OptionGroup var output: JSONOption

    func run() async throws {
        try await HandoffRendering.change(.on, subject, isJSON: output.json)
    }
}

struct HandoffOffCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "off", abstract: "Switch it off.")

    @OptionGroup var subject: HandoffSubject
    @OptionGroup var output: JSONOption

    func run() async throws {
        try await HandoffRendering.change(.off, subject, isJSON: output.json)
    }
}

struct HandoffSubject: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp("Only for this application: see `baton applications list`.", valueName: "id"),
        completion: .applications)
    var application: CommandArgument?
}

enum HandoffRendering {
    static func change(
        _ change: WireHandoffSwitchRequest.Change, _ subject: HandoffSubject, isJSON: Bool
    ) async throws {
        let state = try await NodeAccess.withNode {
            try await $0.handoffSwitch(change, for: subject.application?.text ?? "")
        }
        try print(state, isJSON: isJSON)
        guard change == .off, let application = subject.application?.text else { return }
        let registry = try RegistryAccess.registry()
        if !registry.installed().applications.contains(where: { $0.identifier == application }) {
            Output.complain(
                "no application \(SafeText.escaped(application)) is registered here; Handoff is off for one that will"
                    + " be. `baton applications` lists the registered ones")
        }
    }

    static func print(_ state: WireHandoffSwitchResponse, isJSON: Bool) throws {
        for line in isJSON ? [json(state)] : lines(state) { try Output.line(line) }
    }

    static func json(_ state: WireHandoffSwitchResponse) -> String {
        [.text("handoff", state.isOn ? "on" : "off"), .texts("offApplications", state.offApplications)].line
    }

    static func lines(_ state: WireHandoffSwitchResponse) -> [String] {
        [state.isOn ? "Handoff is on." : "Handoff is off: nothing is offered or listed on this device."]
            + state.offApplications.map { "off for \(SafeText.escaped($0))" }
    }
}
