// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BatonAccount
import BatonNode
import BatonTransport
import FoundationEssentials
import Glibc
import Subprocess
import SystemPackage

/// The node as a service of the user's systemd.
///
/// A package brings the unit along. For a `baton` that was installed in another way, the unit is written into the
/// user's folder of units.
struct UserService: Sendable {
    static let unit = "baton.service"

    /// The first line of a unit that this command wrote, and may therefore replace or remove.
    private static let mark = "# Written by `baton node install`. `baton node uninstall` removes it.\n"
    /// The most bytes of a program's output that are read: 64 KiB.
    private static let outputBound = 64 << 10

    private let home: Home

    /// Finds the service manager of this user.
    ///
    /// - Throws: ``CommandError`` if there is none.
    static func find() async throws -> UserService {
        let home = try CommandEnvironment.home()
        guard ProcessInfo.processInfo.environment["BATON_HOME"]?.isEmpty ?? true else {
            throw CommandError.usage(
                "BATON_HOME is set, and a service does not see it: unset it, or run `baton node` yourself")
        }
        if let answer = try? await control("show-environment"), answer.isSuccess {
            try requireSame(["XDG_STATE_HOME", "XDG_CONFIG_HOME"], in: answer.standardOutput)
            return UserService(home: home)
        }
        let isBooted = access("/run/systemd/system", F_OK) == 0
        throw CommandError.failed(
            isBooted
                ? "systemd does not answer for this user: log in directly, and not by su or sudo, or run `sudo loginctl"
                    + " enable-linger \"$USER\"` first"
                : "this system does not run systemd: run `baton node` at the start of your session")
    }

    /// Makes sure that a service looks for the account and the settings where this command does.
    ///
    /// - Parameter environment: the service manager's variables, one `NAME=VALUE` a line.
    private static func requireSame(_ names: [String], in environment: String) throws(CommandError) {
        let lines = environment.split(separator: "\n")
        for name in names {
            guard let value = ProcessInfo.processInfo.environment[name], !value.isEmpty,
                !lines.contains("\(name)=\(value)")
            else { continue }
            throw .usage(
                "\(name) is set here, and a service does not see it: put it into ~/.config/environment.d and log in"
                    + " again, or run `baton node` yourself")
        }
    }

    /// Whether the service runs on after the user has logged out.
    var isLingering: Bool {
        guard let entry = getpwuid(geteuid()), let name = entry.pointee.pw_name else { return false }
        return access("/var/lib/systemd/linger/" + String(cString: name), F_OK) == 0
    }

    /// Enables the service and starts it anew. Returns when the node is ready.
    ///
    /// - Parameter port: the TCP port of this and every later start; nil leaves the settings as they are.
    func install(port: UInt16?) async throws {
        let store = CommandEnvironment.accountStore(home)
        _ = try store.load()
        if try await !Self.control("is-active --quiet \(Self.unit)").isSuccess { try store.refuseNode() }
        if let port { try NodeSettings.keepPort(port, home) }
        try placeUnit()
        try await Self.require("daemon-reload")
        // A node that has failed too often may start again. This fails if the unit is new.
        _ = try await Self.control("reset-failed \(Self.unit)")
        try await Self.require("enable --quiet \(Self.unit)")
        guard try await Self.control("restart \(Self.unit)").isSuccess else {
            throw CommandError.failed("the node did not start: `baton node log` says why")
        }
    }

    /// Stops and disables the service. Returns when the node has stopped, and whether there was a service.
    func uninstall() async throws -> Bool {
        // A package brings the unit along, which then is neither enabled nor active.
        let isEnabled = try await Self.control("is-enabled --quiet \(Self.unit)").isSuccess
        let isActive = try await Self.control("is-active --quiet \(Self.unit)").isSuccess
        guard isEnabled || isActive else { return false }
        try await Self.require("disable --quiet --now \(Self.unit)")
        if isOwn(ownUnit) {
            try? FileManager.default.removeItem(atPath: ownUnit)
            try await Self.require("daemon-reload")
        }
        return true
    }

    // MARK: - The unit

    private var ownUnit: String {
        FilePath(home.configurationFolder).removingLastComponent().string + "/systemd/user/" + Self.unit
    }

    private func isOwn(_ path: String) -> Bool {
        (try? String(contentsOfFile: path, encoding: .utf8))?.hasPrefix(Self.mark) ?? false
    }

