// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Testing

@testable import BatonWeb

struct AddressPolicyTests {
    @Test(arguments: [
        "93.184.216.34", "1.1.1.1", "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1", "192.167.1.1",
        "198.20.0.1",
        "2606:4700::1", "2001:200::1", "2a00::1", "64:ff9b::1.1.1.1", "2002:0101:0101::1", "::ffff:1.1.1.1",
    ])
    func addressesOfTheInternet(_ text: String) throws {
        #expect(AddressPolicy.permits(try #require(IPAddress(text)), allowingPrivate: false))
    }

    @Test(arguments: [
        "127.0.0.1", "127.255.0.1", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
        "100.64.0.1", "100.127.255.255", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.19.255.255", "198.51.100.1",
        "203.0.113.1", "192.88.99.1", "::1", "fe80::1", "fec0::1", "fc00::1", "fdff::1", "::ffff:127.0.0.1",
        "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b:1::1", "2002:7f00:1::1",
        "2002:0a00:1::1", "2001::1", "2001:10::1", "2001:db8::1", "3fff::1", "100::1", "4000::1",
    ])
    func addressesOfOnesOwn(_ text: String) throws {
        let address = try #require(IPAddress(text))
        #expect(!AddressPolicy.permits(address, allowingPrivate: false))
        #expect(AddressPolicy.permits(address, allowingPrivate: true))
    }

    @Test(arguments: [
        "0.0.0.0", "0.1.2.3", "224.0.0.251", "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "ff02::fb",
        "ff0e::1", "::ffff:0.0.0.0", "64:ff9b::224.0.0.1", "2002:e000:1::1",
    ])
    func addressesOfNobody(_ text: String) throws {
        let address = try #require(IPAddress(text))
        #expect(!AddressPolicy.permits(address, allowingPrivate: true))
    }
}
