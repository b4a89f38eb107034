// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// `baton doctor` on lab hosts.
@Suite(.serialized, .lab, .timeLimit(.minutes(10)))
struct LabDoctorTests {
    /// What the doctor said.
    private struct Answer {
        var causes: Set<String>
        /// By the name of the check.
        var remedies: [String: [String]] = [:]
        let status: Int32
        let time: Duration
        let text: String
    }

    /// Runs the doctor on the first host.
    ///
    /// - Parameter script: changes what it sees, in mounts of its own.
    private static func doctor(_ lab: HandoffLab, _ arguments: String..., around script: String = "") async throws
        -> Answer
    {
        let began = ContinuousClock.now
        let wrapper = script.isEmpty ? [] : ["unshare", "--mount", "sh", "-ec", script + "\nexec \"$@\"", "sh"]
        let command = try lab.start(1, ["doctor", "--json"] + arguments, wrapper: wrapper)
        let result = try await command.end()
        var answer = Answer(
            causes: [], status: result.status, time: .now - began,
            text: result.lines.filter { !$0.contains(#""result":"fine""#) }.joined(separator: "\n") + result.errors)
        for line in result.lines {
            guard let value = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] else {
                continue
            }
            if let cause = value["cause"] as? String { answer.causes.insert(cause) }
            guard let check = value["check"] as? String else { continue }
            answer.remedies[check, default: []] += value["remedy"] as? [String] ?? []
        }
        return answer
    }

    private static func make(
        _ fault: LabFault, in lab: HandoffLab, _ nodes: [(command: HostCommand, port: Int)]
    ) async throws {
        for step in fault.steps { try await make(step, in: lab, nodes) }
    }

    private static func make(
        _ step: LabFault.Step, in lab: HandoffLab, _ nodes: [(command: HostCommand, port: Int)]
    ) async throws {
        switch step {
        case .script(let host, let script):
            let port = nodes.isEmpty ? 0 : nodes[host - 1].port
            let variables = "PORT=\(port); BATON=\(Lab.product("baton"))\n"
            let result = try await lab.startProgram(host, ["sh", "-ec", variables + script]).end()
            if result.status != 0 { throw Lab.Failure(description: "\(script): \(result.errors)") }
        case .running(let host, let script):
            let program = try lab.startProgram(host, ["sh", "-c", script])
            try await program.program.line { _ in true }
        case .lab(let arguments):
            try lab.lab.command(arguments)
        case .stopNode(let host):
            try await nodes[host - 1].command.end(by: SIGTERM)
        }
    }

    private static func startNodes(_ lab: HandoffLab, _ count: Int = 2) async throws -> [(
        command: HostCommand, port: Int
    )] {
        var nodes: [(command: HostCommand, port: Int)] = []
        for host in 1...count { nodes.append(try await lab.startNode(host)) }
        for host in 1...count { try await lab.awaitPeers(count - 1, on: host) }
        return nodes
    }

    @Test("The doctor names the causes, and no other", arguments: LabFault.ofThisRun)
    func named(_ faults: [LabFault]) async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let nodes = try await Self.startNodes(lab)
        for fault in faults { try await Self.make(fault, in: lab, nodes) }
        let script = faults.map(\.around).filter { !$0.isEmpty }.joined(separator: "\n")
        let answer = try await Self.doctor(lab, "desktop", around: script)
        #expect(answer.causes == LabFault.expected(faults), "\(faults.map(\.name)): \(answer.text)")
        #expect(answer.status == 1 && answer.time < .seconds(10), "\(answer.time)")
    }

    @Test("A healthy pair gets no false alarm under load")
    func healthy() async throws {
        let runs = ProcessInfo.processInfo.environment["BATON_NIGHTLY"] == nil ? 1 : 100
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await Self.startNodes(lab)
        let load = try (1...2).map { try lab.startProgram($0, ["sh", "-c", "while :; do :; done"]) }
        for run in 1...runs {
            let answer = try await Self.doctor(lab, "desktop")
            #expect([0, 79].contains(answer.status) && answer.time < .seconds(10), "run \(run): \(answer.text)")
        }
        for program in load { program.program.signal(SIGKILL) }
    }

    @Test("Without a device the doctor asks any device to connect back")
    func anyDevice() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let nodes = try await Self.startNodes(lab)
        let fine = try await Self.doctor(lab)
        #expect(fine.status == 0, "\(fine.text)")
        let blocked = try #require(LabFault.alone.first { $0.causes == ["portBlockedHere"] })
        try await Self.make(blocked, in: lab, nodes)
        #expect(try await Self.doctor(lab).causes == ["portBlockedHere"])
    }

