// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import BatonMessages
import BatonNode
import BatonProtocol
import BatonTestSupport
import Glibc
import SwiftProtobuf
import Testing

@testable import BatonCLI
@testable import BatonDiscovery

/// The facts of a network and of the road to a device on which all is well, and one change for each cause.
struct NetworkFault: Sendable, CustomTestStringConvertible {
    let cause: Cause
    /// Checks that nobody can answer while the cause is there.
    var hides: Set<Check> = []
    let change: @Sendable (inout RoadWorld) -> Void

    var testDescription: String { cause.rawValue }

    /// Everything that a device tells by its examination.
    static let ofExamination: Set<Check> = [.incoming, .clock]

    static let all: [NetworkFault] = [
        NetworkFault(cause: .secondStack) { $0.machine.otherResponders = ["alice"] },
        NetworkFault(cause: .noNetwork, hides: [.responder, .multicastOut, .multicastIn, .others, .deviceMulticast]) {
            $0.heard.interfaces = []
        },
        NetworkFault(cause: .blockedOut5353, hides: [.multicastIn, .responder, .deviceMulticast]) {
            $0.heard.interfaces = [.init(name: "eth0", index: 2, sendError: EPERM)]
        },
        NetworkFault(cause: .blockedIn5353, hides: [.responder, .others, .deviceMulticast]) {
            $0.heard.interfaces = [.init(name: "eth0", index: 2, hasSent: true)]
            $0.silence()
        },
        NetworkFault(cause: .noAvahi) {
            $0.heard.responder = .absent
            $0.machine.isAvahiInstalled = false
        },
        NetworkFault(cause: .avahiStopped) { $0.heard.responder = .absent },
        NetworkFault(cause: .avahiHangs) { $0.heard.responder = .waiting },
        NetworkFault(cause: .unannounced) { $0.unannounced = "Avahi refused to register this device" },
        NetworkFault(cause: .avahiIgnores) { $0.heard.interfaces[0].hearsResponder = false },
        NetworkFault(cause: .portBlockedHere) { $0.examination { $0.dialBack = .silent } },
        NetworkFault(cause: .revoked, hides: [.keys]) { $0.isRevoked = true },
        NetworkFault(cause: .notOfAccount, hides: ofExamination.union([.dial, .deviceMulticast])) {
            $0.fail(.turnedAway)
        },
        NetworkFault(cause: .oldKeys) { $0.apartRevocations = ["aaaa"] },
        NetworkFault(cause: .otherVersion, hides: ofExamination.union([.dial, .deviceMulticast])) {
            $0.fail(.otherVersion)
        },
        NetworkFault(cause: .noRoute, hides: ofExamination.union([.dial, .deviceMulticast])) {
            $0.fail(.noRoute)
            $0.routes = [:]
        },
        NetworkFault(cause: .vpnTakesRoute, hides: ofExamination.union([.dial, .deviceMulticast])) {
            $0.fail(.silent)
            $0.routes = [RoadWorld.address: .init(interface: "vpn0", expected: "eth0")]
        },
        NetworkFault(cause: .portBlockedThere, hides: ofExamination.union([.deviceMulticast])) { $0.fail(.silent) },
        NetworkFault(
            cause: .nodeGoneThere,
            hides: ofExamination.union([.membership, .keys, .version, .deviceMulticast, .others])
        ) {
            $0.fail(.refused)
            $0.silence()
        },
        NetworkFault(
            cause: .answersNowhere,
            hides: ofExamination.union([.membership, .keys, .version, .deviceMulticast, .others])
        ) {
            $0.fail(.silent)
            $0.silence()
        },
        NetworkFault(cause: .noMulticast, hides: [.others]) {
            $0.silence()
            $0.examination { $0.heard = false }
        },
        NetworkFault(cause: .twoSubnets, hides: [.others]) {
            $0.silence()
            $0.routes = [RoadWorld.address: .init(interface: "eth0", expected: nil)]
            $0.examination { $0.heard = false }
        },
        NetworkFault(cause: .blocked5353There) { $0.examination { ($0.heard, $0.hearsItself) = (false, false) } },
        NetworkFault(cause: .avahiThere, hides: [.others]) {
            $0.silence()
            $0.examination { $0.responderAsks = false }
        },
        NetworkFault(cause: .clocksApart) { world in
            if case .value(var answer) = world.answer {
                answer.clockOffsetMs = -300_000
                world.answer = .value(answer)
            }
        },
    ]
}

