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
            KNOWS says whether the device has the revocation list that this one has. One that does not gets it when the \
            two meet, and until then it still serves a device that was revoked.

            Two devices on which others were revoked before either heard of it have different keys, and cannot find each \
            other by themselves. A third one that meets both brings them together; so does `baton devices revoke`, once \
            more, on one of the two.

            A "?" after the ID says that no connection has shown the device yet, but only an announcement, which whoever \
            has a device of the account can make up; in JSON, "proved" is false.

            BEFORE shows the names that a device had here before: who renames a stolen one is found by them.

            EXAMPLES:
              baton devices
              baton devices --json
            """)

    @OptionGroup var output: JSONOption

    func run() async throws {
        let (devices, listsApart) = try await NodeAccess.withNode { try await $0.devices() }
        if listsApart {
            Output.say(try DeviceRendering.listsApart(CommandEnvironment.home()))
        } else if let unmet = DeviceRendering.unmet(devices, hasList: try hasList()) {
            Output.say(unmet)
        }
        if output.json {
            for device in devices { try Output.line(DeviceRendering.json(device)) }
            return
        }
        guard !devices.isEmpty else {
            Output.say("No other device has been seen yet: run `baton node` there, on the same network and account.")
            return
        }
        if let unproved = DeviceRendering.unproved(devices) { Output.say(unproved) }
        let width = Terminal.width(of: .standardOutput)
        for line in DeviceRendering.lines(devices, width: width, now: Date().timeIntervalSince1970) {
            try Output.line(line)
        }
    }
}

extension DevicesListCommand {
    private func hasList() throws -> Bool {
        let store = CommandEnvironment.accountStore(try CommandEnvironment.home())
        return ((try? store.load().state.number) ?? 0) > 0
    }
}

/// How devices are printed.
enum DeviceRendering {
    static func listsApart(_ home: Home) -> String {
        let revoked = (try? CommandEnvironment.accountStore(home).load().state.revoked.map(\.short).sorted()) ?? []
        return """
            Devices were revoked apart, on devices that had not met: \(revoked.joined(separator: ", ")). All of them are \
            locked out. To give the others new keys as well, revoke one of them once more, by its id.
            """
    }

    /// What is to be said of devices that are not here and do not know the revocation list; nil where there are none,
    /// or no list.
    static func unmet(_ devices: [WireDevice], hasList: Bool) -> String? {
        let names = devices.filter { !$0.knows && !$0.present }.map { SafeText.escaped($0.name) }
        guard hasList, !names.isEmpty else { return nil }
        return """
            Not met since a device was revoked here: \(names.joined(separator: ", ")). Where one was revoked on it as well \
            meanwhile, the two cannot find each other: `baton devices revoke`, once more, on one of them brings them together.
            """
    }

    /// What the mark behind an id means; nil where there is none.
    static func unproved(_ devices: [WireDevice]) -> String? {
        guard devices.contains(where: { !$0.proved }) else { return nil }
        return "? after an ID: it was announced, but no connection has shown yet that it is a device of the account."
    }

    static func json(_ device: WireDevice) -> String {
        var members = [
            JSONValue.Member("name", .string(device.name)),
            JSONValue.Member("deviceID", .string(device.deviceID)),
            JSONValue.Member("addresses", .array(device.addresses.map(JSONValue.string))),
            JSONValue.Member("seen", ISO8601.format(seconds: device.seen).map(JSONValue.string) ?? .null),
            JSONValue.Member("knows", .boolean(device.knows)), JSONValue.Member("proved", .boolean(device.proved)),
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
            Table.Column("ID"), Table.Column("ADDRESSES", minimum: 15), Table.Column("KNOWS"),
            Table.Column("SEEN", alignsRight: true),
        ]
        var table = Table([Table.Column("NAME", minimum: 8)] + former + others)
        table.rows = devices.map { device in
            let names = hasFormer ? [device.name, device.formerNames.joined(separator: ", ")] : [device.name]
            let facts = [
                SafeText.escaped(device.deviceID.prefix(8)) + (device.proved ? "" : " ?"),
                SafeText.escaped(device.addresses.joined(separator: " ")), device.knows ? "yes" : "no",
                Moment.age(of: device.seen, now: now),
            ]
            return names.map { SafeText.escaped($0) } + facts
        }
        return table.lines(width: width)
    }
}