    /// Writes the user's unit, unless the package of this program has one.
    private func placeUnit() throws {
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let prefix = FilePath(program).removingLastComponent().removingLastComponent().string
        let isPackaged =
            ["/usr", "/usr/local"].contains(prefix) && access(prefix + "/lib/systemd/user/" + Self.unit, F_OK) == 0
        let exists = access(ownUnit, F_OK) == 0
        guard !isPackaged else {
            if exists, isOwn(ownUnit) { try FileManager.default.removeItem(atPath: ownUnit) }
            return
        }
        guard !exists || isOwn(ownUnit) else {
            throw CommandError.failed("\(ownUnit) is a unit of yours, and stays: move it away, or start it yourself")
        }
        let folder = FilePath(ownUnit).removingLastComponent().string
        do {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try Data(try Self.text(for: program).utf8).write(to: URL(filePath: ownUnit), options: .atomic)
        } catch let error as CommandError {
            throw error
        } catch {
            throw CommandError.failed("\(ownUnit) cannot be written: \(error)")
        }
    }

    /// The unit for a program, by its absolute path.
    static func text(for program: String) throws(CommandError) -> String {
        // Other characters mean something to systemd.
        let isPlain = program.unicodeScalars.allSatisfy {
            $0.properties.isAlphabetic || $0.properties.numericType != nil || "/._-+@".unicodeScalars.contains($0)
        }
        guard isPlain else {
            throw .failed("systemd cannot start \(SafeText.escaped(program)): install baton into /usr/local/bin")
        }
        let unit = String(decoding: PackageResources.baton_service, as: UTF8.self)
        return mark + unit.replacing("/usr/bin/baton", with: program)
    }

    // MARK: - systemctl

    private struct Answer {
        let isSuccess: Bool
        let standardOutput: String
        let standardError: String
    }

    /// - Parameter command: words with single spaces between them.
    private static func control(_ command: String) async throws -> Answer {
        let result = try await Subprocess.run(
            .name("systemctl"), arguments: Arguments(["--user"] + command.split(separator: " ").map(String.init)),
            input: .none, output: .string(limit: outputBound), error: .string(limit: outputBound))
        return Answer(
            isSuccess: result.terminationStatus.isSuccess, standardOutput: result.standardOutput,
            standardError: result.standardError)
    }

    private static func require(_ command: String) async throws {
        let answer = try await control(command)
        guard !answer.isSuccess else { return }
        let reason = answer.standardError.split(whereSeparator: \.isNewline).first ?? "it did not say why"
        throw CommandError.failed("systemctl --user \(command) failed: \(SafeText.escaped(String(reason)))")
    }
}

struct NodeInstallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "install",
        abstract: "Start the node now, and whenever you log in.",
        discussion: """
            The node becomes a service of your systemd: \(UserService.unit). It restarts after a failure. Run this \
            again after an upgrade: it starts the new version.

            The service stops when you log out. On a server, let it run on: sudo loginctl enable-linger "$USER"

            EXAMPLES:
              baton node install
              baton node install --port 24747     # always this port, for a firewall
            """)

    @Option(name: .long, help: "Always use this TCP port, 1024 to 65535, and write it into the file node.")
    var port: UInt16?

    func validate() throws {
        if let port { try NodeSettings.validate(port) }
    }

    func run() async throws {
        let service = try await UserService.find()
        try await service.install(port: port)
        Output.say("The node runs, and starts whenever you log in.")
        if !service.isLingering {
            Output.say("It stops when you log out. On a server, let it run on: sudo loginctl enable-linger \"$USER\"")
        }
    }
}

struct NodeUninstallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "uninstall",
        abstract: "Stop the service, and start it no more.",
        discussion: "The account and your settings stay.")

    func run() async throws {
        let wasThere = try await UserService.find().uninstall()
        Output.say(
            wasThere ? "The node is stopped, and starts no more when you log in." : "The node is no service here.")
    }
}

struct NodeLogCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "log",
        abstract: "Print what the service has logged.",
        discussion: """
            The log is in the journal of systemd. A node that you started in a terminal writes its log there instead.

            EXAMPLES:
              baton node log
              baton node log --follow
            """)

    @Flag(name: .shortAndLong, help: "Keep running, and print new entries.")
    var follow = false

    @Option(name: .shortAndLong, help: ArgumentHelp("Print this many of the last entries.", valueName: "count"))
    var lines: UInt32 = 100

    func run() throws {
        let words = ["journalctl", "--no-pager", "--user-unit=\(UserService.unit)", "--lines=\(lines)"]
        var arguments = (words + (follow ? ["--follow"] : [])).map { strdup($0) } + [nil]
        execvp("journalctl", &arguments)
        throw CommandError.failed(
            "journalctl does not run here (\(String(cString: strerror(errno)))): without systemd, the node writes its"
                + " log where you started it")
    }
}
