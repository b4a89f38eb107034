// SPDX-License-Identifier: Apache-2.0

import BatonAccount

/// The program that filters packets on this machine. It only chooses the remedy: what is blocked is measured.
package enum PacketFilter: Sendable, Hashable {
    case ufw
    /// The zone of the interface; nil for the default zone.
    case firewalld(zone: String?)
    case unknown

    enum Traffic: Sendable {
        case multicastDNS
        case port(UInt16)
    }

    enum Direction: Sendable { case input, output }

    /// The commands that let packets pass.
    func remedy(for traffic: Traffic, _ direction: Direction = .input) -> [String] {
        let (port, transport) =
            switch traffic {
            case .multicastDNS: (UInt16(5353), "udp")
            case .port(let port): (port, "tcp")
            }
        switch self {
        case .ufw:
            return ["sudo ufw allow \(direction == .input ? "" : "out ")\(port)/\(transport)"]
        case .firewalld(let zone) where direction == .input:
            let place = zone.map { "--zone=\(ShellWord.quoted($0)) " } ?? ""
            return [
                "sudo firewall-cmd --permanent \(place)--add-port=\(port)/\(transport) && sudo firewall-cmd --reload"
            ]
        case .firewalld, .unknown:
            return ["sudo nft list ruleset"]
        }
    }
}
