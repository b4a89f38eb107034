// SPDX-License-Identifier: Apache-2.0

package import BatonDiscovery
package import BatonEventLoop
import FoundationEssentials
import Glibc

/// The facts that the doctor reads of this machine's network.
///
/// ``Diagnosis/network(_:isBusSilent:unannounced:hasMetOthers:heard:devices:)`` judges it.
package struct NetworkFacts: Sendable {
    package var addresses: [InterfaceAddress] = []
    /// The indices of the interfaces that the default routes take.
    var outward: Set<UInt32> = []
    /// The indices of the interfaces that bridge containers or virtual machines to this machine, and to no other.
    var bridges: Set<UInt32> = []
    /// The users of the programs that answer multicast DNS beside the responder.
    var otherResponders: [String] = []
    var isAvahiInstalled = true
    package var filter = PacketFilter.unknown

    /// Addresses of no machine (RFC 5737 and RFC 3849). Nothing is sent to them: only their routes are looked up.
    private static let outside = ["192.0.2.1", "2001:db8::1"].compactMap { IPAddress($0) }

    package init() {}

    /// Reads the facts. It takes less than a millisecond.
    package static func read() -> NetworkFacts {
        var facts = ofInterfaces()
        facts.otherResponders = SocketTable.otherResponders(
            in: ["/proc/net/udp", "/proc/net/udp6"].map(SocketTable.read))
        facts.isAvahiInstalled = access("/usr/sbin/avahi-daemon", X_OK) == 0
        return facts
    }

    /// Reads the facts that ``leading(_:towards:)`` needs.
    static func ofInterfaces() -> NetworkFacts {
        var facts = NetworkFacts()
        facts.addresses = (try? InterfaceAddress.current()) ?? []
        let sources = outside.compactMap { try? InterfaceAddress.source(towards: $0) }
        facts.outward = facts.indices { sources.contains($0.address) }
        // A bridge that leads to the internet is the network itself.
        facts.bridges = facts.indices { access("/sys/class/net/\($0.interfaceName)/bridge", F_OK) == 0 }
            .subtracting(facts.outward)
        return facts
    }

    /// Chooses the interfaces that matter, of those that were listened on: the ones in the network of a device. Without
    /// one those of the default routes, and without any all that have an address beside the link-local one. A tunnel
    /// carries no multicast, so that the interface below it counts.
    ///
    /// - Parameter devices: the addresses of the device in question.
    package func leading(
        _ interfaces: [MulticastEar.Interface], towards devices: [IPAddress]
    ) -> [MulticastEar.Interface] {
        let onLink = indices { own in devices.contains { own.isOnLink($0) } }
        let routable = indices { !$0.address.isLinkLocal }
        // Containers have addresses of the same networks on many machines: a bridge comes last.
        let choices = [onLink.subtracting(bridges), onLink, outward, routable.subtracting(bridges)]
        for choice in choices {
            let chosen = interfaces.filter { choice.contains($0.index) }
            if !chosen.isEmpty { return chosen }
        }
        return interfaces.filter { !bridges.contains($0.index) }
    }

    private func indices(where matches: (InterfaceAddress) -> Bool) -> Set<UInt32> {
        Set(addresses.filter(matches).map(\.interfaceIndex))
    }
}

/// The sockets of this machine, from `/proc/net/udp`, `/proc/net/tcp` and the like (proc_pid_net(5)).
enum SocketTable {
    /// The text of a table; empty if it cannot be read.
    static func read(_ path: String) -> String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }

    /// The users of the sockets that receive unicast multicast DNS beside the responder's.
    ///
    /// A responder binds port 5353 of all addresses, once in a family, and runs under an account of the system. Baton
    /// binds the multicast group instead. Browsers bind all addresses, but under the account of a person, and answer
    /// nobody.
    ///
    /// - Parameter tables: one for each family.
    static func otherResponders(in tables: [String]) -> [String] {
        var others: [String] = []
        for table in tables {
            var users = table.split(separator: "\n").compactMap(responder)
            // The responder itself: Avahi if it is among them.
            if let own = users.firstIndex(of: "avahi") ?? users.indices.first { users.remove(at: own) }
            others += users.filter { !others.contains($0) }
        }
        return others
    }

    /// Whether a socket listens at a TCP port.
    static func isListening(at port: UInt16, in tables: [String]) -> Bool {
        tables.contains { table in
            table.split(separator: "\n").contains { line in
                let fields = line.split(separator: " ")
                // 0A is the state TCP_LISTEN.
                guard fields.count > 3, fields[3] == "0A", let digits = fields[1].split(separator: ":").last else {
                    return false
                }
                return UInt16(digits, radix: 16) == port
            }
        }
    }

    /// The last account that is not a person's: `SYS_UID_MAX` of login.defs(5).
    private static let lastSystemAccount: UInt32 = 999

    /// The user of a line of the table, if it is a socket at port 5353 of all addresses.
    private static func responder(_ line: Substring) -> String? {
        let fields = line.split(separator: " ")
        guard fields.count > 7, let user = UInt32(fields[7]), user <= lastSystemAccount else { return nil }
        let local = fields[1].split(separator: ":")
        guard local.count == 2, local[1] == "14E9", local[0].allSatisfy({ $0 == "0" }) else { return nil }
        return getpwuid(user).map { String(cString: $0.pointee.pw_name) } ?? "\(user)"
    }
}
