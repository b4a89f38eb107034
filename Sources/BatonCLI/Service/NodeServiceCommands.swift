// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BatonNode
import Glibc

/// `baton node install`
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

/// `baton node uninstall`
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

/// `baton node log`
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
