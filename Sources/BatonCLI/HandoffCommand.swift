// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonApplications
import BatonMessages

/// `baton handoff`
struct HandoffCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "handoff",
        abstract: "Switch Handoff off and on, for this device or for one application.",
        discussion: """
            While it is off nothing is announced, listed or taken over here, and nothing of this device can be taken; \
            what applications offer comes back when it is on again. The choice is kept.

            Of one application that is off nothing is announced, and nothing is handed over to it or by it. What other \
            devices offer is not listed where no other application here continues it.

            EXAMPLES:
              baton handoff                                 # is it on?
              baton handoff off
              baton handoff off --application org.example.editor
            """,
        subcommands: [HandoffShowCommand.self, HandoffOnCommand.self, HandoffOffCommand.self],
        defaultSubcommand: HandoffShowCommand.self)
}

/// `baton handoff show`
struct HandoffShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "show", abstract: "Show whether it is on. (default)")

    @OptionGroup var output: JSONOption

    func run() async throws {
        try HandoffRendering.print(await NodeAccess.withNode { try await $0.handoffSwitch() }, isJSON: output.json)
    }
}

/// `baton handoff on`
struct HandoffOnCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "on", abstract: "Switch it on.")

    @OptionGroup var subject: HandoffSubject
    @OptionGroup var output: JSONOption

    func run() async throws {
        try await HandoffRendering.change(.on, subject, isJSON: output.json)
    }
}

/// `baton handoff off`
struct HandoffOffCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "off", abstract: "Switch it off.")

    @OptionGroup var subject: HandoffSubject
    @OptionGroup var output: JSONOption

    func run() async throws {
        try await HandoffRendering.change(.off, subject, isJSON: output.json)
    }
}

/// What is switched.
struct HandoffSubject: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp("For this application alone, as `baton applications list` names it.", valueName: "id"))
    var application: String?

    func validate() throws {
        if application?.isEmpty == true { throw ValidationError("--application takes an identifier") }
    }
}

/// How the switch is changed and printed.
enum HandoffRendering {
    static func change(
        _ change: WireHandoffSwitchRequest.Change, _ subject: HandoffSubject, isJSON: Bool
    ) async throws {
        let state = try await NodeAccess.withNode {
            try await $0.handoffSwitch(change, for: subject.application ?? "")
        }
        try print(state, isJSON: isJSON)
        guard change == .off, let application = subject.application else { return }
        var registry = try RegistryAccess.registry()
        if !registry.installed().applications.contains(where: { $0.identifier == application }) {
            Output.complain(
                "no application is registered here as \(SafeText.escaped(application)): it is off all the same when one says"
                    + " that it is that; `baton applications` lists those that are")
        }
    }

    static func print(_ state: WireHandoffSwitchResponse, isJSON: Bool) throws {
        for line in isJSON ? [json(state)] : lines(state) { try Output.line(line) }
    }

    static func json(_ state: WireHandoffSwitchResponse) -> String {
        JSONValue.object([
            JSONValue.Member("handoff", .string(state.isOn ? "on" : "off")),
            JSONValue.Member("offApplications", .array(state.offApplications.map { .string($0) })),
        ]).text
    }

    static func lines(_ state: WireHandoffSwitchResponse) -> [String] {
        [state.isOn ? "Handoff is on." : "Handoff is off: nothing is offered or listed on this device."]
            + state.offApplications.map { "off for \(SafeText.escaped($0))" }
    }
}
