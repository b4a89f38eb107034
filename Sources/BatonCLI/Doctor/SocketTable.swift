// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// The sockets of this machine, from `/proc/net/udp`, `/proc/net/tcp` and the like (proc_pid_net(5)).
enum SocketTable {
    /// The tables of a transport, one for each family; empty if it cannot be read.
    static func read(_ transport: String) -> [String] {
        [transport, transport + "6"].map { (try? String(contentsOfFile: "/proc/net/\($0)", encoding: .utf8)) ?? "" }
    }

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
