// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import COpenSSL
import Foundation
import Testing

@testable import BatonAccount
@testable import BatonNode
@testable import BatonTLS

/// Attacks of strangers on the port of a node, which is open on every network that its user visits.
///
/// Active probing: Alice, Bob, Beznazwy and Houmansadr, "How China Detects and Blocks Shadowsocks", IMC 2020, section 3
/// (probes with nothing, with noise, and with what was recorded, whole or changed); Frolov and Wustrow, "Detecting
/// Probe-resistant Proxies", NDSS 2020 (telling a server by how and when it closes).
@Suite("Attacks on the gate", .timeLimit(.minutes(3)))
struct GateAttacks {
    private let account: TestAccount
    private var laptop: TestAccount.Device { account.devices[0] }
    private var desktop: TestAccount.Device { account.devices[1] }
    private let nonce = [UInt8](repeating: 7, count: GateToken.nonceCount)

    init() throws {
        account = try TestAccount()
    }

    /// The laptop's gate, in the period of the nonce.
    private func gate() -> Gate {
        var gate = Gate(device: laptop.id)
        gate.beginPeriod(nonce: nonce, keys: laptop.account.currentKeys, uptime: .seconds(1))
        return gate
    }

    /// A door with that gate, or with one that lets everybody in.
    private func door(_ defence: Defence) throws -> Door {
        let gate = Lock(gate())
        return try Door(
            of: laptop,
            laptop.context(gate: { name in
                defence.isOn ? gate.withLock { $0.admit(name, uptime: .seconds(2)) } : 0
            }), limits: Self.patient)
    }

    /// A door as every node has it, which looks at a first message before TLS does, with a gate of the same period.
    private func nodesDoor() throws -> Door {
        let keeper = GateKeeper(of: laptop.id, crowded: {})
        keeper.beginPeriod(nonce: nonce, keys: laptop.account.currentKeys)
        return try Door(
            of: laptop, laptop.context(gate: { keeper.admit($0) }), gate: keeper, limits: Self.patient)
    }

    /// The doors that stand between an attacker and a node, each of which has to refuse; or one that lets everybody in.
    private func doors(_ defence: Defence) throws -> [Door] {
        defence.isOn ? [try door(.on), try nodesDoor()] : [try door(.off)]
    }

    /// A door without a gate, which would mute TLS. It has to be enough that the door does not send what TLS says.
    private func unmutedDoor() throws -> Door {
        try Door(of: laptop, laptop.context(), limits: Self.patient)
    }

    /// Limits without short deadlines, for attacks that are not about time. Other suites hold both threads of Swift's
    /// pool for longer than a connection may take before its handshake.
    private static let patient: NodeLimits = {
        var limits = NodeLimits()
        limits.admissionDeadline = .seconds(120)
        return limits
    }()

    /// A first message of TLS, as an attacker makes it. Nothing in it but the server name is secret or signed.
    private func hello(_ serverName: String?) throws -> [UInt8] {
        let attacker = try TestAccount(devices: 1).devices[0]
        let session = try TLSSession(
            client: attacker.context(), serverName: serverName ?? "none", expectedPeer: laptop.id.description)
        if serverName == nil { SSL_ctrl(session.pointer, SSL_CTRL_SET_TLSEXT_HOSTNAME, 0, nil) }
        return session.speak()
    }

    private func token(_ keys: GenerationKeys? = nil, for server: DeviceID? = nil, nonce: [UInt8]? = nil) -> String {
        GateToken.serverName(
            keys: keys ?? desktop.account.currentKeys, server: server ?? laptop.id, gateNonce: nonce ?? self.nonce)
    }

    enum Probe: String, CaseIterable {
        case noName = "without a server name"
        case plainName = "for example.org"
        case forgedTag = "with a tag of the attacker's"
        case otherAccount = "with a token of another account"
        case otherDevice = "with a token for another device"
        case otherPeriod = "with a token of another period"
        case changedTag = "with a good token, one bit of it turned"
    }

    private func serverName(_ probe: Probe) throws -> String? {
        let good = token()
        switch probe {
        case .noName: return nil
        case .plainName: return "example.org"
        case .forgedTag: return String(repeating: "a", count: 52) + ".baton.invalid"
        case .otherAccount: return token(try TestAccount(devices: 1).devices[0].account.currentKeys)
        case .otherDevice: return token(for: desktop.id)
        case .otherPeriod: return token(nonce: [UInt8](repeating: 8, count: GateToken.nonceCount))
        case .changedTag: return good.prefix(40) + (good.dropFirst(40).first == "a" ? "b" : "a") + good.dropFirst(41)
        }
    }