/// All facts at once, with the real advertisement of a real account.
struct RoadWorld {
    static let address = RoadWorld.host(2)

    /// The address of a lab host.
    private static func host(_ number: UInt8) -> IPAddress { IPAddress(bytes: [10, 77, 0, number]) ?? .ipv4Any }

    var machine = MachineFacts()
    var heard: MulticastEar.Report
    var isRevoked = false
    var unannounced: String?
    var apartRevocations: [String] = []
    var routes: [IPAddress: RoadFacts.Route] = [address: .init(interface: "eth0", expected: "eth0")]
    var answer: Measured<WireExamineResponse>
    let account: Account
    let device: DeviceID

    init() throws {
        let devices = try TestAccount().devices.map(\.account)
        let other = devices[1]
        (account, device) = (devices[0], other.identity.id)
        let content = AdvertisementContent(
            port: 4711, addresses: [NetworkAddress(bytes: Self.address.bytes)].compactMap { $0 }, deviceName: "desktop")
        var sealer = AdvertisementSealer(identity: other.identity, keys: other.currentKeys, epoch: 1)
        let record = try TextRecord.encode(sealer.seal(content))
        heard = MulticastEar.Report(
            interfaces: [
                .init(name: "eth0", index: 2, hasSent: true, hearsItself: true, hearsResponder: true)
            ],
            heard: [Self.address: .init(texts: [record], asks: true)], responder: .asks)
        answer = .value(
            .with {
                $0.addresses = ["10.77.0.2:4711"]
                $0.reach = .connected
                $0.examination = .with {
                    $0.dialBack = .connected
                    ($0.heard, $0.hearsItself, $0.responderAsks) = (true, true, true)
                }
            })
    }

    /// The device is not heard.
    mutating func silence() { heard.heard = [:] }

    mutating func examination(_ change: (inout WireExaminationResponse) -> Void) {
        guard case .value(var answer) = answer else { return }
        change(&answer.examination)
        self.answer = .value(answer)
    }

    /// Whether the node has dialled what the device announces now.
    var isFresh = true

    /// The device cannot be reached.
    mutating func fail(_ reach: WireReach) {
        answer = .value(
            .with {
                $0.addresses = ["10.77.0.2:4711"]
                $0.reach = reach
                $0.failure = .with { $0.message = "there was no answer in time" }
            })
    }

    var findings: [Finding] {
        let devices = HeardDevices(heard, account: account)
        let facts = RoadFacts(
            id: device, name: "desktop", isRevoked: isRevoked, apartRevocations: apartRevocations,
            addresses: [Self.address], routes: routes, heard: heard, devices: devices, answered: answer,
            isFresh: isFresh)
        return Diagnosis.network(
            machine, unannounced: unannounced, hasMetOthers: true, heard: heard, devices: devices)
            + [Diagnosis.incoming(answer, asked: "desktop", status: .with { $0.port = 4711 }, machine)]
            + facts.findings
    }
}

@Suite("The diagnosis of a network and a road")
struct NetworkDiagnosisTests {
    private static let checks = Set(Check.allCases.filter { $0.group != .machine })

    private static func causes(_ findings: [Finding]) -> Set<Cause> {
        Set(findings.compactMap { if case .problem(let cause) = $0.result { cause } else { nil } })
    }

