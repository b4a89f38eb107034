// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonAccount
import BatonMessages
import BatonProtocol

struct KnownDevice: Sendable, Equatable {
    let id: String
    let name: String
    /// Its names before the present one.
    var formerNames: [String] = []
    /// Whether a connection has proved that it is a device of the account. An announcement proves nothing: a device of
    /// the account can announce others that do not exist.
    var isProved = false

    /// Its name, short id and former names, for people.
    var shown: String {
        let former = SafeText.escaped(formerNames.joined(separator: ", "))
        let before = former.isEmpty ? "" : ", called \(former) before"
        return "\(SafeText.escaped(name)) (\(SafeText.escaped(id.prefix(8)))\(before))"
    }

    func hasName(_ text: String) -> Bool { name == text || formerNames.contains(text) }
}

extension KnownDevice {
    init(_ device: WireDevice) {
        self.init(
            id: device.deviceID, name: device.name, formerNames: device.formerNames, isProved: device.proved)
    }

    init(_ entry: KnownDevices.Entry) {
        self.init(
            id: entry.deviceID, name: entry.name, formerNames: entry.formerNames?.other(than: entry.name) ?? [],
            isProved: entry.isProved ?? false)
    }
}

struct DeviceChoice {
    let ownID: String
    let ownName: String
    let known: [KnownDevice]
    /// Ids of revoked devices. Their names are not kept.
    let revoked: [String]

    private static let nameless = "a device that is not known here"

    /// The shortest beginning of an id that names a device: 4 characters.
    static let shortestPrefix = 4

    /// Finds a device by its name, a former name, or the beginning of its id.
    ///
    /// A whole id is always taken as an id, and need not be known here. A device therefore cannot take another's place
    /// by using that id as its name. A device that was only announced is found by its whole id alone: anyone who has a
    /// device of the account can announce another one under any name.
    func find(_ text: String) throws(CommandError) -> KnownDevice {
        let lower = text.lowercased()
        if let id = DeviceID(lower)?.description {
            guard id != ownID else { throw Self.ownDevice }
            return known.first { $0.id == id } ?? KnownDevice(id: id, name: Self.nameless)
        }
        let isPrefix = lower.utf8.count >= Self.shortestPrefix
        let forgotten = revoked.filter { id in !known.contains { $0.id == id } }
        let called = (known + forgotten.map { KnownDevice(id: $0, name: Self.nameless) }).filter { device in
            (device.hasName(text) && !revoked.contains(device.id)) || (isPrefix && device.id.hasPrefix(lower))
        }
        let certain = called.filter { $0.isProved || revoked.contains($0.id) }
        if certain.count == 1, let device = certain.first { return device }
        guard certain.isEmpty else {
            let lines = certain.map { "  \($0.shown)" }.joined(separator: "\n")
            throw .usage("\(certain.count) devices match: give more of an id\n\(lines)")
        }
        guard called.isEmpty else { throw .usage(Self.unproved(called, text)) }
        if text == ownName || (isPrefix && ownID.hasPrefix(lower)) { throw Self.ownDevice }
        throw .usage(Self.noSuchDevice(text))
    }

    /// Finds a device among those that the node knows, or the store if no node runs.
    ///
    /// - Parameter revoked: ids of revoked devices that can be chosen as well.
    static func find(
        _ text: String, _ node: NodeClient?, _ store: AccountStore, revoked: [DeviceID] = []
    ) async throws -> (device: KnownDevice, isKnown: Bool) {
        let own = try store.load()
        let known =
            try await node?.devices().devices.map(KnownDevice.init)
            ?? store.loadKnownDevices().entries.map(KnownDevice.init)
        let device = try DeviceChoice(
            ownID: own.identity.id.description, ownName: own.deviceName, known: known,
            revoked: revoked.map(\.description)
        ).find(text)
        return (device, known.contains { $0.id == device.id })
    }

    static func noSuchDevice(_ text: String) -> String {
        "no device \"\(SafeText.escaped(text))\" is known here: see `baton devices`, or give its whole id"
    }

    private static var ownDevice: CommandError {
        CommandError(
            .refused, "this is the device that you are at: to take it out of its account, use `baton account leave`")
    }

    private static func unproved(_ called: [KnownDevice], _ text: String) -> String {
        let lines = called.map { "  \(SafeText.escaped($0.name)) (\(SafeText.escaped($0.id)))" }.joined(separator: "\n")
        return """
            "\(SafeText.escaped(text))" was only announced, and no connection has proved that it is a device of the \
            account. No proved device has or had that name: see `baton devices` for the names that they have now. To \
            choose this one all the same, give its whole id
            \(lines)
            """
    }
}

/// The names of the devices in a listing. A name that two devices have gets the beginning of the id.
struct DeviceNames {
    private let ids: [String: Set<String>]

    /// - Parameter devices: each device of the listing, as often as it occurs.
    init(_ devices: [(name: String, id: String)]) {
        ids = Dictionary(devices.map { ($0.name, [$0.id]) }, uniquingKeysWith: { $0.union($1) })
    }

    /// The name of a device, safe to show: `laptop`, or `laptop (pcg6kclp)` if another device has that name too.
    func shown(_ name: String, _ id: String) -> String {
        let shown = SafeText.escaped(name)
        guard let ids = ids[name], ids.count > 1 else { return shown }
        return "\(shown) (\(SafeText.escaped(id.prefix(8))))"
    }
}