    @Test("Active probing, without tokens and with bad ones", arguments: Probe.allCases)
    func probing(_ probe: Probe) async throws {
        try await attack("a ClientHello \(probe.rawValue)") { defence in
            for door in try doors(defence) {
                let visit = try await door.connect()
                try visit.send(hello(serverName(probe)))
                if try await visit.reaction() == .answered { return .succeeded }
            }
            return .refused
        }
    }

    enum BadRecord: String, CaseIterable {
        case emptyHello = "a ClientHello of no bytes"
        case applicationData = "application data"
        case oversize = "a record of 64 KiB"
        case heartbeat = "a heartbeat"

        var bytes: [UInt8] {
            switch self {
            case .emptyHello: [0x16, 3, 1, 0, 4, 1, 0, 0, 0]
            case .applicationData: [0x17, 3, 3, 0, 1, 0]
            case .oversize: [0x16, 3, 1, 0xFF, 0xFF] + [UInt8](repeating: 1, count: 100)
            // CVE-2014-0160: what scanners send first to this day.
            case .heartbeat: [0x18, 3, 2, 0, 3, 1, 0x40, 0]
            }
        }
    }

    /// NDSS 2020, section 4: each implementation of TLS has its own alert for each mistake, which tells what listens
    /// here.
    @Test("Records that TLS answers with an alert", arguments: BadRecord.allCases)
    func badRecord(_ record: BadRecord) async throws {
        try await attack("an alert for \(record.rawValue)") {
            for door in try doors(.on) + [unmutedDoor()] {
                let visit = try await door.connect()
                try visit.send(record.bytes)
                if try await visit.reaction() == .answered { return .succeeded }
            }
            return .refused
        }
    }

    enum Noise: String, CaseIterable {
        case http = "a request of HTTP"
        case ssh = "a greeting of SSH"
        case random = "221 bytes of noise"
        case repeated = "20,000 bytes that are all the same"
        case plain = "Baton's own hello, without TLS"
        case nothing = "an end at once"

        var bytes: [UInt8] {
            var generator = SeededGenerator(seed: 41)
            return switch self {
            case .http: Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
            case .ssh: Array("SSH-2.0-x\r\n".utf8)
            case .random: generator.bytes(221)
            case .repeated: [UInt8](repeating: 0x16, count: 20_000)
            case .plain: Frame.hello()
            case .nothing: []
            }
        }
    }

    /// What is no TLS at all gets nothing either, and ends as silently as a refused token, so that nobody tells the two
    /// apart by what comes.
    ///
    /// No attack, because nothing refuses it: OpenSSL has no alert for it, also where nobody mutes it. A service that
    /// greets whoever comes, as SSH's and mail's do, shows that an answer would be seen.
    @Test("Noise, another protocol and an end at once get no byte", arguments: Noise.allCases)
    func noise(_ noise: Noise) async throws {
        for door in try doors(.on) + [unmutedDoor()] {
            #expect(try await reaction(to: noise, of: door.connect()) == .closed)
        }
        #expect(try await reaction(to: noise, of: Greeter().connect()) == .answered)
    }

    private func reaction(to noise: Noise, of visit: Visit) async throws -> Visit.Reaction {
        try visit.send(noise.bytes)
        if noise == .nothing { visit.end() }
        return try await visit.reaction()
    }

    /// Shadowsocks fell to replayed first packets (IMC 2020, section 3.2): a recorded message must be good once.
    @Test("A replayed token, and a whole recorded first message")
    func replay() async throws {
        for isWhole in [true, false] {
            try await attack("the \(isWhole ? "first message" : "token") of a device, recorded and sent again") {
                defence in
                // A gate that forgets what was used is a copy.
                let forgetful = gate()
                let careless = try Door(
                    of: laptop,
                    laptop.context(gate: { name in
                        var copy = forgetful
                        return copy.admit(name, uptime: .seconds(2))
                    }), limits: Self.patient)
                let name = token()
                for door in try defence.isOn ? doors(.on) : [careless] {
                    let recorded = try hello(name)
                    let first = try await door.connect()
                    try first.send(recorded)
                    #expect(try await first.reaction() == .answered)
                    let again = try await door.connect()
                    try again.send(isWhole ? recorded : hello(name))
                    if try await again.reaction() == .answered { return .succeeded }
                }
                return .refused
            }
        }
    }

    /// The reflection of RFC 3748, section 7.4, and of Bluetooth's (CVE-2020-26555): a node is made to talk to itself.
    @Test("A node's own first message, sent back to it")
    func reflection() async throws {
        try await attack("what the laptop sends to the desktop is carried to the laptop") { defence in
            let session = try TLSSession(
                client: laptop.context(), serverName: token(for: desktop.id), expectedPeer: desktop.id.description)
            let visit = try await door(defence).connect()
            try visit.send(session.speak())
            return Outcome(succeeds: try await visit.reaction() == .answered)
        }
    }

