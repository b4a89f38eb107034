// SPDX-License-Identifier: Apache-2.0

import BatonDiscovery
import BatonNode
import BatonTransport
import BatonWeb
import Foundation
import Logging

/// A node with other times than `baton node` has, so that tests can put it on a lab host.
///
/// It prints `ready` as `baton node --json` does, with its gate nonce, and stops at the end of its input.
///
/// - `--rotation MILLISECONDS`: the life of its instance name.
/// - `--choice SECONDS`: the time to choose one of several applications.
/// - `--answer SECONDS`: the time for another device's answers.
/// - `--allow private-sites`: the same as `baton node --private-sites`.
@main
enum Probe {
    static func main() async throws {
        // It must not use the home of its user.
        guard ProcessInfo.processInfo.environment["BATON_HOME"] != nil else { fatalError("tests set BATON_HOME") }
        var tuning = NodeTuning()
        var configuration = NodeConfiguration()
        configuration.environment = ProcessInfo.processInfo.environment
        var arguments = CommandLine.arguments.dropFirst()
        while let option = arguments.popFirst(), let value = arguments.popFirst() {
            switch (option, value) {
            case ("--choice", _): tuning.handoffs.choice = .seconds(Int(value) ?? 0)
            case ("--answer", _): tuning.handoffs.answer = .seconds(Int(value) ?? 0)
            case ("--allow", "private-sites"): configuration.siteAssociations.allowsPrivateAddresses = true
            case ("--rotation", _): tuning.discovery.rotationPeriod = .milliseconds(Int(value) ?? 0)
            case _: fatalError("there is no \(option) \(value)")
            }
        }
        let node = Node(
            home: try Home(environment: ProcessInfo.processInfo.environment), configuration: configuration,
            tuning: tuning,
            logger: Logger(label: "probe") { StreamLogHandler.standardError(label: $0) })
        try await node.start()
        let ready = #"{"event":"ready","port":\#(await node.port ?? 0),"gateNonce":\#(await node.gateNonce ?? [])}"#
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
