// SPDX-License-Identifier: Apache-2.0

import SystemPackage

/// Applications as transient units of the user's systemd: they live on when the node is stopped, and their output goes
/// to the journal.
///
/// Source: systemd-run(1); names as in systemd's "Desktop Environment Integration".
enum ServiceUnit {
    /// The user's service manager, which has answered.
    struct Manager: Sendable {
        let run: FilePath
        let environment: [String: String]

        /// - Parameters:
        ///   - environment: the process's own; it says how to reach the manager.
        ///   - time: the time that it has to answer.
        /// - Returns: `nil` if there is none, or it does not answer.
        static func find(
            _ search: ExecutableSearch, environment: [String: String], within time: Duration
        ) async -> Manager? {
            guard let run = try? search.find("systemd-run"), let control = try? search.find("systemctl") else {
                return nil
            }
            let answer = await ShortProcess.run(
                control, ["--user", "show", "--property=Version", "--value"], environment: environment,
                within: time)
            guard let answer, answer.hasSucceeded, answer.output.contains(where: \.isNumber) else { return nil }
            return Manager(run: run, environment: environment)
        }

        /// Starts a unit.
        ///
        /// - Returns: its name, once the program has been executed (`Type=exec`).
        func start(
            _ command: ApplicationLauncher.Command, identifier: String, name: String, home: FilePath,
            environment: [String: String]
        ) async throws(LaunchError) -> String {
            let unit = ServiceUnit.name(of: identifier, random: .random(in: .min ... .max))
            let arguments = ServiceUnit.arguments(
                unit: unit, command: command, name: name, home: home, variables: environment.keys.sorted())
            // The values go through the environment: anybody can read arguments.
            let answer = await ShortProcess.run(
                run, arguments, environment: self.environment.merging(environment) { $1 },
                within: ApplicationLauncher.unitTime)
            guard let answer else {
                throw LaunchError("the service manager did not start \(command.program) in time")
            }
            guard answer.hasSucceeded else {
                let said =
                    answer.errors.split(whereSeparator: \.isNewline).first.map(String.init) ?? "it did not say why"
                throw LaunchError("the service manager could not start \(command.program): \(said)")
            }
            return unit
        }
    }

    /// `app-baton-<identifier>-<random>.service`, the identifier as systemd-escape(1) has it.
    static func name(of identifier: String, random: UInt32) -> String {
        // A unit's name has at most 255 bytes.
        let escaped = identifier.map { $0 == "-" ? "\\x2d" : String($0) }.joined().prefix(200)
        let digits = String(random, radix: 16)
        return "app-baton-\(escaped)-\(String(repeating: "0", count: 8 - digits.count))\(digits).service"
    }

    /// - Parameter variables: names of environment variables; systemd-run takes their values from its own.
    static func arguments(
        unit: String, command: ApplicationLauncher.Command, name: String, home: FilePath, variables: [String]
    ) -> [String] {
        // The manager replaces $NAME in arguments; $$ is a dollar sign.
        let words = command.arguments.map {
            $0.split(separator: "$", omittingEmptySubsequences: false).joined(separator: "$$")
        }
        return ["--user", "--collect", "--quiet", "--unit=\(unit)", "--description=\(name)", "--slice=app.slice"]
            + ["--property=Type=exec", "--working-directory=\(home)"] + variables.map { "--setenv=\($0)" }
            + ["--", command.program.string] + words
    }
}
