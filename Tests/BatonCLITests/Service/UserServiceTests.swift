// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

@testable import BatonCLI

@Suite("The node as a service", .serialized, .timeLimit(.minutes(3)))
struct UserServiceTests {
    /// A user with an account, whose files are removed after the test.
    private final class User: Sendable {
        private let scratch: ScratchFolder
        var folder: String { scratch.path }
        var environment: [String: String] {
            [
                "BATON_HOME": "", "HOME": folder, "XDG_CONFIG_HOME": folder + "/config",
                "XDG_STATE_HOME": folder + "/state", "XDG_RUNTIME_DIR": folder + "/run",
                "SWIFT_BACKTRACE": "enable=no", "AVAHI_COMPAT_NOWARN": "1",
            ]
        }
        var unit: String { folder + "/config/systemd/user/baton.service" }

        init() throws {
            scratch = try ScratchFolder("service")
            try FileManager.default.createDirectory(atPath: folder + "/run", withIntermediateDirectories: true)
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder + "/run")
        }

        /// Writes the file of settings.
        func write(_ settings: String) throws {
            let file = folder + "/config/baton/node"
            try FileManager.default.createDirectory(
                atPath: folder + "/config/baton", withIntermediateDirectories: true)
            try Data(settings.utf8).write(to: URL(filePath: file))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
        }

        func run(_ arguments: String...) async throws -> BuiltCommand.Result {
            try await BuiltCommand.run(arguments, environment: environment)
        }

        /// Starts a service manager for this user, which runs until the result goes.
        func startManager() throws -> ChildProcess {
            let variables = environment.filter { $0.key != "BATON_HOME" }
            return try ChildProcess(
                ["bash", LabServiceManager.script],
                environment: ProcessInfo.processInfo.environment.merging(variables) { $1 },
                output: .file(folder + "/manager"), error: .file(folder + "/manager-errors"))
        }

