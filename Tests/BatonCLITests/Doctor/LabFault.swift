// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// A fault that is made for real in a lab of `laptop`, where the doctor runs, and `desktop`.
struct LabFault: Sendable, CustomTestStringConvertible {
    /// How it is made.
    enum Step: Sendable {
        /// A shell script on a host; `$PORT` is the port of that host's node.
        case script(host: Int, String)
        /// A shell script on a host that goes on; it prints a line when it is ready.
        case running(host: Int, String)
        /// A command of `Scripts/lab`.
        case lab([String])
        /// Ends a host's node.
        case stopNode(Int)
    }

    let name: String
    let steps: [Step]
    /// The causes that the doctor names.
    let causes: Set<String>
    /// Causes of another fault that nobody can see while this one is there.
    var hides: Set<String> = []
    /// A shell script that changes what the doctor alone sees: it runs before it, in mounts of its own.
    var around = ""

    var testDescription: String { name }

    static func filter(_ rule: String, hook: String = "input") -> String {
        """
        nft add table inet f; nft "add chain inet f $HOOK { type filter hook $HOOK priority 0; }"
        nft add rule inet f $HOOK \(rule)
        """.replacing("$HOOK", with: hook)
    }

    private static let ofPeer: Set<String> = [
        "portBlockedHere", "portBlockedThere", "noMulticast", "blocked5353There", "avahiThere", "nodeGoneThere",
        "answersNowhere", "twoSubnets", "vpnTakesRoute", "noRoute",
    ]

    /// What multicast DNS tells.
    private static let ofMulticast: Set<String> = [
        "avahiIgnores", "noMulticast", "blocked5353There", "avahiThere", "nodeGoneThere",
    ]

    /// Debian's rules let multicast DNS in, also after `ufw deny 5353/udp`: these are without them.
    private static let ufw = """
        cp -a /etc/ufw $BATON_HOME/ufw
        sed -i /5353/d $BATON_HOME/ufw/before.rules $BATON_HOME/ufw/before6.rules
        unshare --mount sh -ec 'mount --bind $BATON_HOME/ufw /etc/ufw; mount -t tmpfs none /run; ufw --force enable'
        """

    /// The interface is not in the default zone.
    private static let firewalld = """
        cp -a /etc/firewalld $BATON_HOME/firewalld
        unshare --mount sh -ec 'mount --bind $BATON_HOME/firewalld /etc/firewalld
            mount -t tmpfs none /run; mount -t tmpfs none /var/log; exec firewalld --nofork --nopid' >/dev/null 2>&1 &
        until firewall-cmd --state >/dev/null 2>&1; do sleep 0.1; done
        firewall-cmd --permanent --zone=work --change-interface=eth0 >/dev/null 2>&1
        firewall-cmd --reload
        wait
        """

    private static let ofRoute: Set<String> = ["vpnTakesRoute", "noRoute"]

    private static let ofHome: Set<String> = [
        "noNode", "portTaken", "handoffOff", "rulesMistake", "wrongRights", "diskFull", "diskReadOnly",
        "unusableAccount",
    ]

