// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonMessages
import BatonNode

/// `baton status`
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

/// Prints the node's status.
enum StatusRendering {
    static func json(_ status: WireStatusResponse) -> String {
        let problems = [
            ("policyProblem", status.policyProblem), ("handoffProblem", status.handoffProblem),
            ("sharedRootsProblem", status.sharedRootsProblem),
        ].filter { !$0.1.isEmpty }
        return JSONValue.object(
            [
                JSONValue.Member("device", .string(status.device)),
                JSONValue.Member("deviceID", .string(status.deviceID)),
                JSONValue.Member("port", .integer(Int64(status.port))),
                JSONValue.Member("responder", .string(status.responder)),
                JSONValue.Member("peers", .integer(Int64(status.peers))),
                JSONValue.Member("offers", .integer(Int64(status.offers))),
                JSONValue.Member("connections", .integer(Int64(status.connections))),
                JSONValue.Member("applications", .integer(Int64(status.applications))),
                JSONValue.Member("process", .integer(Int64(status.processID))),
                JSONValue.Member("handoff", .string(status.handoffIsOff ? "off" : "on")),
            ] + (status.hasTwin_p ? [JSONValue.Member("hasTwin", .boolean(true))] : [])
                + problems.map { JSONValue.Member($0.0, .string($0.1)) }
        ).text
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
