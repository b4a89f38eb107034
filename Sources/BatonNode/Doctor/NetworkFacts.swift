// SPDX-License-Identifier: Apache-2.0

package import BatonDiscovery
package import BatonEventLoop
import Glibc

/// The facts about this machine's interfaces that choose those which matter on the road to a device.
package struct NetworkFacts: Sendable {
    package var addresses: [InterfaceAddress] = []
    /// The indices of the interfaces that the default routes take.
    var outward: Set<UInt32> = []
    /// The indices of the interfaces that bridge containers or virtual machines to this machine, and to no other.
    var bridges: Set<UInt32> = []

    /// Addresses of no machine (RFC 5737 and RFC 3849). Nothing is sent to them: only their routes are looked up.
    private static let outside = ["192.0.2.1", "2001:db8::1"].compactMap { IPAddress($0) }

    /// Reads the facts. It takes less than a millisecond.
    package static func ofInterfaces() -> NetworkFacts {
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
