import ArgumentParser
import Baton
import BatonMessages

/// `baton status`
struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show how the node on this machine does.",
        discussion: """
            The responder is what announces this device on the network (Avahi); the node keeps trying while it is \
            away.

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

/// How the node's status is printed.
enum StatusRendering {
    static func json(_ status: WireStatusResponse) -> String {
        let problem =
            status.policyProblem.isEmpty ? [] : [JSONValue.Member("policyProblem", .string(status.policyProblem))]
        return JSONValue.object(
            [
                JSONValue.Member("device", .string(status.device)),
                JSONValue.Member("deviceID", .string(status.deviceID)),
                JSONValue.Member("port", .integer(Int64(status.port))),
                JSONValue.Member("responder", .string(status.responder)),
                JSONValue.Member("peers", .integer(Int64(status.peers))),
                JSONValue.Member("applications", .integer(Int64(status.applications))),
                JSONValue.Member("handoff", .string(status.handoffIsOff ? "off" : "on")),
            ] + problem
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
            + (status.handoffIsOff ? ["handoff      off: nothing is offered or listed; `baton handoff on`"] : [])
            + (status.policyProblem.isEmpty
                ? []
                : [
                    "policy       \(SafeText.escaped(status.policyProblem))",
                    "             until it is mended, everything is asked about",
                ])
    }
}
