// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonEventLoop
import BatonNode
import BatonTransport
import BatonWeb
import FoundationEssentials
import Glibc
import Logging
import SystemPackage

struct NodeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "node",
        abstract: "Run this machine's node, now or as a service.",
        discussion: """
            The node announces this device, finds the others, and serves the activities that are offered. There is one \
            for each user. `baton node` runs it in the foreground, and `baton node install` makes it start whenever \
            you log in.

            EXAMPLES:
              baton node install                  # as a service, with systemd
              baton node                          # in the foreground
              baton node --port 24747             # with one port, for a firewall
            """,
        subcommands: [
            NodeRunCommand.self, NodeInstallCommand.self, NodeUninstallCommand.self, NodeLogCommand.self,
        ],
        defaultSubcommand: NodeRunCommand.self)
}

struct NodeRunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Run the node in the foreground. (default)",
        discussion: """
            The node says when it is ready. It also tells systemd, if that started it (Type=notify). ^C or SIGTERM \
            stops it: it withdraws all offers, closes its connections and finishes the files that it is writing.

            The port changes every 15 minutes, so that nobody can follow the node from one network to the next. If a \
            firewall needs one port, give it here, or write the line port=24747 into the file node of Baton's \
            configuration folder (~/.config/baton). `baton node install --port` writes it there.

            EXAMPLES:
              baton node
              baton node --port 24747     # a port of your choice, for a firewall
              BATON_HOME=/tmp/second baton node
            """)

    @Option(
        name: .long,
        help: "The TCP port for other devices, 1024 to 65535. (default: the configured one, else one that changes)")
    var port: UInt16?

    @Flag(
        name: .long,
        help: "Also ask web hosts in private networks which applications belong to them.")
    var privateSites = false

    @Flag(name: .shortAndLong, help: "Log details.")
    var verbose = false

    @OptionGroup var output: JSONOption

    func validate() throws {
        if let port { try NodeSettings.validate(port) }
    }

    func run() async throws {
        let home = try CommandEnvironment.home()
        let environment = ProcessInfo.processInfo.environment
        let port = try port ?? NodeSettings.load(home).port
        var configuration = NodeConfiguration()
        configuration.port = port ?? 0
        configuration.environment = environment
        configuration.siteAssociations.allowsPrivateAddresses = privateSites
        let level: Logger.Level = verbose ? .debug : .notice
        let logger = Logger(label: "baton.node") { _ in ErrorOutputLog(level: level, name: "baton node") }
        let node = Node(home: home, configuration: configuration, logger: logger)

        // Watch for signals before the node starts, so that a signal during the start stops it cleanly.
        let stop = FirstResult<Void>()
        await Interrupts.watch { stop.decide(()) }
        try await node.start()
        await sayReady(node, isFixed: port != nil)
        ServiceManager.notify("READY=1", socket: environment["NOTIFY_SOCKET"])
        let watching = Watchdog(environment: environment).map { watchdog in
            Task { try await watchdog.run { await node.turnLoops() } }
        }
        defer { watching?.cancel() }
        // When the devices around are found, so that their first records are opened as well.
        let tidying = Task {
            try await Alarm.sleep(for: .seconds(30))
            StartupPages.release()
        }
        defer { tidying.cancel() }
        await stop.value()
        ServiceManager.notify("STOPPING=1", socket: environment["NOTIFY_SOCKET"])
        if output.json {
            try? Output.line(EventLine.text("stopping"))
        } else {
            Output.say("stopping: withdrawing, and finishing what is being written (^C again ends at once)")
        }
        await node.stop()
        if output.json { try? Output.line(EventLine.text("stopped")) }
    }

    private func sayReady(_ node: Node, isFixed: Bool) async {
        let port = await node.port ?? 0
        if output.json {
            try? Output.line(EventLine.text("ready", [.count("port", port)]))
        } else {
            let time = isFixed ? "" : " for now"
            Output.say("ready on port \(port)\(time): offer with `baton offer`, take with `baton accept`; ^C stops")
        }
    }
}

extension NodeSettings {
    static func load(_ home: Home) throws(CommandError) -> NodeSettings {
        try CommandError.naming(path(in: home), try read(path(in: home)))
    }

    static func keepPort(_ port: UInt16, _ home: Home) throws(CommandError) {
        try CommandError.naming(path(in: home), try setPort(port, in: path(in: home)))
    }

    /// Refuses a port that no device dials.
    static func validate(_ port: UInt16) throws(ValidationError) {
        guard !ports.contains(port) else { return }
        throw ValidationError("port \(port) is below \(ports.lowerBound), where no device dials: choose a higher one")
    }
}

extension CommandError {
    init(_ error: NodeError) {
        let status: ExitStatus =
            switch error {
            case .alreadyRunning: .alreadyRunning
            case .account: .account
            case .unusable: .failed
            }
        self.init(status, "\(error)")
    }
}
