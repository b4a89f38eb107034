import ArgumentParser
import Baton
import BatonMessages
import FoundationEssentials
import SystemPackage

/// `baton devices`
struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract: "List the other devices of the account that this one knows.",
        discussion: """
            EXAMPLES:
              baton devices
              baton devices --json
            """)

    @OptionGroup var output: JSONOption

    func run() async throws {
        let devices = try await NodeAccess.withNode { try await $0.devices() }
        if output.json {
            for device in devices { try Output.line(DeviceRendering.json(device)) }
            return
        }
        guard !devices.isEmpty else {
            Output.say("No other device has been seen yet: run `baton node` there, on the same network and account.")
            return
        }
        let width = Terminal.width(of: .standardOutput)
        for line in DeviceRendering.lines(devices, width: width, now: Date().timeIntervalSince1970) {
            try Output.line(line)
        }
    }
}

/// How devices are printed.
enum DeviceRendering {
    static func json(_ device: WireDevice) -> String {
        JSONValue.object([
            JSONValue.Member("name", .string(device.name)),
            JSONValue.Member("deviceID", .string(device.deviceID)),
            JSONValue.Member("addresses", .array(device.addresses.map(JSONValue.string))),
            JSONValue.Member("seen", ISO8601.format(seconds: device.seen).map(JSONValue.string) ?? .null),
        ]).text
    }

    static func lines(_ devices: [WireDevice], width: Int, now: Double) -> [String] {
        var table = Table([
            Table.Column("NAME", minimum: 8), Table.Column("ID"), Table.Column("ADDRESSES", minimum: 15),
            Table.Column("SEEN", alignsRight: true),
        ])
        table.rows = devices.map { device in
            [
                SafeText.escaped(device.name), SafeText.escaped(device.deviceID.prefix(8)),
                SafeText.escaped(device.addresses.joined(separator: " ")), Moment.age(of: device.seen, now: now),
            ]
        }
        return table.lines(width: width)
    }
}