    /// "Slow loris" (RSnake, 2009), and the threads of LocalSend and croc that wait for whoever connects.
    @Test("Slow loris in the handshake")
    func slowHandshake() async throws {
        try await attack("half a first message, and no more") { defence in
            var limits = NodeLimits()
            let deadline = limits.admissionDeadline
            if !defence.isOn { limits.admissionDeadline = .seconds(3600) }
            let door = try Door(of: laptop, laptop.context(gate: { _ in 0 }), limits: limits)
            let visit = try await door.connect()
            try visit.send(Array(hello(nil).prefix(60)))
            let reaction = try await visit.reaction(
                within: defence.isOn ? .seconds(60) : deadline + .seconds(1))
            let isCounted = await door.admissionControl.waitingCount == 1
            return Outcome(succeeds: reaction == .waits && isCounted)
        }
        try await attack("so many halves from one address that no other gets in") { defence in
            var limits = NodeLimits()
            limits.admissionDeadline = .seconds(3600)
            if !defence.isOn { limits.pendingConnectionsPerAddress = limits.pendingConnections }
            let bound = limits.pendingConnectionsPerAddress
            let door = try Door(of: laptop, laptop.context(gate: { _ in 0 }), limits: limits)
            let half = Array(try hello(nil).prefix(60))
            var visits: [Visit] = []
            for _ in 0..<limits.pendingConnections {
                let visit = try await door.connect()
                try visit.send(half)
                visits.append(visit)
            }
            try await eventually("as many wait as may") { await door.admissionControl.waitingCount == bound }
            // Somebody else, whose first message comes in two pieces.
            let honest = try await door.connect(to: .ipv6Loopback)
            let hello = try hello(nil)
            try honest.send(Array(hello.prefix(60)))
            let isKept = try await honest.reaction(within: .milliseconds(300)) == .waits
            if isKept { try? honest.send(Array(hello.dropFirst(60))) }
            let reaction = try await honest.reaction(within: isKept ? .seconds(60) : .zero)
            let isServed = isKept && reaction == .answered
            withExtendedLifetime(visits) {}
            return Outcome(succeeds: !isServed)
        }
    }

    /// The same by a device of the account, or by who steals its tokens before they are used: CWE-400.
    @Test("Slow loris behind the gate")
    func slowHandshakeBehindTheGate() async throws {
        func hello(from service: LocalService) async throws -> [UInt8] {
            let (server, client) = (service.account.devices[0], service.account.devices[1])
            let name = GateToken.serverName(
                keys: server.account.currentKeys, server: server.id, gateNonce: try await service.gateNonce)
            return try TLSSession(
                client: client.context(), serverName: name, expectedPeer: server.id.description
            ).speak()
        }
        try await attack("a good token, and no more") { defence in
            var limits = NodeLimits()
            limits.session.helloDeadline = .seconds(3600)
            limits.handshakeDeadline = defence.isOn ? .seconds(5) : .seconds(3600)
            let service = try await LocalService(devices: 2, limits: limits)
            let visit = try await service.visit()
            try visit.send(await hello(from: service))
            #expect(try await visit.reaction() == .answered)
            let reaction = try await visit.lastReaction(within: defence.isOn ? .seconds(60) : .seconds(6))
            await service.close()
            return Outcome(succeeds: reaction == .waits)
        }
        try await attack("so many good tokens from one address, and no more, that no other gets in") { defence in
            var limits = NodeLimits()
            limits.handshakeDeadline = .seconds(3600)
            if !defence.isOn { limits.links.handshakesPerAddress = limits.links.handshakes }
            let service = try await LocalService(devices: 2, limits: limits)
            var visits: [Visit] = []
            for _ in 0..<limits.links.handshakes {
                let visit = try await service.visit()
                try visit.send(await hello(from: service))
                #expect(try await visit.reaction() == .answered)
                visits.append(visit)
            }
            try await eventually("as many wait as may") {
                var waiting = 0
                for visit in visits where try await visit.lastReaction(within: .zero) == .waits { waiting += 1 }
                return waiting == limits.links.handshakesPerAddress
            }
            let honest = try await service.visit(from: .ipv6Loopback)
            try honest.send(await hello(from: service))
            let reaction = try await honest.lastReaction(within: defence.isOn ? .seconds(2) : .seconds(60))
            withExtendedLifetime(visits) {}
            await service.close()
            return Outcome(succeeds: reaction == .closed)
        }
    }
}