    static let alone: [LabFault] = [
        LabFault(name: "Handoff off", steps: [.script(host: 1, "$BATON handoff off")], causes: ["handoffOff"]),
        // First, because they need the bus and the home of the next ones.
        LabFault(
            name: "ufw", steps: [.script(host: 1, ufw)], causes: ["blockedIn5353", "portBlockedHere"],
            hides: ofMulticast, around: "mount --bind $BATON_HOME/ufw /etc/ufw"),
        LabFault(
            name: "firewalld", steps: [.running(host: 1, firewalld)], causes: ["blockedIn5353", "portBlockedHere"],
            hides: ofMulticast),
        LabFault(
            name: "no account", steps: [], causes: ["noAccount"], hides: ofPeer.union(ofHome),
            around: "export BATON_HOME=/nonexistent/baton"),
        LabFault(
            name: "an account that cannot be used",
            steps: [.script(host: 1, "echo x >$BATON_HOME/state/account/account.json")], causes: ["unusableAccount"],
            hides: ofPeer.union(["noNode", "portTaken"])),
        LabFault(
            name: "a full disk", steps: [], causes: ["diskFull"],
            around: """
                cp -a $BATON_HOME/state $BATON_HOME/copy
                mount -t tmpfs -o size=1m,mode=700 none $BATON_HOME/state
                cp -a $BATON_HOME/copy/. $BATON_HOME/state/
                """),
        LabFault(
            name: "a disk that is read-only", steps: [], causes: ["diskReadOnly"], hides: ["diskFull"],
            around: """
                mount --bind $BATON_HOME/state $BATON_HOME/state
                mount -o remount,bind,ro $BATON_HOME/state
                """),
        LabFault(
            name: "the port is taken",
            steps: [
                .stopNode(1),
                .script(host: 1, "umask 077; mkdir -p $BATON_HOME/config; echo port=24747 >$BATON_HOME/config/node"),
                .running(
                    host: 1,
                    """
                    exec python3 -c 'import socket, time
                    s = socket.create_server(("0.0.0.0", 24747))
                    print("ready", flush=True)
                    time.sleep(1000)'
                    """),
            ], causes: ["portTaken"], hides: ofPeer.subtracting(ofRoute).union(["noNode"])),
        LabFault(name: "no node", steps: [.stopNode(1)], causes: ["noNode"], hides: ofPeer.subtracting(ofRoute)),
        LabFault(
            name: "a mistake in the rules",
            steps: [
                .script(host: 1, "umask 077; mkdir -p $BATON_HOME/config; echo x >$BATON_HOME/config/accept-policy")
            ],
            causes: ["rulesMistake"]),
        LabFault(
            name: "wrong rights", steps: [.script(host: 1, "chmod 755 $BATON_HOME/state")], causes: ["wrongRights"]),
        // It starts Avahi, which the next ones stop.
        LabFault(
            name: "Avahi ignores the interface",
            steps: [.lab(["avahi", "1", "stop"]), .lab(["avahi", "1", "start", "deny-interfaces=eth0"])],
            causes: ["avahiIgnores"]),
        LabFault(
            name: "no bus", steps: [.lab(["bus", "1", "stop"])], causes: ["noBus"],
            hides: ["noAvahi", "avahiStopped", "avahiHangs", "avahiIgnores"]),
        LabFault(
            name: "no Avahi", steps: [.lab(["avahi", "1", "stop"])], causes: ["noAvahi"],
            hides: ["avahiStopped", "avahiHangs", "avahiIgnores", "secondStack"],
            around: "mount --bind /dev/null /usr/sbin/avahi-daemon"),
        LabFault(
            name: "Avahi stopped", steps: [.lab(["avahi", "1", "stop"])], causes: ["avahiStopped"],
            hides: ["avahiHangs", "avahiIgnores", "secondStack"]),
        LabFault(
            name: "Avahi hangs",
            steps: [.script(host: 1, "read -r pid rest <$BATON_HOME/../avahi.pid; kill -STOP $pid")],
            causes: ["avahiHangs"], hides: ["avahiIgnores"]),
        LabFault(
            name: "a second stack",
            steps: [
                .running(
                    host: 1,
                    """
                    exec python3 -c 'import socket, time
                    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    s.bind(("0.0.0.0", 5353))
                    print("ready", flush=True)
                    time.sleep(1000)'
                    """)
            ], causes: ["secondStack"]),
        LabFault(
            name: "incoming multicast DNS is dropped", steps: [.script(host: 1, filter("udp dport 5353 drop"))],
            causes: ["blockedIn5353"], hides: ofMulticast),
        LabFault(
            name: "outgoing multicast DNS is dropped",
            steps: [.script(host: 1, filter("udp dport 5353 drop", hook: "output"))], causes: ["blockedOut5353"],
            hides: ofMulticast.union(["blockedIn5353"])),
        LabFault(
            name: "incoming multicast DNS is dropped there", steps: [.script(host: 2, filter("udp dport 5353 drop"))],
            causes: ["blocked5353There"], hides: ["noMulticast", "avahiThere"]),
        LabFault(
            name: "Avahi stopped there", steps: [.lab(["avahi", "2", "stop"])], causes: ["avahiThere"],
            hides: ["noMulticast"]),
        LabFault(
            name: "the port is blocked there", steps: [.script(host: 2, filter("tcp dport $PORT drop"))],
            causes: ["portBlockedThere"], hides: ["portBlockedHere", "blocked5353There", "nodeGoneThere"]),
        LabFault(
            name: "the port is blocked here", steps: [.script(host: 1, filter("tcp dport $PORT drop"))],
            causes: ["portBlockedHere"]),
        LabFault(
            name: "the port is blocked on both sides",
            steps: [1, 2].map { .script(host: $0, filter("tcp dport $PORT drop")) },
            // Nobody gets in, so that nobody can be asked to try.
            causes: ["portBlockedThere"], hides: ["portBlockedHere", "blocked5353There", "nodeGoneThere"]),
        LabFault(
            name: "no multicast between the two",
            steps: [
                .lab(["switch", "bridge", "link", "set", "dev", "host1", "mcast_flood", "off"]),
                .lab(["switch", "bridge", "link", "set", "dev", "host2", "mcast_flood", "off"]),
            ], causes: ["noMulticast"]),
        LabFault(
            name: "isolated clients",
            steps: [
                .lab(["switch", "bridge", "link", "set", "dev", "host1", "isolated", "on"]),
                .lab(["switch", "bridge", "link", "set", "dev", "host2", "isolated", "on"]),
                .script(host: 1, "ip neigh flush dev eth0"), .script(host: 2, "ip neigh flush dev eth0"),
            ], causes: ["answersNowhere"], hides: ofPeer.subtracting(ofRoute)),
        LabFault(
            name: "no node there", steps: [.stopNode(2)], causes: ["nodeGoneThere"],
            hides: ofPeer.subtracting(ofRoute).subtracting(["portBlockedThere", "avahiThere"])),
        LabFault(
            name: "a VPN takes the route",
            steps: [
                .script(
                    host: 1,
                    """
                    ip link add vpn0 type veth peer name vpn1; ip addr add 10.9.0.1/24 dev vpn0
                    ip link set vpn0 up; ip link set vpn1 up; ip route add 10.77.0.0/25 dev vpn0
                    """)
            ], causes: ["vpnTakesRoute"], hides: ofPeer.subtracting(["noRoute"])),
        LabFault(
            name: "no route",
            steps: [
                .script(host: 1, "ip route add unreachable 10.77.0.2; ip -6 addr flush dev eth0")
            ], causes: ["noRoute"], hides: ofPeer),
        LabFault(
            name: "no network",
            steps: [
                // The names are "1: lo:" and "2: eth0@if3:".
                .script(
                    host: 1, "ip -o link | cut -d ' ' -f 2 | cut -d @ -f 1 | tr -d : | xargs -I I ip link set I down")
            ], causes: ["noNetwork"],
            hides: ofPeer.union([
                "blockedIn5353", "blockedOut5353", "avahiIgnores", "avahiStopped", "avahiHangs", "noAvahi",
            ])),
    ]

