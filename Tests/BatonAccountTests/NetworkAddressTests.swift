// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonProtocol
import BatonTestSupport
import Testing

@Suite struct NetworkAddressTests {
    @Test(arguments: [
        ("0.0.0.0", NetworkAddress.Scope.invalid), ("0.1.2.3", .invalid), ("224.0.0.251", .invalid),
        ("255.255.255.255", .invalid), ("240.0.0.1", .invalid), ("127.0.0.1", .loopback), ("127.255.0.1", .loopback),
        ("169.254.1.1", .linkLocal), ("169.253.1.1", .global), ("10.0.0.1", .site), ("172.15.0.1", .global),
        ("172.16.0.1", .site), ("172.31.0.1", .site), ("172.32.0.1", .global), ("192.168.1.1", .site),
        ("100.64.0.1", .site), ("100.128.0.1", .global), ("223.255.255.255", .global), ("8.8.8.8", .global),
        ("::", .invalid), ("::1", .loopback), ("::2", .invalid), ("::ffff:10.0.0.1", .invalid), ("ff02::fb", .invalid),
        ("fe80::1", .linkLocal), ("febf::1", .linkLocal), ("fec0::1", .global), ("fc00::1", .site), ("fd12::1", .site),
        ("2001:db8::1", .global),
    ])
    func scopes(_ text: String, _ scope: NetworkAddress.Scope) throws {
        let address = try #require(NetworkAddress(text))
        #expect(address.scope == scope)
        #expect(NetworkAddress(bytes: address.bytes) == address)
    }

    @Test func onlyTwoLengths() {
        for count in 0...20 {
            #expect((NetworkAddress(bytes: [UInt8](repeating: 1, count: count)) != nil) == (count == 4 || count == 16))
        }
    }

    @Test func asManyAsFit() {
        let short = (0..<20).compactMap { NetworkAddress(bytes: [10, 0, 0, UInt8($0)]) }
        let long = (0..<20).compactMap { NetworkAddress("fd00::\($0 + 1)") }
        #expect(AdvertisementContent.fitting(short) == Array(short.prefix(8)))
        #expect(AdvertisementContent.fitting(long) == Array(long.prefix(4)))
        // 2 * 5 + 3 * 17 = 61; another of 5 fits, another of 17 does not.
        let mixed = Array(short[..<2] + long[..<4] + short[2..<5])
        #expect(AdvertisementContent.fitting(mixed) == Array(short[..<2] + long[..<3] + short[2..<4]))
        #expect(AdvertisementContent.fitting([short[0], short[0], NetworkAddress("0.0.0.0")!]) == [short[0]])
        #expect(AdvertisementContent.fitting([]) == [])
    }
}
