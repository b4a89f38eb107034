// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonAccount
import BatonMessages
import BatonNode
import BatonTransport
import FoundationEssentials

/// `baton devices revoke`
struct DevicesRevokeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Lock a device out of the account: a lost laptop, or one that you gave away.",
        discussion: """
            From then on this device refuses it, ends every connection with it, and announces itself under new keys; the \
            account's other devices do the same as soon as they meet this one, or another that knows. It cannot be taken \
            back: the device joins again as a new one, with the account key.

            A name that the device had before does as well, so that a thief who renames it is not lost sight of. What was \
            only announced, and no connection has shown to be a device of the account, goes by its whole id alone: whoever \
            has one of your devices can announce any name.

            Asks for the account key, as `baton account join` does. Where the key itself may have leaked, use `baton \
            account rotate`: whoever has the key can add devices.

            EXAMPLES:
              baton devices revoke phone
              baton devices revoke 3kd7x2mq                    # the beginning of its id, as `baton devices` shows it
              baton devices revoke phone --yes --key-file key  # for scripts
            """)

    @Argument(
        help: ArgumentHelp("The device's name, one that it had before, or the beginning of its id.", valueName: "name"))
    var device: String

    @Flag(name: .shortAndLong, help: "Do not ask.")
    var yes = false

    @Option(name: .long, help: ArgumentHelp("Read the account key from a file of mode 0600.", valueName: "file"))
    var keyFile: String?

    /// How long devices are looked for that know of revocations which this one does not.
    private static let patience = Duration.seconds(3)
    /// How long the others are given to take the list over before it is said who has not.
    private static let spreading = Duration.seconds(5)

    func run() async throws {
        let home = try CommandEnvironment.home()
        let store = CommandEnvironment.accountStore(home)
        do {
            let own = try store.load()
            let node = try await Self.node(of: home, store)
            let known: [KnownDevice]
            if let node {
                known = try await node.devices().devices.map(KnownDevice.init)
            } else {
                known = try store.loadKnownDevices().entries.map(KnownDevice.init)
            }
            let chosen = try DeviceChoice(
                ownID: own.identity.id.description, ownName: own.deviceName, known: known,
                revoked: own.state.revoked.map(\.description)
            ).find(device)
            guard let id = DeviceID(chosen.id) else { throw CommandError.usage(DeviceChoice.noSuchDevice(device)) }
            try await Confirmation.require(
                isGiven: yes, consequence: "a revocation cannot be taken back",
                question: "Lock \(chosen.shown) out of the account? This cannot be taken back.")
            // What it has by now is signed past: two lists of one number would be apart.
            let (secrets, account) = try await AccountKeyInput.read(from: keyFile, of: store)
            // Asked before: what no connection has shown does not count as present under the old keys afterwards.
            var spread = RevocationSpread(try await node?.devices().devices ?? [])
            func take(_ account: Account) async throws {
                guard let node else { return try store.take(account.givenLists) }
                try await node.adopt(account.travellingLists(wrappedBy: KeyEncryptionKey(localTo: account.identity)))
            }
            // At once: what others know comes after it.
            var revoking = account
            if !account.isRevoked(id) {
                _ = try revoking.revoke([id], with: secrets)
                try await take(revoking)
                Output.say("\(chosen.shown) is revoked. Looking for what was revoked elsewhere...")
            }
            let outcome = await AccountLookup(for: revoking, with: secrets).run(within: Self.patience)
            if outcome.isIncomplete { Output.say(outcome.incompleteness) }
            if let lack = outcome.lack(mendedBy: "revoke once more") { Output.say(lack) }
            var met = outcome.account
            if met.state != revoking.state || met.state.isApart {
                // The keys of lists signed apart come with them: the node tells those who seal with these keys.
                try await take(met)
                if met.state.isApart || !met.isRevoked(id) {
                    _ = try met.revoke([id], with: secrets)
                    try await take(met)
                }
                Output.say("\(chosen.shown) is revoked, with what was revoked elsewhere.")
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
                    "No node is running here: the other devices learn of it when `baton node` runs and meets them.")
            }
            // As where another command or device has revoked somebody meanwhile.
            if isApart { Output.say(DeviceRendering.listsApart(home)) }
        } catch let error as AccountError {
            throw CommandError(error)
        } catch let error as RevocationError {
            throw CommandError.failed("\(error)")
        } catch let error as HandoffError {
            throw CommandError(error)
        }
    }

    /// The node that is to take the list; nil only where none runs. One that runs and is not reached would neither see
    /// nor keep what is written beside it.
    private static func node(of home: Home, _ store: AccountStore) async throws -> NodeClient? {
        do {
            return try await NodeClient.connect(to: home)
        } catch .noNode {
            try store.refuseNode()
            return nil
        } catch {
            let failure = NodeAccess.failure(error, home)
            throw CommandError(failure.status, code: failure.code, "nothing was revoked: \(failure.message)")
        }
    }

    /// Waits a while for those who were there.
    ///
    /// - Returns: whether the node has lists that were signed apart, in the end.
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

/// Which of the account's devices know of a revocation.
struct RevocationSpread {
    /// Ids of those that were there before it was made, whether a connection has shown them or not.
    private let present: Set<String>
    /// The devices as they are now.
    var devices: [WireDevice]

    /// - Parameter devices: the devices as they are before the revocation.
    init(_ devices: [WireDevice]) {
        present = Set(devices.filter(\.present).map(\.deviceID))
        self.devices = devices
    }

    /// Whether one that was there does not know yet.
    var isAwaited: Bool { devices.contains { present.contains($0.deviceID) && !$0.knows } }

    /// What is said of them at the end.
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