    /// The faults of this run: in a nightly one each fault, and pairs of a seed that is printed; else a few.
    static let ofThisRun: [[LabFault]] = {
        let environment = ProcessInfo.processInfo.environment
        guard environment["BATON_NIGHTLY"] != nil else {
            return [
                ["Avahi stopped"], ["incoming multicast DNS is dropped"], ["no multicast between the two"],
                ["the port is blocked here"], ["wrong rights", "the port is blocked there"],
                ["a mistake in the rules", "incoming multicast DNS is dropped there"],
            ].map { names in alone.filter { names.contains($0.name) } }
        }
        let seed = environment["BATON_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)
        print("faults of seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        // In the order of the list: the first one needs the node, and the last one takes every network away, also one
        // that another fault has made.
        let pairs = alone.indices.flatMap { first in alone.indices[(first + 1)...].map { [alone[first], alone[$0]] } }
        let count = environment["BATON_PAIRS"].flatMap { Int($0) } ?? 12
        return alone.map { [$0] } + pairs.shuffled(using: &generator).prefix(count)
    }()

    /// The causes that the doctor names of several faults.
    static func expected(_ faults: [LabFault]) -> Set<String> {
        faults.indices.reduce(into: []) { expected, index in
            let others = faults.indices.filter { $0 != index }
            expected.formUnion(others.reduce(faults[index].causes) { $0.subtracting(faults[$1].hides) })
        }
    }
}
