import Testing

@testable import BatonCLI

@Suite("which device a person means")
struct DeviceChoiceTests {
    private static let ids = ["aaaabbbb", "aaaacccc", "zzzzyyyy"].map { $0 + String(repeating: "q", count: 24) }
    private let choice = DeviceChoice(
        ownID: "mmmm" + String(repeating: "q", count: 28), ownName: "laptop",
        known: [
            KnownDevice(id: ids[0], name: "phone"), KnownDevice(id: ids[1], name: "tablet"),
            KnownDevice(id: ids[2], name: "tablet"),
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
                known: choice.known + [KnownDevice(id: "ffff" + String(repeating: "q", count: 28), name: name)],
                revoked: [])
            #expect(try choice.find(Self.ids[0]).id == Self.ids[0])
            if name.utf8.count == 8 {
                #expect {
                    try choice.find(name)
                } throws: {
                    ($0 as? CommandError)?.message.contains("2 devices are called so") == true
                }
            }
        }
    }

    @Test("devices that are only announced take no name from one that was connected")
    func invented() throws {
        let invented = (0..<40).map { KnownDevice(id: "\(10 + $0)" + String(repeating: "x", count: 30), name: "phone") }
        let phone = KnownDevice(id: Self.ids[0], name: "phone", isProved: true)
        let choice = DeviceChoice(ownID: choice.ownID, ownName: "laptop", known: invented + [phone], revoked: [])
        #expect(try choice.find("phone") == phone)
        #expect(try choice.find(invented[3].id) == invented[3])
    }

    @Test("what is ambiguous, unknown, too short or this device is refused in a sentence")
    func refused() {
        for (text, status, part) in [
            ("tablet", ExitStatus.usage, "2 devices are called so"), ("aaaa", .usage, "2 devices are called so"),
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