    @Test("A network on which all is well has one fine finding for each check")
    func healthy() throws {
        let findings = try RoadWorld().findings
        #expect(findings.allSatisfy { $0.result == .fine }, "\(findings.filter { $0.result != .fine })")
        #expect(Set(findings.map(\.check)) == Self.checks && findings.count == Self.checks.count)
    }

    @Test("Each cause is named, and no other, with a command that fixes it", arguments: NetworkFault.all)
    func alone(_ fault: NetworkFault) throws {
        var world = try RoadWorld()
        fault.change(&world)
        let findings = world.findings
        #expect(Self.causes(findings) == [fault.cause], "\(findings.filter { $0.result != .fine })")
        let problem = try #require(findings.first { $0.result == .problem(fault.cause) })
        #expect(problem.check == fault.cause.check)
        #expect(!problem.sentence.isEmpty && !problem.sentence.hasSuffix(".") && !problem.remedy.isEmpty)
        for check in Self.checks where check != fault.cause.check {
            let result: Finding.Result = fault.hides.contains(check) ? .notMeasured : .fine
            #expect(findings.filter { $0.check == check }.map(\.result) == [result], "\(check): \(findings)")
        }
    }

    @Test("Every cause of a network has a fault in these tests, but another account")
    func complete() {
        let causes = Set(Cause.allCases.filter { $0.check.group != .machine })
        #expect(Set(NetworkFault.all.map(\.cause)) == causes.subtracting([.otherAccountOnly]))
    }

    @Test("Strangers alone are another account for whoever has met no device; beside a device they are nothing")
    func strangers() throws {
        var world = try RoadWorld()
        let stranger = try RoadWorld().heard.heard
        world.heard.heard.merge(
            stranger.map { (IPAddress(bytes: [10, 77, 0, 9]) ?? $0.key, $0.value) }, uniquingKeysWith: { $1 })
        #expect(Self.causes(world.findings).isEmpty)
        world.heard.heard[RoadWorld.address] = nil
        for hasMetOthers in [true, false] {
            let findings = Diagnosis.network(
                world.machine, unannounced: nil, hasMetOthers: hasMetOthers, heard: world.heard,
                devices: HeardDevices(world.heard, account: world.account))
            #expect(Self.causes(findings) == (hasMetOthers ? [] : [.otherAccountOnly]))
            #expect(findings.contains { $0.check == .others && $0.result == .notMeasured } == hasMetOthers)
        }
    }

    @Test("A device that lets nobody in and that nobody can ask hides this side's block")
    func bothDirections() throws {
        var world = try RoadWorld()
        world.fail(.silent)
        let findings = world.findings
        #expect(Self.causes(findings) == [.portBlockedThere])
        #expect(findings.first { $0.check == .incoming }?.result == .notMeasured)
    }

    @Test("A device that answers by unicast only, and lets nobody in, shows that multicast does not pass")
    func unicast() throws {
        var world = try RoadWorld()
        world.fail(.silent)
        let announced = world.heard.heard
        world.silence()
        world.heard.unicast = [RoadWorld.address: .answered([])]
        #expect(Self.causes(world.findings) == [.portBlockedThere, .noMulticast])
        // Its node is of another account.
        world.heard.heard = announced.mapValues { _ in .init(texts: [[1]]) }
        #expect(!Self.causes(world.findings).contains(.noMulticast))
    }

    @Test("A connection that the device made tells this side's block and its own")
    func byItsConnection() throws {
        var world = try RoadWorld()
        let examined = world.answer.value?.examination ?? .init()
        world.fail(.silent)
        if case .value(var answer) = world.answer {
            answer.examination = examined
            answer.byItsConnection = true
            world.answer = .value(answer)
        }
        let findings = world.findings
        #expect(Self.causes(findings) == [.portBlockedThere])
        #expect(findings.first { $0.check == .incoming }?.result == .fine)
    }