    @Test("Another account alone on the network is named", .nightly)
    func otherAccount() async throws {
        let lab = try await HandoffLab(members: 1)
        defer { lab.down() }
        _ = try await lab.run(2, "account", "create", "--name", "stranger")
        _ = try await lab.startNode(1)
        _ = try await lab.startNode(2)
        try await eventually("the stranger is heard", within: .seconds(40)) {
            try await Self.doctor(lab).causes == ["otherAccountOnly"]
        }
    }

    @Test("The account of another in the place of a device is named", .nightly)
    func notOfAccount() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let nodes = try await Self.startNodes(lab)
        let id = try #require(try await lab.status(2)?.deviceID)
        for step: LabFault.Step in [.stopNode(2), .script(host: 2, "rm -r $BATON_HOME/state")] {
            try await Self.make(step, in: lab, nodes)
        }
        _ = try await lab.run(2, "account", "create", "--name", "desktop")
        _ = try await lab.startNode(2)
        try await eventually("the stranger is heard", within: .seconds(40)) {
            try await Self.doctor(lab, id).causes == ["notOfAccount"]
        }
    }

    @Test("Containers do not speak for the network", .nightly)
    func containers() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let nodes = try await Self.startNodes(lab)
        let bridge = """
            ip link add docker0 type bridge mcast_snooping 0; ip address add 172.17.0.1/16 dev docker0
            ip link add c0 type veth peer name c1; ip link set c0 master docker0
            for I in docker0 c0 c1; do ip link set $I up; done
            """
        try await Self.make(.script(host: 1, bridge), in: lab, nodes)
        // A /sys shows the network in which it was mounted.
        let ownSystem = "mount -t sysfs none /sys"
        let fine = try await Self.doctor(lab, "desktop", around: ownSystem)
        #expect(fine.status == 0, "\(fine.text)")
        let blocked = LabFault.filter("iifname eth0 udp dport 5353 drop")
        try await Self.make(.script(host: 1, blocked), in: lab, nodes)
        let answer = try await Self.doctor(lab, "desktop", around: ownSystem)
        #expect(answer.causes == ["blockedIn5353"], "\(answer.text)")
    }

    @Test("The doctor's advice against a firewall opens it", .nightly, arguments: ["ufw", "firewalld"])
    func firewalls(_ name: String) async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let nodes = try await Self.startNodes(lab)
        let fault = try #require(LabFault.alone.first { $0.name == name })
        try await Self.make(fault, in: lab, nodes)
        let answer = try await Self.doctor(lab, "desktop", around: fault.around)
        #expect(answer.causes == fault.causes, "\(answer.text)")
        let remedy = try #require(answer.remedies["multicastIn"]?.first).replacing("sudo ", with: "")
        #expect(remedy.contains(name == "ufw" ? "ufw allow" : "--zone=work"))
        // `ufw` wants a lock in /run.
        let commands = "unshare --mount sh -ec '\(fault.around)\nmount -t tmpfs none /run\n\(remedy)'"
        try await Self.make(.script(host: 1, name == "ufw" ? commands : remedy), in: lab, nodes)
        let opened = try await Self.doctor(lab, "desktop", around: fault.around)
        #expect(opened.causes == ["portBlockedHere"], "\(opened.text)")
    }

    @Test("A user who can watch no further connections is told so", .nightly)
    func watches() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await Self.startNodes(lab)
        // The kernel's limit is the whole machine's. So it refuses them to the doctor only (seccomp(2)): epoll_ctl(2)
        // of EPOLL_CTL_ADD is ENOSPC.
        let refusing = """
            set -- python3 -c 'import ctypes, os, struct, sys
            number = {"x86_64": 233, "aarch64": 21}[os.uname().machine]
            rules = [(32, 0, 0, 0), (21, 0, 3, number), (32, 0, 0, 24), (21, 0, 1, 1), (6, 0, 0, 0x5001C),
                (6, 0, 0, 0x7FFF0000)]
            class Program(ctypes.Structure): _fields_ = [("count", ctypes.c_ushort), ("rules", ctypes.c_char_p)]
            program = Program(len(rules), b"".join(struct.pack("HBBI", *rule) for rule in rules))
            libc = ctypes.CDLL(None)
            assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(program)) == 0
            os.execvp(sys.argv[1], sys.argv[1:])' "$@"
            """
        let answer = try await Self.doctor(lab, "desktop", around: refusing)
        #expect(answer.causes == ["fewWatches"] && answer.status == 1, "\(answer.text)")
    }

    @Test("A revoked device is named", .nightly)
    func revoked() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await Self.startNodes(lab)
        let id = try #require(try await lab.status(2)?.deviceID)
        let revoked = try await lab.run(1, "devices", "revoke", id, "--yes", "--key-file", lab.keyFile.path)
        #expect(revoked.status == 0, "\(revoked.errors)")
        let answer = try await Self.doctor(lab, id)
        #expect(answer.causes == ["revoked"], "\(answer.text)")
    }

    @Test("Two subnets that a router joins are named", .nightly)
    func twoSubnets() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let address = """
            ip address flush dev eth0 scope global; ip address add 10.78.0.2/24 brd + dev eth0
            ip route replace 224.0.0.0/4 dev eth0; ip route add default via 10.78.0.254
            """
        for step: LabFault.Step in [
            .lab(["switch", "ip", "address", "add", "10.77.0.254/24", "dev", "br0"]),
            .lab(["switch", "ip", "address", "add", "10.78.0.254/24", "dev", "br0"]),
            .lab(["switch", "sysctl", "-qw", "net.ipv4.ip_forward=1"]),
            .script(host: 1, "ip route add default via 10.77.0.254"), .script(host: 2, address),
        ] { try await Self.make(step, in: lab, []) }
        // They meet in one network, in which each has a subnet of its own. Then a router parts them.
        let nodes = try await Self.startNodes(lab)
        for step: LabFault.Step in [
            .lab(["switch", "ip", "link", "add", "br1", "type", "bridge", "mcast_snooping", "0"]),
            .lab(["switch", "ip", "link", "set", "host2", "master", "br1"]),
            .lab(["switch", "ip", "link", "set", "br1", "up"]),
            .lab(["switch", "ip", "address", "delete", "10.78.0.254/24", "dev", "br0"]),
            .lab(["switch", "ip", "address", "add", "10.78.0.254/24", "dev", "br1"]),
        ] { try await Self.make(step, in: lab, nodes) }
        let answer = try await Self.doctor(lab, "desktop")
        #expect(answer.causes == ["twoSubnets"], "\(answer.text)")
    }

    @Test("A device that has not heard of a revocation is named, beside what keeps it from hearing", .nightly)
    func oldKeys() async throws {
        let lab = try await HandoffLab(["laptop", "desktop", "tablet"])
        defer { lab.down() }
        let nodes = try await Self.startNodes(lab, 3)
        let tablet = try #require(try await lab.status(3)?.deviceID)
        let block = "nft add table inet f; nft 'add chain inet f i { type filter hook input priority 0; }'"
        try await Self.make(.script(host: 2, block + "; nft add rule inet f i meta l4proto tcp drop"), in: lab, nodes)
        let revoked = try await lab.run(1, "devices", "revoke", tablet, "--yes", "--key-file", lab.keyFile.path)
        #expect(revoked.status == 0, "\(revoked.errors)")
        let answer = try await Self.doctor(lab, "desktop")
        #expect(answer.causes == ["oldKeys", "portBlockedThere"], "\(answer.text)")
    }

    @Test("Clocks that are minutes apart are named", .nightly)
    func clocks() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNode(1)
        _ = try await lab.startNode(2, wrapper: ["env", "DONT_FAKE_MONOTONIC=1", "faketime", "-f", "+5m"])
        for host in 1...2 { try await lab.awaitPeers(1, on: host) }
        let answer = try await Self.doctor(lab, "desktop")
        #expect(answer.causes == ["clocksApart"], "\(answer.text)")
    }

    @Test("A Baton of another version in the place of a device is named", .nightly)
    func version() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let nodes = try await Self.startNodes(lab)
        let announcing = """
            exec python3 -c 'import ctypes, socket, time
            library, reference = ctypes.CDLL("libdns_sd.so.1"), ctypes.c_void_p()
            error = library.DNSServiceRegister(ctypes.byref(reference), 0, 0, b"abcdefghijk2", b"_baton._tcp", None, None,
                socket.htons(4711), 4, b"\\x03v=2", None, None)
            print(error, flush=True)
            time.sleep(1000)'
            """
        for step: LabFault.Step in [.stopNode(2), .running(host: 2, announcing)] {
            try await Self.make(step, in: lab, nodes)
        }
        let answer = try await Self.doctor(lab, "desktop")
        #expect(answer.causes == ["otherVersion"], "\(answer.text)")
    }

    @Test("A node that can open no further files is named", .nightly)
    func descriptors() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let nodes = try await Self.startNodes(lab)
        let id = nodes[0].command.program.processIdentifier
        // 32 are a reserve, and the command needs one.
        let limit = "n=$(($(ls /proc/\(id)/fd | wc -l) + 33)); prlimit --pid \(id) --nofile=$n:$n"
        try await Self.make(.script(host: 1, limit), in: lab, nodes)
        let answer = try await Self.doctor(lab, "desktop")
        #expect(answer.causes == ["fewDescriptors"], "\(answer.text)")
    }
}
