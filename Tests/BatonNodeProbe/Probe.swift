// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonDiscovery
import BatonDocuments
import BatonNode
import BatonTransport
import BatonWeb
import Foundation
import Logging

/// A node with something else than what every program has, so that tests can put it on a lab host.
///
/// `--without seal`, `--without size` or `--without periods` leaves out what guards its advertisements, `--without
/// gate` answers everybody, `--without clock-delay` takes tokens of the clock at once, `--without network` lets the
/// network change and keeps its period, `--without ports` keeps its port, `--without copies-by-rule` tells digests
/// where a rule has accepted, `--without retry` leaves a responder that has failed alone, `--rotation MILLISECONDS`
/// shortens the life of its instance name, `--turn MILLISECONDS` is how long it looks at an instance while others wait,
/// `--choice SECONDS` the time to choose one of several applications, and `--answer SECONDS` that for another device's
/// answers; `--allow private-sites` is what `baton node --private-sites` is. It says `ready` as `baton node --json`
/// does, and stops at the end of its input.
@main
enum Probe {
    static func main() async throws {
        // Without a defence it is no node for the home that its user has.
        guard ProcessInfo.processInfo.environment["BATON_HOME"] != nil else { fatalError("tests set BATON_HOME") }
        var seams = NodeSeams()
        var configuration = NodeConfiguration()
        configuration.environment = ProcessInfo.processInfo.environment
        var arguments = CommandLine.arguments.dropFirst()
        while let option = arguments.popFirst(), let value = arguments.popFirst() {
            switch (option, value) {
            case ("--without", "seal"): seams.guards.remove(.seal)
            case ("--without", "size"): seams.guards.remove(.size)
            case ("--without", "periods"): seams.guards.remove(.periods)
            case ("--without", "network"): seams.followsNetwork = false
            case ("--without", "gate"): seams.hasGate = false
            case ("--without", "clock-delay"): seams.clockDelay = .zero
            case ("--without", "ports"): seams.keepsPort = true
            case ("--without", "copies-by-rule"): seams.checks.remove(.copiesByRule)
            case ("--without", "retry"): seams.discovery.firstRetry = .seconds(86_400)
            case ("--choice", _): seams.handoffs.choice = .seconds(Int(value) ?? 0)
            case ("--answer", _): seams.handoffs.answer = .seconds(Int(value) ?? 0)
            case ("--allow", "private-sites"): configuration.siteAssociations.allowsPrivateAddresses = true
            case ("--rotation", _): seams.discovery.rotationPeriod = .milliseconds(Int(value) ?? 0)
            case ("--turn", _): seams.discovery.probeTurn = Int(value).map { .milliseconds($0) }
            case _: fatalError("there is no \(option) \(value)")
            }
        }
        let node = Node(
            home: try Home(environment: ProcessInfo.processInfo.environment), configuration: configuration,
            seams: seams,
            logger: Logger(label: "probe") { StreamLogHandler.standardError(label: $0) })
        try await node.start()
        let ready = #"{"event":"ready","port":\#(await node.port ?? 0)}"#
        FileHandle.standardOutput.write(Data((ready + "\n").utf8))
        // A thread of its own: reading blocks.
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                while readLine() != nil {}
                continuation.resume()
            }
        }
        await node.stop()
    }
}
