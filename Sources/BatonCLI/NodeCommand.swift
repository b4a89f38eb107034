// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonNode
import BatonWeb
import FoundationEssentials
import Glibc
import Logging

/// `baton node`
struct NodeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "node",
        abstract: "Run this machine's node, in the foreground.",
        discussion: """
            The node announces this device, finds the others, and serves what is offered. It says when it is ready, and \
            tells systemd when started by it (Type=notify). ^C or SIGTERM stops it: it withdraws, says goodbye and \
            finishes what it writes.

            EXAMPLES:
              baton node
              baton node --port 47100     # a port of your choice, for a firewall
              BATON_HOME=/tmp/second baton node
            """)

    @Option(
        name: .long,
        help: "The TCP port for other devices, 1024 to 65535. (default: any free one, another every 15 minutes)")
    var port: UInt16?

    @Flag(
        name: .long,
        help: "Ask web hosts in private networks as well which applications belong to them.")
    var privateSites = false

    @Flag(name: .shortAndLong, help: "Log what happens inside.")
    var verbose = false

    @OptionGroup var output: JSONOption

    func validate() throws {
        if let port, port < 1024 {
            throw ValidationError("port \(port) is below 1024, where no device dials: choose a higher one")
        }
    }

    func run() async throws {
        let home = try CommandEnvironment.home()
        var configuration = NodeConfiguration()
        configuration.port = port ?? 0
        configuration.environment = ProcessInfo.processInfo.environment
        configuration.siteAssociations.allowsPrivateAddresses = privateSites
        let level: Logger.Level = verbose ? .debug : .notice
        let logger = Logger(label: "baton.node") { _ in ErrorOutputLog(level: level, name: "baton node") }
        let node = Node(home: home, configuration: configuration, logger: logger)

        // Watched before anything starts, so that a node that is stopped while it starts stops cleanly as well.
        let (stops, stop) = AsyncStream<Int32>.makeStream(bufferingPolicy: .bufferingOldest(1))
        let interrupts = await Interrupts.watch { stop.yield($0) }
        defer { withExtendedLifetime(interrupts) {} }
        do {
            try await node.start()
        } catch {
            throw CommandError(error)
        }
        await sayReady(node)
        ServiceManager.notify("READY=1")
        for await _ in stops { break }
        ServiceManager.notify("STOPPING=1")
        if output.json {
            try? Output.line(EventLine.text("stopping"))
        } else {
            Output.say("stopping: withdrawing, and finishing what is being written (^C again ends at once)")
        }
        await node.stop()
        if output.json { try? Output.line(EventLine.text("stopped")) }
    }

    private func sayReady(_ node: Node) async {
        let port = await node.port ?? 0
        if output.json {
            try? Output.line(EventLine.text("ready", [JSONValue.Member("port", .integer(Int64(port)))]))
        } else {
            let time = self.port == nil ? " for now" : ""
            Output.say("ready on port \(port)\(time): offer with `baton offer`, take with `baton accept`; ^C stops")
        }
    }
}

extension CommandError {
    /// Why the node cannot start.
    init(_ error: NodeError) {
        let (status, code): (ExitStatus, String) =
            switch error {
            case .alreadyRunning, .accountInUse: (.alreadyRunning, "alreadyRunning")
            case .account, .identity: (.account, "account")
            case .portInUse, .portReserved: (.failed, "port")
            case .socket, .folder, .document, .threads: (.failed, "failed")
            }
        self.init(status, code: code, "\(error)")
    }
}
