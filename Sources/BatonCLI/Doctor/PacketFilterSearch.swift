// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonNode
import FoundationEssentials
import Glibc
import Subprocess

/// Finds out which program filters packets on this machine, for the remedy.
enum PacketFilterSearch {
    /// The most bytes of a program's output: some thousand chains.
    private static let outputBound = 1 << 20

    /// - Parameter interface: the name of the one that matters, if one does: firewalld has rules for each.
    static func find(at interface: String?) async -> PacketFilter {
        let ufw = (try? String(contentsOfFile: "/etc/ufw/ufw.conf", encoding: .utf8)) ?? ""
        if ufw.split(separator: "\n").contains("ENABLED=yes") { return .ufw }
        if await output(of: "firewall-cmd", "--state") != nil {
            // An interface that no zone has belongs to the default zone.
            guard let interface,
                let answer = await output(of: "firewall-cmd", "--get-zone-of-interface", interface)
            else { return .firewalld(zone: nil) }
            return .firewalld(zone: answer.split(separator: "\n").first.map(String.init))
        }
        // Only root may list what is filtered.
        guard geteuid() == 0, let chains = await output(of: "nft", "-j", "list", "chains") else { return .unknown }
        return nftables(chains)
    }

    /// Reads the list of chains. Where several filter a direction, nobody knows which one drops.
    static func nftables(_ text: String) -> PacketFilter {
        guard let list = try? JSONParser.parse(text), case .array(let items)? = list["nftables"] else {
            return .unknown
        }
        let chains = items.compactMap { $0["chain"] }
        func only(_ hook: String) -> PacketFilter.Chain? {
            let chains = chains.filter { $0["hook"] == .string(hook) && $0["type"] == .string("filter") }
            guard chains.count == 1, case .string(let family)? = chains[0]["family"],
                case .string(let table)? = chains[0]["table"], case .string(let name)? = chains[0]["name"]
            else { return nil }
            return PacketFilter.Chain(family: family, table: table, name: name)
        }
        return .nftables(input: only("input"), output: only("output"))
    }

    /// - Returns: nil if the program is missing or fails.
    private static func output(of program: String, _ arguments: String...) async -> String? {
        let result = try? await Subprocess.run(
            .name(program), arguments: Arguments(arguments), output: .string(limit: outputBound), error: .discarded)
        guard let result, case .exited(0) = result.terminationStatus else { return nil }
        return result.standardOutput
    }
}
