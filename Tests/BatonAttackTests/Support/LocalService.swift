// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import BatonTestSupport
import Foundation
import Logging
import SystemPackage
import Testing

@testable import BatonNode
@testable import BatonTransport

/// A node that runs, as others on its network reach it.
final class LocalService: Sendable {
    private let scratch: ScratchFolder
    /// The node is its first device.
    let account: TestAccount
    private let node: Node
    private let loop = EventLoop(name: "visitors")

    init(devices: Int = 1, limits: NodeLimits = NodeLimits()) async throws {
        scratch = try ScratchFolder("attack")
        account = try TestAccount(devices: devices)
        var tuning = NodeTuning()
        tuning.limits = limits
        let home = try Home(environment: ["BATON_HOME": scratch.path + "/home"])
        try FileManager.default.createDirectory(
            atPath: home.stateFolder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        try FileManager.default.moveItem(
            atPath: account.devices[0].store.folder.string, toPath: AccountStore.folder(in: home).string)
        node = Node(home: home, tuning: tuning, logger: Logger(label: "attack") { _ in SwiftLogNoOpLogHandler() })
        try await node.start()
    }

    /// What its announcement tells devices of the account, for their tokens.
    var gateNonce: [UInt8] { get async throws { try #require(await node.gateNonce) } }

    /// Connects as others on the network do.
    func visit(from address: IPAddress = .ipv4Loopback) async throws -> Visit {
        try await Visit(port: try #require(await node.port), at: address, of: self, on: loop)
    }

    func close() async {
        await node.stop()
    }
}
