// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage
import Testing

@testable import BatonEventLoop

@Suite("Addresses")
struct AddressTests {
    @Test(
        "IP addresses are read as people write them",
        arguments: [
            ("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"),
            ("::1", "::1"), ("::", "::"), ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
            ("::ffff:192.0.2.1", "192.0.2.1"), ("::ffff:c000:201", "192.0.2.1"),
            ("fe80::1%lo", "fe80::1%lo"), ("fe80::1%1", "fe80::1%lo"), ("fe80::1%4000000000", "fe80::1%4000000000"),
            ("2001:db8::1%1", "2001:db8::1"), ("fe80::1", "fe80::1"),
        ])
    func ipAddresses(_ text: String, _ formatted: String) throws {
        let address = try #require(IPAddress(text))
        #expect(address.description == formatted)
        #expect(IPAddress(address.description) == address)
        #expect(IPAddress(bytes: address.bytes, scopeID: address.scopeID) == address)
    }

    @Test(
        "Text that is not an IP address is refused",
        arguments: [
            "", " ", "localhost", "1.2.3", "1.2.3.4.5", "256.1.1.1", "1.2.3.4%lo", "1.2.3.4 ", "::1::", "[::1]",
            "fe80::1%", "fe80::1%no-such-interface", "fe80::1%0", "::1\0", "1.2.3.4\0.5", "fe80::1%-1",
            String(repeating: "1", count: 65), "fe80::1%" + String(repeating: "x", count: 500),
        ])
    func notIPAddresses(_ text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test("Only 4 or 16 bytes are an address", arguments: [0, 3, 5, 15, 17, 1000])
    func byteCounts(_ count: Int) {
        #expect(IPAddress(bytes: [UInt8](repeating: 1, count: count)) == nil)
    }

    @Test("Each address has one value")
    func equality() throws {
        let mapped = [UInt8](repeating: 0, count: 10) + [0xff, 0xff, 192, 0, 2, 1]
        #expect(IPAddress(bytes: mapped) == IPAddress("192.0.2.1"))
        #expect(IPAddress(bytes: mapped)?.hashValue == IPAddress("192.0.2.1")?.hashValue)
        #expect(IPAddress("2001:db8::1%1") == IPAddress("2001:db8::1"))
        #expect(IPAddress("fe80::1%1") != IPAddress("fe80::1%2"))
        #expect(IPAddress("fe80::1")?.scoped(to: 7).scopeID == 7)
        #expect(IPAddress("2001:db8::1")?.scoped(to: 7).scopeID == 0)
        #expect(IPAddress("192.0.2.1")?.scoped(to: 7) == IPAddress("192.0.2.1"))
        #expect(IPAddress("ff02::fb%1")?.scopeID == 1)
    }

    @Test("Kinds of addresses, at their borders")
    func kinds() throws {
        func all(_ texts: [String], _ property: (IPAddress) -> Bool) throws -> [Bool] {
            try texts.map { property(try #require(IPAddress($0))) }
        }
        #expect(
            try all(
                [
                    "169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0", "fe7f::1", "fe80::", "febf::1",
                    "fec0::1",
                ], \.isLinkLocal) == [false, true, true, false, false, true, true, false])
        #expect(
            try all(["126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0", "::1", "::2"], \.isLoopback)
                == [false, true, true, false, true, false])
        #expect(
            try all(
                ["223.255.255.255", "224.0.0.251", "239.255.255.255", "240.0.0.0", "ff02::fb", "feff::"],
                \.isMulticast) == [false, true, true, false, true, false])
        #expect(try all(["::1", "1.2.3.4", "::ffff:1.2.3.4"], \.isIPv4) == [false, true, true])
    }

    @Test(
        "Socket addresses are read as they are written",
        arguments: [
            "192.0.2.1:4000", "[2001:db8::1]:1", "[fe80::1%lo]:65535", "0.0.0.0:0", "/run/baton/node", "/a b/ü",
        ])
    func socketAddresses(_ text: String) throws {
        let address = try #require(SocketAddress(text))
        #expect(address.description == text)
    }

    @Test(
        "Text that is not a socket address is refused",
        arguments: [
            "", ":", "192.0.2.1", "192.0.2.1:", "192.0.2.1:65536", "192.0.2.1:-1", "192.0.2.1:+1", "192.0.2.1: 1",
            "192.0.2.1:000001", "2001:db8::1:4000", "[192.0.2.1]:1", "[2001:db8::1]", "[2001:db8::1:1", "relative",
            "localhost:80", "::ffff:1.2.3.4:80", "/nul\0byte",
        ])
    func notSocketAddresses(_ text: String) {
        #expect(SocketAddress(text) == nil)
    }

    @Test("An address survives the kernel's form")
    func system() throws {
        let longest = "/" + String(repeating: "x", count: SocketAddress.longestUnixPath - 1)
        for text in ["192.0.2.1:4000", "[2001:db8::1]:1", "[fe80::1%lo]:65535", "/run/x", longest] {
            let address = try #require(SocketAddress(text))
            let back = try address.withSystemAddress { pointer, length in
                pointer.withMemoryRebound(to: UInt8.self, capacity: Int(length)) { bytes in
                    var storage = sockaddr_storage()
                    withUnsafeMutableBytes(of: &storage) {
                        $0.copyMemory(from: UnsafeRawBufferPointer(start: bytes, count: Int(length)))
                    }
                    return SocketAddress(storage)
                }
            }
            #expect(back == address)
        }
        #expect(throws: SocketError.self) {
            try SocketAddress.unix(FilePath(longest + "x")).withSystemAddress { _, _ in }
        }
        var storage = sockaddr_storage()
        #expect(SocketAddress(storage) == nil)
        storage.ss_family = sa_family_t(AF_UNIX)
        #expect(SocketAddress(storage) == .unix(""))
    }

    @Test("Loopback addresses are listed once each, and only on request")
    func interfaces() throws {
        let all = try InterfaceAddress.current(includingLoopback: true)
        #expect(all.contains { $0.address == .ipv4Loopback && $0.interfaceName == "lo" && $0.interfaceIndex > 0 })
        #expect(try InterfaceAddress.source(towards: .ipv4Loopback) == .ipv4Loopback)
        #expect(try InterfaceAddress.source(towards: .ipv6Loopback) == .ipv6Loopback)
        // An address for documentation only (RFC 5737, 6890). Wherever its route leads, the source is an address of
        // this machine.
        let other = try #require(IPAddress("192.0.2.1"))
        if let source = try? InterfaceAddress.source(towards: other) { #expect(all.contains { $0.address == source }) }
        #expect(Set(all).count == all.count)
        #expect(all.count <= InterfaceAddress.limit)
        let others = try InterfaceAddress.current()
        #expect(others.allSatisfy { !$0.address.isLoopback && $0.interfaceName != "lo" })
        for entry in all where entry.address.isLinkLocal && !entry.address.isIPv4 {
            #expect(entry.address.scopeID == entry.interfaceIndex)
        }
        #expect(InterfaceAddress.interfaceName(.max) == nil)
    }
}
