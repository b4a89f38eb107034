// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonEventLoop
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
            The node announces this device, finds the others, and serves the activities that are offered. It says when \
            it is ready, and tells systemd if that started it (Type=notify). ^C or SIGTERM stops it: it withdraws all \
            offers, closes its connections and finishes the files that it is writing.

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
        help: "Also ask web hosts in private networks which applications belong to them.")
    var privateSites = false

    @Flag(name: .shortAndLong, help: "Log details.")
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

        // Watch for signals before the node starts, so that a signal during the start stops it cleanly.
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
        // When the devices around are found, so that their first records are opened as well.
        let tidying = Task {
            try await Alarm.sleep(for: .seconds(30))
            StartupPages.release()
        }
        defer { tidying.cancel() }
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
    /// The reason that the node cannot start.
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
