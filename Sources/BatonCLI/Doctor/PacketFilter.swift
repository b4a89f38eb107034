// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import FoundationEssentials
import Subprocess

/// The program that filters packets on this machine. It only chooses the remedy: what is blocked is measured.
enum PacketFilter: Sendable, Hashable {
    case ufw
    /// The zone of the interface; nil for the default zone.
    case firewalld(zone: String?)
    case unknown

    /// The commands that let packets to a port pass.
    ///
    /// - Parameters:
    ///   - transport: `tcp` or `udp`.
    ///   - isOutgoing: whether they are packets of this machine. Default: those of others.
    func remedy(_ port: UInt16, _ transport: String, isOutgoing: Bool = false) -> [String] {
        switch self {
        case .ufw:
            return ["sudo ufw allow \(isOutgoing ? "out " : "")\(port)/\(transport)"]
        case .firewalld(let zone) where !isOutgoing:
            let place = zone.map { "--zone=\(ShellWord.quoted($0)) " } ?? ""
            return [
                "sudo firewall-cmd --permanent \(place)--add-port=\(port)/\(transport) && sudo firewall-cmd --reload"
            ]
        case .firewalld, .unknown:
            return ["sudo nft list ruleset"]
        }
    }

    /// The most bytes of a program's output. It is one word.
    private static let outputBound = 4 << 10

    /// Finds out which program filters packets on this machine.
    ///
    /// - Parameter interface: the name of the one that matters, if one does: firewalld has rules for each.
    static func current(at interface: String?) async -> PacketFilter {
        let ufw = (try? String(contentsOfFile: "/etc/ufw/ufw.conf", encoding: .utf8)) ?? ""
        if ufw.split(separator: "\n").contains("ENABLED=yes") { return .ufw }
        if await output(of: "firewall-cmd", "--state") != nil {
            // An interface that no zone has belongs to the default zone.
            guard let interface,
                let answer = await output(of: "firewall-cmd", "--get-zone-of-interface", interface)
            else { return .firewalld(zone: nil) }
            return .firewalld(zone: answer.split(separator: "\n").first.map(String.init))
        }
        return .unknown
    }

    /// - Returns: nil if the program is missing or fails.
    private static func output(of program: String, _ arguments: String...) async -> String? {
        let result = try? await Subprocess.run(
            .name(program), arguments: Arguments(arguments), output: .string(limit: outputBound), error: .discarded)
        guard let result, case .exited(0) = result.terminationStatus else { return nil }
        return result.standardOutput
    }
}
