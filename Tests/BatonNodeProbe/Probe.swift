// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonDiscovery
import BatonDocuments
import BatonNode
import BatonTransport
import BatonWeb
import Foundation
import Logging

/// A node without one of its defences or with another setting, so that tests can put it on a lab host.
///
/// It prints `ready` as `baton node --json` does, and stops at the end of its input.
///
/// - `--without seal`, `size` or `periods`: does not protect its advertisements in that way.
/// - `--without gate`: answers everybody.
/// - `--without clock-delay`: takes tokens of the clock at once.
/// - `--without network`: keeps its period when the network changes.
/// - `--without ports`: keeps its port.
/// - `--without copies-by-rule`: sends digests of files that a rule accepts.
/// - `--without retry`: does not try a failed responder again.
/// - `--rotation MILLISECONDS`: the life of its instance name.
/// - `--turn MILLISECONDS`: the time for one instance while others wait.
/// - `--choice SECONDS`: the time to choose one of several applications.
/// - `--answer SECONDS`: the time for another device's answers.
/// - `--allow private-sites`: the same as `baton node --private-sites`.
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
