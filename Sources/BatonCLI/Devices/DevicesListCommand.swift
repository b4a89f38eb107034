// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonAccount
import BatonMessages
import BatonTransport
import FoundationEssentials
import SystemPackage

/// `baton devices list`
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
        if output.json {
            for device in devices { try Output.line(DeviceRendering.json(device)) }
            return
        }
        guard !devices.isEmpty else {
            Output.say("No other device has been seen yet: add one with `baton account invite`.")
            Output.say(
                "A device of the account is seen while `baton node` runs there, in one network. If it does, find the "
                    + "cause with `baton doctor`.")
            return
        }
        if let unproved = DeviceRendering.unproved(devices) { Output.say(unproved) }
        let width = Terminal.width(of: .standardOutput)
        for line in DeviceRendering.lines(devices, width: width, now: Date().timeIntervalSince1970) {
            try Output.line(line)
        }
    }
}

/// Prints devices.
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
        var members = [
            JSONValue.Member("name", .string(device.name)),
            JSONValue.Member("deviceID", .string(device.deviceID)),
            JSONValue.Member("addresses", .array(device.addresses.map(JSONValue.string))),
            JSONValue.Member("seen", ISO8601.format(seconds: device.seen).map(JSONValue.string) ?? .null),
            JSONValue.Member("present", .boolean(device.present)), JSONValue.Member("knows", .boolean(device.knows)),
            JSONValue.Member("proved", .boolean(device.proved)),
        ]
        if !device.formerNames.isEmpty {
            members.append(JSONValue.Member("formerNames", .array(device.formerNames.map(JSONValue.string))))
        }
        return JSONValue.object(members).text
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
