// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonMessages
import BatonProtocol
import SwiftProtobuf
import Testing

@testable import BatonCLI

@Suite("which device a person means")
struct DeviceChoiceTests {
    private static let ids = ["aaaabbbb", "aaaacccc", "zzzzyyyy"].map { $0 + String(repeating: "q", count: 24) }
    private let choice = DeviceChoice(
        ownID: "mmmm" + String(repeating: "q", count: 28), ownName: "laptop",
        known: [
            KnownDevice(id: ids[0], name: "phone", isProved: true),
            KnownDevice(id: ids[1], name: "tablet", isProved: true),
            KnownDevice(id: ids[2], name: "tablet", isProved: true),
        ], revoked: ["rrrr" + String(repeating: "q", count: 28)])

    @Test("a name, the beginning of an id in any case, or a whole id that is not known")
    func found() throws {
        #expect(try choice.find("phone").id == Self.ids[0])
        #expect(try choice.find("aaaab").id == Self.ids[0])
        #expect(try choice.find("ZZZZ").id == Self.ids[2])
        #expect(try choice.find("rrrr").id.hasPrefix("rrrr"))
        let strange = String(repeating: "a", count: 32)
        #expect(try choice.find(strange).id == strange)
    }

    @Test("no device takes another's place by calling itself by its id, or by the beginning of one")
    func namedAsAnother() throws {
        for name in [Self.ids[0], String(Self.ids[0].prefix(8))] {
            let choice = DeviceChoice(
                ownID: choice.ownID, ownName: "laptop",
                known: choice.known + [
                    KnownDevice(id: "ffff" + String(repeating: "q", count: 28), name: name, isProved: true)
                ],
                revoked: [])
            #expect(try choice.find(Self.ids[0]).id == Self.ids[0])
            if name.utf8.count == 8 {
                #expect {
                    try choice.find(name)
                } throws: {
                    ($0 as? CommandError)?.message.contains("2 devices match") == true
                }
            }
        }
    }

    @Test("devices that are only announced take no name from one that was connected")
    func invented() throws {
        let letters = "abcdefghijklmnopqrstuvwxyz234567"
        let invented = letters.map { KnownDevice(id: "xx\($0)" + String(repeating: "q", count: 29), name: "phone") }
        let phone = KnownDevice(id: Self.ids[0], name: "phone", isProved: true)
        let choice = DeviceChoice(ownID: choice.ownID, ownName: "laptop", known: invented + [phone], revoked: [])
        #expect(try choice.find("phone") == phone)
        #expect(try choice.find(invented[3].id) == invented[3])
    }

    /// The error that refuses a choice.
    private func refusal(_ choice: DeviceChoice, _ text: String) -> CommandError? {
        do {
            _ = try choice.find(text)
            return nil
        } catch {
            return error
        }
    }

    @Test("what was only announced goes by its whole id, which is said, and neither by its name nor by half an id")
    func announced() throws {
        let decoy = KnownDevice(id: "dddd" + String(repeating: "q", count: 28), name: "ho\u{202E}st2")
        let choice = DeviceChoice(ownID: choice.ownID, ownName: "laptop", known: choice.known + [decoy], revoked: [])
        for text in [decoy.name, "dddd", String(decoy.id.prefix(31))] {
            let error = try #require(refusal(choice, text))
            #expect(error.status == .usage && error.message.contains("no connection has proved"))
            #expect(error.message.contains(decoy.id) && !error.message.contains("\u{202E}"), "\(error.message)")
        }
        #expect(try choice.find(decoy.id) == decoy)
        #expect(try choice.find(decoy.id.uppercased()) == decoy)
    }

    @Test("a thief's device is found by the name that it had, whatever is announced under that name")
    func renamed() throws {
        let stolen = KnownDevice(
            id: "g7g7aql7" + String(repeating: "q", count: 24), name: "tv", formerNames: ["host2", "b\u{202E}x"],
            isProved: true)
        let decoy = KnownDevice(id: "dddd" + String(repeating: "q", count: 28), name: "host2")
        let choice = DeviceChoice(
            ownID: choice.ownID, ownName: "laptop", known: choice.known + [decoy, stolen], revoked: [])
        for text in ["host2", "tv", "g7g7"] { #expect(try choice.find(text) == stolen) }
        #expect(stolen.shown == #"tv (g7g7aql7, called host2, b\u{202e}x before)"#)
        // If another proved device has the name now, the user has to say which one.
        let newer = KnownDevice(id: "eeee" + String(repeating: "q", count: 28), name: "host2", isProved: true)
        let both = DeviceChoice(
            ownID: choice.ownID, ownName: "laptop", known: choice.known + [newer], revoked: [])
        let error = try #require(refusal(both, "host2"))
        #expect(error.status == .usage && error.message.contains("2 devices match: give more of an id"))
        #expect(error.message.contains(stolen.shown) && error.message.contains("host2 (eeeeqqqq)"))
        #expect(!error.message.contains("dddd"))
        // The same holds for two former names. A revoked device is found by its id alone.
        let former = KnownDevice(id: newer.id, name: "tv2", formerNames: ["host2"], isProved: true)
        let two = DeviceChoice(
            ownID: choice.ownID, ownName: "laptop", known: choice.known + [former], revoked: [])
        #expect(refusal(two, "host2")?.message.contains("2 devices match") == true)
        let one = DeviceChoice(ownID: choice.ownID, ownName: "laptop", known: two.known, revoked: [stolen.id])
        #expect(try one.find("host2") == former && one.find("g7g7aql7") == stolen)
    }

    @Test("devices come as the node and as the disk know them, a name that is the present one again left out")
    func sources() {
        var device = WireDevice()
        (device.name, device.deviceID, device.proved, device.formerNames) = ("tv", Self.ids[0], true, ["host2"])
        var former = FormerNames()
        for name in ["host2", "tv"] { former.add(name) }
        let entry = KnownDevices.Entry(
            deviceID: Self.ids[0], name: "tv", seen: 1, revision: 1, isProved: true, formerNames: former)
        let known = KnownDevice(id: Self.ids[0], name: "tv", formerNames: ["host2"], isProved: true)
        #expect(KnownDevice(device) == known && KnownDevice(entry) == known)
    }

    @Test("after a revocation those are waited for who were there before, also who counts as absent since")
    func spread() {
        func device(_ name: String, present: Bool, knows: Bool) -> WireDevice {
            .with { ($0.name, $0.deviceID, $0.present, $0.knows, $0.proved) = (name, name, present, knows, present) }
        }
        var spread = RevocationSpread([
            device("phone", present: true, knows: true), device("desktop", present: true, knows: true),
            device("asleep", present: false, knows: true),
        ])
        // The phone was revoked.
        let asleep = device("asleep", present: false, knows: false)
        spread.devices = [device("desktop", present: false, knows: false), asleep]
        #expect(spread.isAwaited)
        #expect(
            spread.lines == [
                "Not yet known to: desktop (only announced), asleep (only announced). They learn of it when they meet a"
                    + " device that knows."
            ])
        spread.devices = [device("desktop", present: true, knows: true), asleep]
        #expect(!spread.isAwaited)
        #expect(
            spread.lines == [
                "Known to: this device, desktop.",
                "Not yet known to: asleep (only announced). They learn of it when they meet a device that knows.",
            ])
    }

    @Test("what is ambiguous, unknown, too short or this device is refused in a sentence")
    func refused() {
        for (text, status, part) in [
            ("tablet", ExitStatus.usage, "2 devices match"), ("aaaa", .usage, "2 devices match"),
            ("aaa", .usage, "no device \"aaa\" is known"), ("watch", .usage, "no device"), ("", .usage, "no device"),
            ("laptop", .refused, "baton account leave"), ("mmmm", .refused, "baton account leave"),
        ] {
            #expect {
                try choice.find(text)
            } throws: {
                guard let error = $0 as? CommandError else { return false }
                return error.status == status && error.message.contains(part)
            }
        }
    }
}