    @Test(
        "A refusal by what a device announced before says nothing",
        arguments: [.turnedAway, .refused, .otherVersion] as [WireReach])
    func old(_ reach: WireReach) throws {
        var world = try RoadWorld()
        world.fail(reach)
        world.isFresh = false
        if case .value(var answer) = world.answer {
            answer.addresses = ["10.77.0.2:4712"]
            world.answer = .value(answer)
        }
        #expect(Self.causes(world.findings).isEmpty, "\(world.findings)")
        #expect(world.findings.first { $0.check == .dial }?.result == .notMeasured)
    }

    @Test("A machine that is too busy draws no conclusion from silence, here and there")
    func busy() throws {
        var world = try RoadWorld()
        world.heard.worstDelay = .seconds(1)
        world.heard.interfaces = [.init(name: "eth0", index: 2, hasSent: true)]
        world.silence()
        #expect(Self.causes(world.findings).isEmpty)
        var there = try RoadWorld()
        there.examination { ($0.heard, $0.hearsItself, $0.responderAsks, $0.wasBusy) = (false, false, false, true) }
        #expect(Self.causes(there.findings).isEmpty)
        there.examination { $0.dialBack = .unfinished }
        #expect(Self.causes(there.findings).isEmpty)
        there.fail(.unfinished)
        #expect(Self.causes(there.findings).isEmpty)
        #expect(there.findings.first { $0.check == .dial }?.result == .notMeasured)
    }

    @Test("A second program at port 5353 of all addresses is found, by its user")
    func sockets() {
        func line(_ local: String, _ user: Int) -> String {
            "  1: \(local) 00000000:0000 07 00000000:00000000 00:00000000 00000000 \(user) 0 1 2 0 0"
        }
        let group = line("FB0000E0:14E9", 0)
        let all = line("00000000:14E9", 0)
        #expect(SocketTable.otherResponders(in: [[group, all].joined(separator: "\n")]).isEmpty)
        let two = [all, line("00000000:14E9", 947)].joined(separator: "\n")
        #expect(SocketTable.otherResponders(in: [two]) == ["947"])
        // A browser.
        #expect(SocketTable.otherResponders(in: [[all, line("00000000:14E9", 1000)].joined(separator: "\n")]).isEmpty)
        #expect(SocketTable.otherResponders(in: ["", "damaged\n1 2 3"]).isEmpty)
    }

    @Test("A port at which a program listens is found, and not one that a connection has")
    func listening() {
        let table = """
            sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid
             0: 0100007F:60AB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0
             1: 0100007F:0050 0100007F:1234 01 00000000:00000000 00:00000000 00000000     0
            damaged
            """
        #expect(SocketTable.isListening(at: 24747, in: ["", table]))
        #expect(!SocketTable.isListening(at: 80, in: [table]) && !SocketTable.isListening(at: 24748, in: [table]))
    }

    @Test("The commands against a firewall are those of the program that filters")
    func remedies() {
        let shown = "sudo nft list ruleset"
        #expect(PacketFilter.ufw.remedy(24747, "tcp") == ["sudo ufw allow 24747/tcp"])
        #expect(PacketFilter.ufw.remedy(5353, "udp", isOutgoing: true) == ["sudo ufw allow out 5353/udp"])
        #expect(
            PacketFilter.firewalld(zone: nil).remedy(5353, "udp")
                == ["sudo firewall-cmd --permanent --add-port=5353/udp && sudo firewall-cmd --reload"])
        #expect(
            PacketFilter.firewalld(zone: "home").remedy(24747, "tcp")
                == ["sudo firewall-cmd --permanent --zone=home --add-port=24747/tcp && sudo firewall-cmd --reload"])
        #expect(PacketFilter.firewalld(zone: nil).remedy(5353, "udp", isOutgoing: true) == [shown])
        #expect(PacketFilter.unknown.remedy(24747, "tcp") == [shown])
    }
}
