// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonAccount
import BatonMessages
import BatonNode
import BatonProtocol
import BatonTransport
import FoundationEssentials

struct DevicesRevokeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Lock a device out of the account, such as a lost laptop.",
        discussion: """
            This device then refuses the revoked one, ends all connections with it, and announces itself under new \
            keys. The other devices of the account do the same when they meet a device that knows. A revocation cannot \
            be undone: the device can only join again as a new one, with the account key.

            A former name works too, so that you find a stolen device that was renamed. A device that was only \
            announced needs its whole id: anyone who has one of your devices can announce any name.

            Asks for the passphrase of `baton account create`, or for the account key if this device does not keep \
            it. If standard input is no terminal, the account key is its first line.

            If the key itself may have leaked, use `baton \
            account rotate`: anyone who has the key can add devices.

            EXAMPLES:
              baton devices revoke phone
              baton devices revoke 3kd7x2mq                    # the beginning of its id
              baton devices revoke phone --yes --key-file key  # for scripts
            """)

    @Argument(
        help: ArgumentHelp("The device's name, a former name, or the beginning of its id.", valueName: "name"),
        completion: .devices)
    var device: CommandArgument

    @Flag(name: .shortAndLong, help: "Do not ask.")
    var yes = false

    @Option(
        name: .long, help: ArgumentHelp("Read the account key from a file of mode 0600.", valueName: "file"),
        completion: .file())
    var keyFile: CommandArgument?

    /// How long to look for devices that know of other revocations: 3 s.
    private static let patience = Duration.seconds(3)
    /// How long to wait for the other devices to store the list: 5 s.
    private static let spreading = Duration.seconds(5)

    func run() async throws {
        let home = try CommandEnvironment.home()
        let store = CommandEnvironment.accountStore(home)
        let revoked = try store.load().state.revoked
        let node = try await NodeAccess.node(of: home, storing: store, otherwise: "nothing was revoked")
        let chosen = try await DeviceChoice.find(device.text, node, store, revoked: Array(revoked)).device
        guard let id = DeviceID(chosen.id) else { throw CommandError.usage(DeviceChoice.noSuchDevice(device.text)) }
        try await Confirmation.require(
            isGiven: yes, consequence: "a revocation cannot be taken back",
            question: "Lock \(chosen.shown) out of the account? This cannot be taken back.")
        // The account is loaded again after that: two lists with the same number would divide the devices.
        let (secrets, account) = try await AccountKeyInput.read(from: keyFile?.path, of: store)
        // Ask before the revocation. After it, a device that was only announced under the old keys is not present.
        var spread = RevocationSpread(try await node?.devices().devices ?? [])
        func adopt(_ account: Account) async throws {
            guard let node else { return try store.take(account.givenLists) }
            try await node.adopt(account.travellingLists(wrappedBy: account.identity.localWrappingKey))
        }
        // Revoke at once. The revocations of other devices come later.
        var revoking = account
        if !account.isRevoked(id) {
            _ = try revoking.revoke([id], with: secrets)
            try await adopt(revoking)
            Output.say("\(chosen.shown) is revoked. Looking for revocations on other devices...")
        }
        let outcome = await AccountLookup(for: revoking, with: secrets, within: Self.patience).run()
        if outcome.isIncomplete { Output.say(outcome.incompleteness) }
        if let unused = outcome.unusedRevocations(fixedBy: "revoke once more") { Output.say(unused) }
        var met = outcome.account
        if met.state != revoking.state || met.state.isApart {
            // Lists that were signed apart bring their keys along. The node needs these for devices that use them.
            try await adopt(met)
            if met.state.isApart || !met.isRevoked(id) {
                _ = try met.revoke([id], with: secrets)
                try await adopt(met)
            }
            Output.say("\(chosen.shown) is revoked, together with the devices that were revoked elsewhere.")
        } else if account.isRevoked(id) {
            Output.say("\(chosen.shown) was revoked before.")
            return
        }
        let isApart: Bool
        if let node {
            isApart = try await Self.follow(&spread, node)
            for line in spread.lines { Output.say(line) }
            await node.close()
        } else {
            isApart = try store.load().state.isApart
            Output.say(
                "No node is running here: the other devices learn of it when `baton node` meets them.")
        }
        // Another command or device may have revoked one at the same time.
        if isApart { Output.say(DeviceRendering.listsApart(home)) }
    }

    /// Waits until the present devices have the list, for at most ``spreading``.
    ///
    /// - Returns: whether the node has lists that were signed apart.
    private static func follow(_ spread: inout RevocationSpread, _ node: NodeClient) async throws -> Bool {
        let deadline = ContinuousClock.now + spreading
        var isApart: Bool
        (spread.devices, isApart) = try await node.devices()
        while spread.isAwaited, ContinuousClock.now < deadline {
            try await Task.sleep(for: .milliseconds(100))
            (spread.devices, isApart) = try await node.devices()
        }
        return isApart
    }
}

struct RevocationSpread {
    /// Ids of the devices that were present before the revocation, proved or not.
    private let present: Set<String>
    var devices: [WireDevice]

    init(_ devices: [WireDevice]) {
        present = Set(devices.filter(\.present).map(\.deviceID))
        self.devices = devices
    }

    /// Whether a device that was present does not know yet.
    var isAwaited: Bool { devices.contains { present.contains($0.deviceID) && !$0.knows } }

    var lines: [String] {
        func names(_ knows: Bool) -> String {
            devices.filter { $0.knows == knows }.map {
                SafeText.escaped($0.name) + ($0.proved ? "" : " (only announced)")
            }.joined(separator: ", ")
        }
        var lines: [String] = []
        if devices.contains(where: \.knows) { lines.append("Known to: this device, \(names(true)).") }
        if devices.contains(where: { !$0.knows }) {
            lines.append("Not yet known to: \(names(false)). They learn of it when they meet a device that knows.")
        }
        return lines
    }
}
