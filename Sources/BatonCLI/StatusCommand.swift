// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonMessages
import BatonNode

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the state of the node on this machine.",
        discussion: """
            The responder announces this device on the network (Avahi). While it is away the node keeps trying.

            EXAMPLES:
              baton status
              baton status --json
            """)

    @OptionGroup var output: JSONOption

    func run() async throws {
        let status = try await NodeAccess.withNode { try await $0.status() }
        for line in output.json ? [StatusRendering.json(status)] : StatusRendering.lines(status) {
            try Output.line(line)
        }
    }
}

enum StatusRendering {
    static func json(_ status: WireStatusResponse) -> String {
        var members: [JSONMember] = [
            .text("device", status.device), .text("deviceID", status.deviceID), .count("port", status.port),
            .text("responder", status.responder), .count("peers", status.peers), .count("offers", status.offers),
            .count("connections", status.connections), .count("applications", status.applications),
            .count("process", status.processID), .text("handoff", status.handoffIsOff ? "off" : "on"),
        ]
        if status.hasTwin_p { members.append(.flag("hasTwin", true)) }
        let problems = [
            ("policyProblem", status.policyProblem), ("handoffProblem", status.handoffProblem),
            ("sharedRootsProblem", status.sharedRootsProblem),
        ]
        for (name, problem) in problems where !problem.isEmpty { members.append(.text(name, problem)) }
        return members.line
    }

    static func lines(_ status: WireStatusResponse) -> [String] {
        [
            "device       \(SafeText.escaped(status.device))",
            "device id    \(SafeText.escaped(status.deviceID))",
            "port         \(status.port)",
            "responder    \(SafeText.escaped(status.responder))",
            "peers        \(status.peers)",
            "offers       \(status.offers)",
            "connections  \(status.connections)",
            "applications \(status.applications)",
            "process      \(status.processID)",
        ]
            + (status.handoffIsOff && status.handoffProblem.isEmpty
                ? ["handoff      off: nothing is offered or listed; `baton handoff on`"] : [])
            + problem(
                "handoff     ", status.handoffProblem.isEmpty ? "" : "off, because " + status.handoffProblem,
                "until it is fixed, or `baton handoff on`, nothing is offered or listed")
            + problem(
                "account     ", status.hasTwin_p ? "another machine runs with a copy of this one's account folder" : "",
                "other devices see that one: `baton account leave` and `join` on one of the two, then restart this node"
            )
            + problem("policy      ", status.policyProblem, AcceptPolicyFile.meaningOfMistake)
            + problem("shared      ", status.sharedRootsProblem, "until it is fixed, no folder is shared")
    }

    /// Two lines about a damaged file: the problem and its consequence. None if there is no problem.
    private static func problem(_ name: String, _ problem: String, _ meaning: String) -> [String] {
        problem.isEmpty ? [] : ["\(name) \(SafeText.escaped(problem))", "             " + meaning]
    }
}
