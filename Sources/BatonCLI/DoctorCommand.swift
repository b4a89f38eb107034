// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonAccount
import BatonMessages
import BatonNode
import BatonTransport
import SystemPackage

/// `baton doctor`
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Find out why devices do not see each other.",
        discussion: """
            Examines this machine step by step. Each finding is fine, a problem, or not measured, which means that \
            nothing is known. A problem comes with what was seen, and with the commands that fix it.

            The exit status is 0 if all is fine, 1 if there is a problem, and 79 if there is none but something could \
            not be measured.

            EXAMPLES:
              baton doctor
              baton doctor --verbose      # a line for each check
              baton doctor --json
            """)

    @Flag(name: .shortAndLong, help: "Also print a line for each check that is fine.")
    var verbose = false

    @OptionGroup var output: JSONOption

    /// The time for the node to answer: 3 s. It needs milliseconds.
    private static let patience = Duration.seconds(3)

    func run() async throws {
        let home = try CommandEnvironment.home()
        let facts = MachineFacts.read(home, CommandEnvironment.accountStore(home))
        let findings = Diagnosis.machine(facts, node: await Self.node(of: home))
        if output.json {
            for finding in findings { try Output.line(FindingRendering.json(finding)) }
            try Output.line(FindingRendering.jsonSummary(findings))
        } else {
            let width = Terminal.width(of: .standardOutput)
            for line in FindingRendering.lines(findings, isVerbose: verbose, width: width) { try Output.line(line) }
        }
        if let error = FindingRendering.error(findings) { throw error }
    }

    /// Asks the node for its status.
    private static func node(of home: Home) async -> NodeAnswer {
        await withTaskGroup(of: NodeAnswer.self) { group in
            group.addTask {
                do throws(NodeClientError) {
                    let client = try await NodeClient.connect(to: home)
                    let status = try? await client.status()
                    await client.close()
                    return status.map(NodeAnswer.status) ?? .silent("the node ended the connection without an answer")
                } catch {
                    switch error {
                    case .noNode: return .absent
                    case .notTaken, .notUsable: return .silent("\(error)")
                    }
                }
            }
            group.addTask {
                try? await Task.sleep(for: patience)
                return .silent("the node does not answer within \(patience.components.seconds) s")
            }
            defer { group.cancelAll() }
            return await group.next() ?? .absent
        }
    }
}
