// SPDX-License-Identifier: Apache-2.0

import SystemPackage

/// Starts applications, and opens addresses and files with the desktop's applications.
///
/// A started process outlives this one. It shares no descriptor, terminal or signal with it, and no shell sees its
/// arguments.
package struct ApplicationLauncher: Sendable {
    /// A process that was started here, or a unit of the service manager.
    package enum Place: Sendable, Hashable {
        /// The name of the unit of the user's service manager.
        case unit(String)
        /// The process id.
        case process(Int32)
    }

    /// How a process ended.
    package enum Ending: Sendable, Hashable {
        case exited(Int32)
        case signalled(Int32)

        /// The same for people, such as "its exit status is 1".
        package var sentence: String {
            switch self {
            case .exited(let status): "its exit status is \(status)"
            case .signalled(let signal): "signal \(signal) ended it"
            }
        }
    }

    /// How long programs that only answer a question, `systemctl` and `xdg-settings`, may take.
    let answerTime: Duration
    /// How long the service manager may take to start a unit.
    static let unitTime = Duration.seconds(10)

    let environment: [String: String]
    let home: FilePath
    let search: ExecutableSearch

    /// - Parameters:
    ///   - environment: that of this process. Applications get it without the variables of a service.
    ///   - answerTime: the time for an answer. Default 2 s.
    package init(environment: [String: String], answerTime: Duration = .seconds(2)) {
        self.answerTime = answerTime
        self.environment = environment
        home = environment["HOME"].map { FilePath($0) }.flatMap { $0.isAbsolute ? $0 : nil } ?? "/"
        search = ExecutableSearch(environment: environment)
    }

    /// Starts an application in the user's home folder: as a unit of the user's service manager where that answers,
    /// else as a process in a session of its own.
    ///
    /// - Parameters:
    ///   - additions: to the environment, such as `BATON_ACTIVITY_TYPE`.
    ///   - onEnd: told once when a ``Place/process(_:)`` has ended; never of a ``Place/unit(_:)``, which the manager
    ///     watches, and whose output is in the journal.
    /// - Returns: where it runs, once its program has been executed.
    package func launch(
        _ manifest: ApplicationManifest, adding additions: [String: String] = [:],
        onEnd: @escaping @Sendable (Ending) -> Void = { _ in }
    ) async throws(LaunchError) -> Place {
        let command = try resolve(manifest)
        let environment = LaunchEnvironment.make(environment, adding: additions)
        if let manager = await ServiceUnit.Manager.find(search, environment: self.environment, within: answerTime) {
            return .unit(
                try await manager.start(
                    command, identifier: manifest.identifier, name: manifest.name, home: home,
                    environment: environment))
        }
        return .process(
            try await DetachedProcess.start(command, environment: environment, home: home, onEnd: onEnd))
    }

    /// Whether an application could be started now, as far as can be told without starting it.
    ///
    /// - Throws: what ``launch(_:adding:onEnd:)`` would.
    package func check(_ manifest: ApplicationManifest) throws(LaunchError) {
        _ = try resolve(manifest)
    }

    /// A program and its arguments.
    struct Command: Sendable, Hashable {
        let program: FilePath
        let arguments: [String]
    }

    private func resolve(_ manifest: ApplicationManifest) throws(LaunchError) -> Command {
        guard let program = manifest.command.first else {
            throw LaunchError(
                "\(manifest.identifier) is registered without a command: start it yourself, or register it "
                    + "again with --command")
        }
        let command = Command(program: try search.find(program), arguments: Array(manifest.command.dropFirst()))
        guard manifest.needsTerminal else { return command }
        // The desktop's own choice first; then Debian's.
        let terminals = [("xdg-terminal-exec", [String]()), ("x-terminal-emulator", ["-e"])]
        for (name, options) in terminals {
            guard let terminal = try? search.find(name) else { continue }
            return Command(program: terminal, arguments: options + [command.program.string] + command.arguments)
        }
        throw LaunchError(
            "\(manifest.identifier) wants a terminal, and there is neither xdg-terminal-exec nor x-terminal-emulator")
    }
}
