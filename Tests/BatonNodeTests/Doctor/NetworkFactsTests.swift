// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import BatonDiscovery
@testable import BatonEventLoop
@testable import BatonNode

@Suite("The facts of a network")
struct NetworkFactsTests {
    @Test("The interfaces that matter lead to the device, else to the internet, and are no bridge of containers")
    func interfaces() {
        func address(_ text: String, _ index: UInt32) -> InterfaceAddress {
            InterfaceAddress(
                interfaceName: "i\(index)", interfaceIndex: index, address: IPAddress(text) ?? .ipv4Any,
                prefixLength: text.contains(":") ? 64 : 24, isMulticast: true)
        }
        func heard(_ index: UInt32) -> MulticastEar.Interface { .init(name: "i\(index)", index: index) }
        var network = NetworkFacts()
        network.addresses = [
            address("10.77.0.1", 2), address("192.168.1.5", 3), address("172.17.0.1", 4), address("fe80::1", 5),
        ]
        (network.outward, network.bridges) = ([3], [4])
        func leading(_ device: String?, of all: [UInt32] = [2, 3, 4, 5]) -> [UInt32] {
            network.leading(all.map(heard), towards: [device.flatMap { IPAddress($0) }].compactMap { $0 }).map(\.index)
        }
        #expect(leading("10.77.0.2") == [2] && leading("192.168.1.6") == [3])
        #expect(leading("203.0.113.5") == [3] && leading(nil) == [3])
        // A virtual machine of this one.
        #expect(leading("172.17.0.2") == [4])
        // A tunnel takes the default route; no packet of it was heard.
        network.outward = [9]
        #expect(leading(nil) == [2, 3] && leading("203.0.113.5") == [2, 3])
        network.outward = []
        #expect(leading(nil, of: [4, 5]) == [5] && leading(nil, of: [4]).isEmpty)
    }
}
