// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonMessages

/// A device that can be named.
struct KnownDevice: Sendable, Equatable {
    let id: String
    let name: String
    /// What it was called before, its present name left out.
    var formerNames: [String] = []
    /// A connection has shown it. Whoever has the account's keys can announce devices that do not exist.
    var isProved = false

    /// Name and short id, for people, and what they may know it by.
    var shown: String {
        let former = SafeText.escaped(formerNames.joined(separator: ", "))
        let before = former.isEmpty ? "" : ", called \(former) before"
        return "\(SafeText.escaped(name)) (\(SafeText.escaped(id.prefix(8)))\(before))"
    }

    /// Whether it is called so, or was.
    func isCalled(_ text: String) -> Bool { name == text || formerNames.contains(text) }
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

/// What keeps one device from being taken for another that a person means. Every program has all of it: only the tests
/// of attacks, inside this package, leave one out, to see that nothing else stands in the way.
struct DeviceChecks: OptionSet {
    let rawValue: UInt8

    /// A whole id is an id, whoever calls itself by it.
    static let wholeID = DeviceChecks(rawValue: 1)
    /// What is only announced goes by no name.
    static let proved = DeviceChecks(rawValue: 2)

    static let all: DeviceChecks = [.wholeID, .proved]
}

/// Finds the one device that a person means.
struct DeviceChoice {
    let ownID: String
    let ownName: String
    let known: [KnownDevice]
    /// Ids of devices that were revoked before; their names are forgotten.
    let revoked: [String]
    var checks = DeviceChecks.all

    private static let nameless = "a device that is not known here"

    /// The fewest characters of an id that name a device.
    static let shortestPrefix = 4

    /// - Parameter text: a name, also one that the device had before, or the beginning of an id. Who calls itself by
    ///   another device's id takes not its place: a whole id is an id and nothing else, and need not be known, and the
    ///   beginning of one is as good as a name. What no connection has shown is found by its whole id alone: who has a
    ///   device of the account can announce another one under the name that the user knows.
    func find(_ text: String) throws(CommandError) -> KnownDevice {
        let lower = text.lowercased()
        if checks.contains(.wholeID), let id = DeviceID(lower)?.description {
            guard id != ownID else { throw Self.ownDevice }
            return known.first { $0.id == id } ?? KnownDevice(id: id, name: Self.nameless)
        }
        let isPrefix = lower.utf8.count >= Self.shortestPrefix
        let forgotten = revoked.filter { id in !known.contains { $0.id == id } }
        let called = (known + forgotten.map { KnownDevice(id: $0, name: Self.nameless) }).filter { device in
            (device.isCalled(text) && !revoked.contains(device.id)) || (isPrefix && device.id.hasPrefix(lower))
        }
        let certain = called.filter { $0.isProved || revoked.contains($0.id) || !checks.contains(.proved) }
        if certain.count == 1, let device = certain.first { return device }
        guard certain.isEmpty else {
            let lines = certain.map { "  \($0.shown)" }.joined(separator: "\n")
            throw .usage("\(certain.count) devices are called so: give more of an id\n\(lines)")
        }
        guard called.isEmpty else { throw .usage(Self.unproved(called, text)) }
        if text == ownName || (isPrefix && ownID.hasPrefix(lower)) { throw Self.ownDevice }
        throw .usage(Self.noSuchDevice(text))
    }

    static func noSuchDevice(_ text: String) -> String {
        "no device \"\(SafeText.escaped(text))\" is known here: see `baton devices`, or give its whole id"
    }

    private static var ownDevice: CommandError {
        CommandError(
            .refused, code: "refused",
            "this is the device that you are at: to take it out of its account, use `baton account leave`")
    }

    private static func unproved(_ called: [KnownDevice], _ text: String) -> String {
        let lines = called.map { "  \(SafeText.escaped($0.name)) (\(SafeText.escaped($0.id)))" }.joined(separator: "\n")
        return """
            something announces itself as "\(SafeText.escaped(text))", but no connection has shown that it is a device of the \
            account, and none that one has shown is called so or was before: see `baton devices` for what the device that \
            you mean is called now. To revoke this one all the same, give its whole id
            \(lines)
            """
    }
}