        var managerSaid: String { (try? String(contentsOfFile: folder + "/manager", encoding: .utf8)) ?? "" }
    }

    @Test(
        "install starts the node with its port, and uninstall leaves nothing but the settings",
        .enabled(if: LabServiceManager.unavailableReason == nil, "\(LabServiceManager.unavailableReason ?? "")"))
    func service() async throws {
        let user = try User()
        let manager = try user.startManager()
        defer { try? manager.input.close() }
        try await eventually("the service manager is ready: \(user.managerSaid)") {
            user.managerSaid.contains("ready")
        }
        let early = try await user.run("node", "install")
        #expect(early.status == ExitStatus.account.rawValue && early.errors.contains("run `baton`"))
        #expect(try await user.run("node", "uninstall").errors == "The node is no service here.\n")
        // The first run makes the account and starts the service, and says it if the service does not start.
        func firstRun() throws -> (status: Int32, shown: String) {
            try TerminalDialogue.run(
                [], environment: user.environment, answers: [("Which one? (1-2) ", "1"), ("Passphrase: ", "")])
        }
        try user.write("port=80\n")
        let failed = try firstRun()
        let sentence = "not started as a service, because the node did not start: `baton node log` says why."
        #expect(failed.status == 0 && failed.shown.words.contains(sentence.words), "\(failed.shown)")
        #expect(failed.shown.contains("\nNext: `baton node` runs it in this terminal."))
        #expect(try await user.run("node", "uninstall").status == 0)
        #expect(try await user.run("account", "leave", "--yes").status == 0)
        try user.write("")

        let first = try firstRun()
        #expect(first.status == 0 && first.shown.contains("The node runs, and starts whenever you log in.\r\n"))
        #expect(first.shown.contains("\nNext: `baton account invite` adds another device."), "\(first.shown)")
        #expect(try await user.run("status").status == 0)

        let installed = try await user.run("node", "install", "--port", "24747")
        try #require(installed.status == 0, "\(installed.errors)")
        #expect(installed.errors.hasPrefix("The node runs, and starts whenever you log in.\n"))
        let status = try await user.run("status")
        #expect(status.output.contains("\nport         24747\n"), "\(status)")
        let process = status.output.split(separator: "\n").first { $0.hasPrefix("process") }

        // Again, as after an upgrade: another process, with the same settings.
        try #require(try await user.run("node", "install").status == 0)
        let again = try await user.run("status")
        #expect(again.output.contains("\nport         24747\n"))
        #expect(again.output.split(separator: "\n").first { $0.hasPrefix("process") } != process)

        // A service would look elsewhere.
        let elsewhere = try await BuiltCommand.run(
            ["node", "install"], environment: user.environment.merging(["XDG_STATE_HOME": "/elsewhere"]) { $1 })
        #expect(elsewhere.status == ExitStatus.usage.rawValue && elsewhere.errors.contains("environment.d"))

        let removed = try await user.run("node", "uninstall")
        #expect(removed.errors == "The node is stopped, and starts no more when you log in.\n", "\(removed)")
        #expect(try await user.run("status").status == ExitStatus.noNode.rawValue)
        #expect(!FileManager.default.fileExists(atPath: user.unit))
        #expect(try String(contentsOfFile: user.folder + "/config/baton/node", encoding: .utf8) == "port=24747\n")

        // A unit that the user wrote is not replaced.
        try Data("[Service]\nExecStart=/bin/true\n".utf8).write(to: URL(filePath: user.unit))
        let kept = try await user.run("node", "install")
        #expect(kept.status == ExitStatus.failed.rawValue && kept.errors.contains(user.unit), "\(kept)")
    }

    @Test("without a service manager one sentence says what to do")
    func noManager() async throws {
        let user = try User()
        for command in ["install", "uninstall"] {
            let result = try await user.run("node", command)
            #expect(result.status == ExitStatus.failed.rawValue && result.output.isEmpty)
            #expect(result.errors.contains("run `baton node`") || result.errors.contains("enable-linger"))
        }
        let elsewhere = try await BuiltCommand.run(["node", "install"])
        #expect(elsewhere.status == ExitStatus.usage.rawValue && elsewhere.errors.contains("BATON_HOME"))
    }

    @Test("the unit is one that systemd understands")
    func unit() throws {
        let user = try User()
        let text = try UserService.text(for: "/bin/true")
        #expect(text.contains("\nExecStart=/bin/true node\n"))
        try Data(text.utf8).write(to: URL(filePath: user.folder + "/baton.service"))
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/systemd-analyze") else { return }
        let (ending, said) = try ChildProcess.run(
            [
                "sh", "-c",
                "XDG_RUNTIME_DIR=$1/run exec systemd-analyze --user --man=no verify \"$1/baton.service\" 2>&1",
                "sh", user.folder,
            ])
        #expect(ending == .exited(0) && said.isEmpty, "\(said)")
        #expect(throws: CommandError.self) { try UserService.text(for: "/home/a b/baton") }
        #expect(throws: CommandError.self) { try UserService.text(for: "/opt/%h/baton") }
    }

    @Test("the file of settings gives the port, and the option has precedence")
    func port() async throws {
        let user = try User()
        try #require(try await user.run("account", "create").status == 0)
        try user.write("# for the firewall\nport=24748\n")
        for (arguments, port) in [([], "24748"), (["--port", "24749"], "24749")] as [([String], String)] {
            let node = try BuiltNode(user.environment, arguments, in: user.folder)
            try await node.ready()
            #expect(node.said.contains("ready on port \(port):"), "\(node.said)")
            node.send(SIGTERM)
            #expect(await node.end() == 0)
        }
        try user.write("port=80\n")
        let refused = try await user.run("node")
        #expect(refused.status == ExitStatus.usage.rawValue)
        #expect(
            refused.errors
                == "baton: \(user.folder)/config/baton/node: line 1: the port must be a number from 1024 to"
                + " 65535\n")
    }
}

extension String {
    /// The words, whatever lines they are on.
    fileprivate var words: [Substring] { split(whereSeparator: \.isWhitespace) }
}
