// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonNode
import SystemPackage

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Find out why devices do not see each other.",
        discussion: """
            Examines this machine and its network step by step, and with DEVICE the road to that device: it connects \
            to the device, has it connect back, and both listen for the other's multicast DNS. It takes about 5 s, and \
            10 s at most.

            Each finding is fine, a problem, or not measured, which means that nothing is known. A problem comes with \
            what was seen, and with the commands that fix it.

            The exit status is 0 if all is fine, 1 if there is a problem, and 79 if there is none but something could \
            not be measured.

            EXAMPLES:
              baton doctor
              baton doctor desktop
              baton doctor desktop --verbose   # a line for each check
              baton doctor --json
            """)

    @Argument(help: "The device's name, or the beginning of its id.")
    var device: CommandArgument?

    @Flag(name: .shortAndLong, help: "Also print a line for each check that is fine.")
    var verbose = false

    @OptionGroup var output: JSONOption

    func run() async throws {
        let home = try CommandEnvironment.home()
        let examination = try await DoctorExamination(home: home, device: device?.text)
        var findings = examination.machine
        try show(findings)
        if !output.json { Output.say("Listening on the network, and connecting to a device. This takes about 5 s.") }
        let others = try await examination.network()
        try show(others, about: examination.target?.name ?? device?.text)
        findings += others
        if output.json { try Output.line(FindingRendering.jsonSummary(findings)) }
        if let error = FindingRendering.error(findings) { throw error }
    }

    private func show(_ findings: [Finding], about device: String? = nil) throws {
        if output.json {
            for finding in findings { try Output.line(FindingRendering.json(finding)) }
        } else {
            let width = Terminal.width(of: .standardOutput)
            let lines = FindingRendering.lines(findings, about: device, isVerbose: verbose, width: width)
            for line in lines { try Output.line(line) }
        }
    }
}
