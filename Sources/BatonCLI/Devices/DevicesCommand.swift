// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonAccount
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SystemPackage

struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract: "List the other devices of the account, rename this one, or lock one out.",
        subcommands: [
            DevicesListCommand.self, DevicesRenameCommand.self, DevicesForgetCommand.self, DevicesRevokeCommand.self,
        ], defaultSubcommand: DevicesListCommand.self)
}

struct DevicesListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the other devices of the account that this one knows.",
        discussion: """
            HERE says whether the device announces itself on the network now. KNOWS says whether the device has the \
            same revocation list as this one. A device without it receives the list when the two meet. Until then it \
            still serves a revoked device.

            If devices were revoked on two devices at the same time, the two have different keys and cannot find each \
            other. A third device that meets both brings them together. So does another `baton devices revoke` on one \
            of the two.

            A "?" after the ID says that the device was only announced, and that no connection has proved it yet. A \
            device of the account can announce others that do not exist. In JSON, "proved" is false.

            BEFORE shows former names, so that you find a stolen device that was renamed.

            EXAMPLES:
              baton devices
              baton devices --json
            """)

    @OptionGroup var output: JSONOption

    func run() async throws {
        let (devices, listsApart) = try await NodeAccess.withNode { client in
            await ResponderWatch.look(client)
            return try await client.devices()
        }
        if listsApart {
            Output.say(try DeviceRendering.listsApart(CommandEnvironment.home()))
        }
        if !output.json, let unproved = DeviceRendering.unproved(devices) { Output.say(unproved) }
        try Output.list(
            devices, asJSON: output.json, json: DeviceRendering.json,
            nothing: """
                No other device has been seen yet: add one with `baton account invite`.
                A device of the account is seen while `baton node` runs there, in one network. If it does, find the \
                cause with `baton doctor`.
                """
        ) { DeviceRendering.lines($0, width: $1, now: Date().timeIntervalSince1970) }
    }
}

enum DeviceRendering {
    static func listsApart(_ home: Home) -> String {
        let revoked = (try? CommandEnvironment.accountStore(home).load().state.revoked.map(\.short).sorted()) ?? []
        return """
            Devices were revoked on devices that had not met: \(revoked.joined(separator: ", ")). All of them are \
            locked out. To give the others common keys, revoke one of these again, by its id.
            """
    }

    /// The meaning of the mark after an id; nil if no device has the mark.
    static func unproved(_ devices: [WireDevice]) -> String? {
        guard devices.contains(where: { !$0.proved }) else { return nil }
        return "? after an ID: only announced so far; no connection has proved yet that the device is in the account."
    }

    static func json(_ device: WireDevice) -> String {
        var members: [JSONMember] = [
            .text("name", device.name), .text("deviceID", device.deviceID), .texts("addresses", device.addresses),
            .time("seen", device.seen), .flag("present", device.present), .flag("knows", device.knows),
            .flag("proved", device.proved),
        ]
        if !device.formerNames.isEmpty {
            members.append(.texts("formerNames", device.formerNames))
        }
        return members.line
    }

    static func lines(_ devices: [WireDevice], width: Int, now: Double) -> [String] {
        let hasFormer = devices.contains { !$0.formerNames.isEmpty }
        let former = hasFormer ? [Table.Column("BEFORE", minimum: 8)] : []
        let others = [
            Table.Column("ID"), Table.Column("HERE"), Table.Column("ADDRESSES", minimum: 15), Table.Column("KNOWS"),
            Table.Column("SEEN", alignsRight: true),
        ]
        var table = Table([Table.Column("NAME", minimum: 8)] + former + others)
        table.rows = devices.map { device in
            let names = hasFormer ? [device.name, device.formerNames.joined(separator: ", ")] : [device.name]
            let facts = [
                SafeText.escaped(device.deviceID.prefix(8)) + (device.proved ? "" : " ?"),
                device.present ? "yes" : "no",
                SafeText.escaped(device.addresses.joined(separator: " ")), device.knows ? "yes" : "no",
                Moment.age(of: device.seen, now: now),
            ]
            return names.map { SafeText.escaped($0) } + facts
        }
        return table.lines(width: width)
    }
}

struct DevicesRenameCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rename",
        abstract: "Give this device another name.",
        discussion: """
            The other devices show the new name as soon as they hear from this one, and the old one under BEFORE. To \
            rename another device, run the command there.

            EXAMPLES:
              baton devices rename "old laptop"
            """)

    @Argument(help: ArgumentHelp("What the other devices call this one. At most 63 bytes.", valueName: "name"))
    var name: CommandArgument

    func run() async throws {
        let home = try CommandEnvironment.home()
        let store = CommandEnvironment.accountStore(home)
        let name = try name.deviceName
        if let node = try await NodeAccess.node(of: home, storing: store, otherwise: "nothing was renamed") {
            try await node.editDevices(.name(name))
            await node.close()
        } else {
            try store.setDeviceName(name)
        }
        Output.say("This device is \(SafeText.escaped(name)) now.")
    }
}

struct DevicesForgetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "forget",
        abstract: "Remove a device that is gone from the list of this device.",
        discussion: """
            This is for a device that you gave away after `baton account leave`, or erased. A device that still has \
            its keys is listed again when it comes back. Lock a lost one out with `baton devices revoke`.

            EXAMPLES:
              baton devices forget phone
            """)

    @Argument(
        help: ArgumentHelp("The device's name, a former name, or the beginning of its id.", valueName: "name"),
        completion: .devices)
    var device: CommandArgument

    func run() async throws {
        let home = try CommandEnvironment.home()
        let store = CommandEnvironment.accountStore(home)
        let node = try await NodeAccess.node(of: home, storing: store, otherwise: "nothing was forgotten")
        let (chosen, isKnown) = try await DeviceChoice.find(device.text, node, store)
        guard isKnown else { throw CommandError.usage(DeviceChoice.noSuchDevice(device.text)) }
        if let node {
            try await node.editDevices(.forget(chosen.id))
            await node.close()
        } else {
            try store.forget(chosen.id)
        }
        Output.say("\(chosen.shown) is forgotten here.")
    }
}
